"""Runs native passes over the records of a batch: in this process, in tasks of Spark, or in a job of Spark SQL."""

from __future__ import annotations

import atexit
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import reduce
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any, TypeVar
from weakref import WeakSet

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame

from tidemill.engine.aggregate.input_stream import Stream
from tidemill.engine.aggregate.native_pass import SCHEMA, NativePass
from tidemill.engine.read.parts import Part, TooLarge, parts_here, threads
from tidemill.engine.read.segments import Segments
from tidemill.engine.spark.cancelling import collected
from tidemill.engine.storage.staged_rows import RowWriters

Given = Sequence[Mapping[str, Any]]
"""The rows that native passes give, see `SCHEMA`."""

_RECORD_BYTES = 256
"""This process reads so many bytes for each record that it may read; larger records are left to Spark."""

_MOST_GIVEN = 2**29
"""The most bytes that all parts together give."""

_AT_EXIT = 10.0

_started: WeakSet[Thread] = WeakSet()

T = TypeVar("T")
R = TypeVar("R")


def given_here(streams: Sequence[Stream], passes: Sequence[NativePass], *, most: int) -> Given | None:
    """What the passes give in this process, without Spark: some parts at once, each in a thread.

    None if this process cannot read the records, or if they are larger than `most` records usually are.

    Raises:
        SegmentDamaged: a file of the log cannot be unpacked.
    """
    tasks, ended = list[tuple[NativePass, Part]](), Event()
    packed, read, made = (_Bound(left, ended) for left in (most * _RECORD_BYTES, most * _RECORD_BYTES, _MOST_GIVEN))
    for stream, native in zip(streams, passes, strict=True):
        if (parts := parts_here(stream.scan, packed.take)) is None:
            return None
        tasks += ((native, part) for part in parts)

    def run(task: tuple[NativePass, Part]) -> list[Mapping[str, Any]]:
        native, part = task
        return [row for batch in made.of(native.of_task(read.of(part()))) for row in batch.to_pylist()]

    try:
        return [row for rows in _in_threads(run, tasks) for row in rows]
    except TooLarge:
        return None
    finally:
        ended.set()


class _Bound:
    """How many bytes all parts may still read, or give, until nobody waits for them any more."""

    def __init__(self, left: int, ended: Event) -> None:
        self._left, self._ended, self._lock = left, ended, Lock()

    def take(self, size: int) -> None:
        """Count some bytes; raises `TooLarge` if they are more than are left."""
        with self._lock:
            self._left -= size
        if self._left < 0 or self._ended.is_set():
            raise TooLarge

    def of(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same batches; raises `TooLarge` if they are more."""
        for batch in batches:
            self.take(batch.nbytes)
            yield batch


def _in_threads(run: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
    """The results of all tasks, in their order. A signal that interrupts this thread waits for none of them."""
    results = [(task, Future[R]()) for task in tasks]
    waiting = deque(results)

    def work() -> None:
        with suppress(IndexError):
            while True:
                task, found = waiting.popleft()
                try:
                    found.set_result(run(task))
                except BaseException as error:
                    found.set_exception(error)

    try:
        for _ in range(min(len(tasks), threads())):
            thread = Thread(target=work, daemon=True)
            thread.start()
            _started.add(thread)
        return [found.result() for _, found in results]
    finally:
        waiting.clear()


@atexit.register
def _join() -> None:
    """Wait for threads that nobody waited for: Python must not end while one is in DuckDB or Arrow."""
    end = monotonic() + _AT_EXIT
    for thread in list(_started):
        thread.join(max(end - monotonic(), 0))


def given_by_spark(streams: Sequence[Stream], passes: Sequence[NativePass], writers: RowWriters) -> Given:
    """What the passes give in the workers of Spark, in one job."""
    given = _in_tasks(streams, passes)
    return _in_sql(streams, passes, writers) if given is None else given


def _in_tasks(streams: Sequence[Stream], passes: Sequence[NativePass]) -> Given | None:
    """What all tasks give, by a job without SQL; None if workers cannot read the records, or Spark has only SQL."""
    tasks = list[tuple[NativePass, Segments, int]]()
    for stream, native in zip(streams, passes, strict=True):
        if (segments := stream.segments) is None:
            return None
        tasks += ((native, segments, part) for part in range(segments.parts))
    context = streams[0].spark.context
    if context is None:
        return None

    def run(numbers: Iterable[int]) -> Iterator[Mapping[str, Any]]:
        for native, segments, part in map(tasks.__getitem__, numbers):
            for batch in native.of_task(segments.part(part)):
                yield from batch.to_pylist()

    return collected(context.parallelize(range(len(tasks)), len(tasks)).mapPartitions(run))


def _in_sql(streams: Sequence[Stream], passes: Sequence[NativePass], writers: RowWriters) -> Given:
    """What all tasks give, by a job of Spark SQL."""
    frames = [_frame(s, each) for s, each in zip(streams, passes, strict=True)]
    given: list[dict[str, Any]] = writers.in_job(reduce(DataFrame.unionByName, frames)).to_pylist()
    return given


def _frame(stream: Stream, native: NativePass) -> DataFrame:
    """The job over one input: workers read the records themselves where they can."""

    # It must be a function: Spark's signature check refuses an object with __call__.
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return native.of_task(batches)

    segments = stream.segments
    return stream.records.mapInArrow(run, SCHEMA) if segments is None else segments.frame(stream.session, run, SCHEMA)
