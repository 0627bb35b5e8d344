"""The whole bench: one process, one Spark session, one bound on its time."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from bench import picture, report
from bench.baselines import baselines, few_baselines
from bench.by_pipeline import by_pipeline
from bench.cold import ColdTidemill, Declarative
from bench.contestant import Contestant
from bench.flink import Flink, Worker, flink_worker
from bench.limits import DuckDb, Polars
from bench.machine import CORES, load, machine, versions
from bench.measured import EARLY, LATE, Series, Steady
from bench.series import Course, Plan
from bench.steady import run_steady
from bench.tidemill_batch import TidemillBatch
from bench.workload import Workload
from bench.workloads import MORE
from tidemill.engine.spark.jars import jar_folder, jar_paths, locked_jars
from tidemill.engine.spark.session import LocalSpark, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
PLANS = (
    Plan(size=1_000, warm=2, counted=7, least=5),
    Plan(size=10_000, warm=2, counted=7, least=5),
    Plan(size=100_000, warm=2, counted=5, least=5),
    Plan(size=1_000_000, warm=1, counted=3),
)
KNOWN_SIZES = {plan.size for plan in PLANS}
SMALL = 100_000
WARM_UP = Plan(size=10_000, warm=0, counted=4)
"""A fresh Java process is slow at everything; these rounds heat it and are forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to measure. `only` are names of contestants, all of them when empty; `pipelines` come after the bench's."""

    plans: tuple[Plan, ...]
    steady: bool
    stock: bool
    bound: timedelta
    out: Path
    only: tuple[str, ...] = ()
    kafka: bool = False
    flink: bool = False
    cold: bool = False
    pipelines: tuple[str, ...] = ()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; 1 when somebody published wrong rows."""
    options = _options(arguments)
    console = _console()
    begin, load_before = time.monotonic(), load()
    # Stopped from outside, the folder and the Java process go as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-", dir=build))
        spark = stack.enter_context(bench_session(kafka=options.kafka))
        servers = stack.enter_context(_broker(Path(folder))) if options.kafka else ""
        about: dict[str, Any] = {"measured_at": datetime.now(UTC).isoformat(timespec="seconds")}
        about |= {"machine": machine(), "versions": versions(spark), "cores_used": CORES}
        flink = stack.enter_context(flink_worker(Path(folder))) if options.flink else None
        series, more, steady = _measure(options, Bench(spark, Path(folder), console, begin, options, servers, flink))
    about |= {"load_before": load_before, "load_after": load(), "seconds": round(time.monotonic() - begin, 1)}
    about |= {"pipelines": by_pipeline(series, more)}
    report.write(options.out, report.as_json(series, steady, more, about))
    report.show(console, series, steady, more)
    pictures = picture.beside(options.out, about["pipelines"])
    console.print(
        f"\n{about['seconds']:.0f} s in all; load {load_before} before, {about['load_after']} after; "
        f"everything is in {', '.join(map(_short, [options.out, *pictures]))}"
    )
    return 1 if any(sum(one.differing.values()) for one in chain(series, *more.values())) else 0


@dataclass(frozen=True, slots=True)
class Bench:
    """What every part of a run shares."""

    spark: SparkSession
    folder: Path
    console: Console
    begin: float
    options: Options
    servers: str = ""
    flink: Worker | None = None

    def contestants(self) -> list[Contestant]:
        """Fresh ones, for one series."""
        everyone = [*baselines(stock=self.options.stock), DuckDb(), Polars(), TidemillBatch(), *self.flinks()]
        if self.servers:
            from bench.kafka_batch import AvailableNowOnKafka, KafkaBatch, Topic

            topic = Topic(self.servers)
            everyone += [KafkaBatch(topic), AvailableNowOnKafka(topic)]
        return self.wanted(everyone)

    def flinks(self) -> list[Contestant]:
        """Flink, if it takes part."""
        return [Flink(self.flink)] if self.flink else []

    def wanted(self, everyone: Sequence[Contestant]) -> list[Contestant]:
        """Those that were asked for."""
        wanted = (*self.options.only, report.ON_KAFKA, report.RIVAL_ON_KAFKA) if self.options.only else ()
        return [one for one in everyone if not wanted or one.name in wanted]

    def until(self, share: float) -> float:
        """The moment at which a share of the bound is used up."""
        return self.begin + share * self.options.bound.total_seconds()


def _measure(options: Options, bench: Bench) -> tuple[list[Series], dict[str, list[Series]], Steady | None]:
    with bench.console.status("warming up") as status:
        told = status.update
        course = Course(bench.spark, bench.folder / "warm", told, bench.until(0.5), bench.until(0.97))
        course.run(WARM_UP, bench.contestants())
        series = []
        for plan in options.plans:
            if time.monotonic() < course.deadline:
                series.append(replace(course, folder=bench.folder / str(plan.size)).run(plan, bench.contestants()))
                bench.console.print(_line("", series[-1]))
        more = _measure_more(options, bench, course)
        if options.cold:
            more[report.COLD] = list(_measure_cold(options, bench, course))
        steady = None
        if options.steady:
            folder = bench.folder / "steady"
            steady = run_steady(bench.spark, folder, TidemillBatch(), told=told, deadline=course.deadline)
    return series, more, steady


def _measure_more(options: Options, bench: Bench, course: Course) -> dict[str, list[Series]]:
    """The pipelines that were asked for, beside the bench's own."""
    found: dict[str, list[Series]] = {}
    for workload, product in MORE:
        for plan in _plans_of(options, workload) if workload.name in options.pipelines else ():
            if time.monotonic() < course.deadline:
                folder = bench.folder / f"{workload.name}-{plan.size}"
                everyone = bench.wanted([*few_baselines(), DuckDb(), product(), *bench.flinks()])
                if not everyone:
                    break
                series = replace(course, folder=folder, workload=workload).run(plan, everyone)
                found.setdefault(workload.name, []).append(series)
                bench.console.print(_line(f"{workload.name}, ", series))
    return found


def _plans_of(options: Options, workload: Workload) -> list[Plan]:
    """Those of the run, and of a whole run those of the workload, too; large ones with few rounds."""
    plans = {plan.size: plan for plan in options.plans}
    if plans.keys() >= KNOWN_SIZES:
        plans |= {size: _plan(size, quick=False) for size in workload.sizes}
    few = {"warm": 1, "counted": 2, "least": 2}
    return [replace(plans[size], **few) if size > SMALL else plans[size] for size in sorted(plans)]


def _measure_cold(options: Options, bench: Bench, course: Course) -> Iterator[Series]:
    """Commands that start their own processes, three times each: the first one is the first batch of its lake."""
    for plan in options.plans:
        if time.monotonic() < course.deadline:
            cold = replace(course, folder=bench.folder / f"cold-{plan.size}")
            few = Plan(size=plan.size, warm=0, counted=3)
            series = cold.run(few, [ColdTidemill(), Declarative()])
            bench.console.print(_line("cold, ", series))
            yield series


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=120)


def _line(pipeline: str, series: Series) -> str:
    medians = "  ".join(f"{name} {series.median(name):.2f} s" for name in series.seconds if series.seconds[name])
    wrong = sum(series.differing.values())
    rows = f"{wrong:,} rows differ" if wrong else f"{series.settled:,} rows equal"
    return f"{pipeline}{series.size:>9,} records: {medians}  {rows}"


def _broker(folder: Path) -> AbstractContextManager[str]:
    sys.path.append(str(ROOT / "infra" / "local"))
    from bench.kafka_batch import bench_broker

    return bench_broker(folder / "kafka")


@contextmanager
def bench_session(*, kafka: bool = False) -> Iterator[SparkSession]:
    conf = {
        "spark.sql.shuffle.partitions": str(CORES),
    }
    jars = jar_paths(jar_folder(ROOT, os.environ), locked_jars(kafka=kafka))
    spark = open_session(LocalSpark(jars=jars, cores=CORES, conf=conf), name="tidemill-bench")
    try:
        yield spark
    finally:
        # Interrupted inside a call, the connection to Java is out of step; Java ends with this process anyway.
        with suppress(Exception):
            spark.stop()


KNOWN = ",".join(str(plan.size) for plan in PLANS)
BESIDE = ",".join(workload.name for workload, _ in MORE)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.py", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="sizes 1000 and 10000, three rounds, no long run")
    parser.add_argument(
        "--sizes", help=f"records a batch, separated by commas, also 10000000; default {KNOWN}; 0 for none"
    )
    parser.add_argument("--only", default="", help="names of contestants, separated by commas")
    parser.add_argument("--kafka", action="store_true", help="the same over a topic of Kafka as well")
    parser.add_argument("--flink", action="store_true", help="Flink SQL as well; installs PyFlink apart the first time")
    parser.add_argument("--cold", action="store_true", help="commands as well, each from start to end")
    parser.add_argument("--all", action="store_true", help="the same as --kafka --flink --cold")
    parser.add_argument(
        "--pipelines", help=f"beside the bench's own, separated by commas; all are {BESIDE}; quick: none"
    )
    parser.add_argument("--no-steady", action="store_true", help=f"leave out batch {LATE} against batch {EARLY}")
    parser.add_argument(
        "--stock", action="store_true", help="Structured Streaming with every setting as it comes as well"
    )
    parser.add_argument(
        "--minutes", type=float, default=90, help="no round begins after so much time; what is left is not measured"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench.json", help="where the figures go")
    return parser


def _options(arguments: Sequence[str] | None) -> Options:
    parser = _parser()
    given = parser.parse_args(arguments)
    pipelines = ("" if given.quick else BESIDE) if given.pipelines is None else given.pipelines
    sizes = given.sizes or ("1000,10000" if given.quick else KNOWN)
    plans = tuple(_plan(int(size), quick=given.quick) for size in sizes.split(",") if int(size))
    return Options(
        plans=plans,
        steady=not (given.quick or given.no_steady),
        stock=given.stock,
        bound=timedelta(minutes=given.minutes),
        out=given.out,
        only=_names(parser, "--only", given.only, _contestants()),
        kafka=given.kafka or given.all,
        flink=given.flink or given.all,
        cold=given.cold or given.all,
        pipelines=_names(parser, "--pipelines", pipelines, BESIDE.split(",")),
    )


def _contestants() -> list[str]:
    return [*(one.name for one in (*baselines(stock=True), DuckDb(), Polars(), TidemillBatch())), Flink.name]


def _names(parser: argparse.ArgumentParser, option: str, text: str, known: Sequence[str]) -> tuple[str, ...]:
    """The names that an option lists; a name that is not known ends the program."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in known:
            parser.error(f"{option}: {name!r} is none of {', '.join(known)}")
    return names


def _plan(size: int, *, quick: bool) -> Plan:
    if quick:
        return Plan(size=size, warm=1, counted=3)
    other = Plan(size=size, warm=1, counted=5 if size <= PLANS[-1].size else 2)
    return next((plan for plan in PLANS if plan.size == size), other)


def _short(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
