"""What a scheduler waits for without a warm process: from the start of a command to its end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from bench.contestant import Arena, Delivery
from bench.machine import CORES
from bench.report import COLD_CONTENDER
from bench.tidemill_batch import PIPELINE, TidemillBatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LONGEST_SECONDS = 600
SCRIPTS = Path(sys.executable).parent
DEFINITION = Path(__file__).parent / "declarative" / "counts.py"
SPEC = """
name: bench
storage: {storage}
libraries:
  - glob:
      include: transformations/**
configuration:
  spark.sql.shuffle.partitions: "{cores}"
  spark.sql.session.timeZone: UTC
"""


class ColdTidemill(TidemillBatch):
    """`tidemill run` in a new process for each round."""

    name = COLD_CONTENDER

    def prepare(self, arena: Arena) -> None:
        super().prepare(arena)
        self._folder = arena.lake
        self._folder.mkdir(parents=True, exist_ok=True)
        of = self.settings(arena)
        sections = {"lake": {"path": of["lake"]}, "log": {"path": of["log"]}}
        sections["project"] = {name: of[name] for name in ("pipelines", "contracts")}
        lines = (f"[{name}]\n" + _assigned(values) for name, values in sections.items())
        (self._folder / "tidemill.toml").write_text("\n".join(lines))

    def round(self, delivery: Delivery) -> float:
        return timed([str(SCRIPTS / "tidemill"), "--project", str(self._folder), "run", PIPELINE], self._folder)


class Declarative:
    """`spark-pipelines run` in a new process for each round: a streaming table, which adds windows when they close.

    Its table is one of Parquet, the default. Derby keeps its catalog between runs.
    """

    name = "declarative"

    def prepare(self, arena: Arena) -> None:
        self._spark, self._folder = arena.spark, arena.lake
        self._environment = {"BENCH_LOG": str(arena.log)}
        (self._folder / "transformations").mkdir(parents=True)
        shutil.copy(DEFINITION, self._folder / "transformations")
        storage = (self._folder / "storage").as_uri()
        (self._folder / "spark-pipeline.yml").write_text(SPEC.format(storage=storage, cores=CORES))

    def round(self, delivery: Delivery) -> float:
        conf = ("--conf", "spark.sql.catalogImplementation=hive", "--conf", "spark.ui.enabled=false")
        command = [str(SCRIPTS / "spark-pipelines"), "--remote", f"local[{CORES}]", *conf, "run"]
        return timed([*command, "--spec", "spark-pipeline.yml"], self._folder, **self._environment)

    def rows(self) -> DataFrame | None:
        return self._spark.read.parquet(str(self._folder / "spark-warehouse" / "counts"))


def timed(command: list[str], folder: Path, **environment: str) -> float:
    """The seconds of a command that runs in this folder.

    Raises:
        RuntimeError: it failed; the text has the end of what it said.
        subprocess.TimeoutExpired: it did not end in ten minutes.
    """
    begin = perf_counter()
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LONGEST_SECONDS,
        check=False,
    )
    seconds = perf_counter() - begin
    if done.returncode:
        raise RuntimeError(f"{Path(command[0]).name} ended with {done.returncode}: {done.stdout[-2_000:]}")
    return seconds


def _assigned(values: dict[str, str]) -> str:
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())
