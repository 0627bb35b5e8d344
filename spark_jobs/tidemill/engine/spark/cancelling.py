"""Runs a job without SQL so that it ends when nobody waits for it any more."""

from __future__ import annotations

import uuid
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

from pyspark import RDD, InheritableThread

T = TypeVar("T")


def collected(rows: RDD[T]) -> list[T]:
    """All rows, by a job that is cancelled if a signal interrupts this thread.

    Another thread calls Java. A thread that waits for Java itself could not tell it to cancel anything: PySpark's
    handler of Ctrl-C fails there, and the job goes on.
    """
    tag, found = f"tidemill-{uuid.uuid4()}", Future[list[T]]()

    def run() -> None:
        try:
            rows.context.addJobTag(tag)
            found.set_result(rows.collect())
        except BaseException as error:
            found.set_exception(error)

    InheritableThread(target=run, daemon=True).start()
    try:
        return found.result()
    except BaseException:
        # Java may be gone; then nothing runs there, and the first error says more.
        with suppress(Exception):
            rows.context.cancelJobsWithTag(tag)
        raise
