"""Flink SQL over the same records, in a process and an environment of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import polars as pl
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from bench.contestant import Arena, Delivery
from bench.flink_sql import FLINK, is_number
from bench.limits import merged
from bench.workload import Workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Newer packages for building lack a module that Beam, which PyFlink installs, asks for.
PACKAGES = ("apache-flink==2.3.0", "setuptools<80")
WORKER = Path(__file__).parent / "flink_worker.py"
ENVIRONMENT = Path(__file__).parents[2] / ".tidemill" / "flink"


class Flink:
    """A bounded job for each round: windows of event time, a watermark, two slots, rows written as JSON.

    Flink cannot read the encoding of the segments (DELTA_LENGTH_BYTE_ARRAY). So a round's records are copied into files
    of lines before its time begins, one for each slot, from which its own format decodes them. Its seconds are those of
    the job alone, see `flink_worker`.
    """

    name = "flink"

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def prepare(self, arena: Arena) -> None:
        self._spark, self._lake, self._workload = arena.spark, arena.lake, arena.workload
        self._rounds: list[pl.DataFrame] = []

    def round(self, delivery: Delivery) -> float:
        log, out = self._lake / "log" / str(delivery.index), self._lake / "out" / str(delivery.index)
        log.mkdir(parents=True)
        for number, file in enumerate(delivery.files):
            values = pq.read_table(file, columns=["value"])["value"].to_pylist()
            (log / f"{number}.txt").write_bytes(b"".join(value + b"\n" for value in values))
        seconds = self._worker.run(self._workload, log, out)
        self._rounds.extend(self._read(part) for part in sorted(out.glob("*/part-*")))
        return seconds

    def _read(self, part: Path) -> pl.DataFrame:
        types = {name: pl.Int64 if is_number(name) else pl.String for name in self._workload.columns}
        times = pl.col("window_start", "window_end")
        as_time = times.str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="us", time_zone="UTC")
        return pl.read_ndjson(part, schema=types).with_columns(as_time)

    def rows(self) -> DataFrame | None:
        return merged(self._spark, self._workload, self._rounds)


class Worker:
    """A process of PyFlink that waits for jobs. What it says is in the file `log`."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process, self._log = process, log

    def run(self, workload: Workload, log: Path, out: Path) -> float:
        """Make the tables of the records in `log`, write them to folders in `out`, and return the seconds.

        Raises:
            RuntimeError: the job failed; the text has the end of what the process said.
        """
        sql = FLINK[workload.name]
        request = {"create": sql.created(workload, str(log), str(out)), "insert": sql.inserted()}
        _pipe(self._process.stdin).write(json.dumps(request) + "\n")
        _pipe(self._process.stdin).flush()
        return float(self.answer("DONE"))

    def answer(self, word: str) -> str:
        """What follows this word in the next line that begins with it."""
        for line in _pipe(self._process.stdout):
            if line.startswith(word):
                return line.removeprefix(word).strip()
        raise RuntimeError(f"Flink ended before it said {word}: {self._log.read_text()[-2_000:]}")


@contextmanager
def flink_worker(folder: Path) -> Iterator[Worker]:
    """A process that lives as long as the bench, with its environment, which is made if it is missing."""
    python = make_environment()
    said = folder / "flink.txt"
    with said.open("w") as errors:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
        process = subprocess.Popen([str(python), str(WORKER)], text=True, **pipes)
        try:
            worker = Worker(process, said)
            worker.answer("READY")
            yield worker
        finally:
            # Its input ends, and with it the process and its Java.
            process.communicate()


def make_environment() -> Path:
    """The Python of the environment with PyFlink, which takes 1 GB and minutes to install, once."""
    python = ENVIRONMENT / "bin" / "python"
    whole = ENVIRONMENT / "whole"
    if not whole.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        whole.touch()
    return python


def _pipe(pipe: TextIO | None) -> TextIO:
    assert pipe is not None
    return pipe
