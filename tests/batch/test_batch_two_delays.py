"""A topic that is read twice, with two delays: each table is what it would be in a pipeline with its delay alone."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment
from support.firings import CONTRACT
from support.projects import EVENTS_CONTRACT, NO_SPARK, NOW, Mill, a_project, an_event, rows_of
from support.writers import WRITERS
from tidemill.core.errors import TidemillError
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.plan.work import Kind
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.side_outputs import Selection
from tidemill.inspect.state_size import state_sizes
from tidemill.maintain.maintenance import maintain
from tidemill.project.project import Project
from tidemill.repair.backfill import backfill
from tidemill.repair.rebuild import rebuild
from tidemill.repair.repair import repair
from tidemill.repair.rewind import rewind
from tidemill.run.batch import NothingToDo

HEAD = """
from tidemill import *

with Pipeline("firings", every="1 minute", idle_timeout=None) as pipeline:
"""
READ = '    {name} = pipeline.read("events", contract="events", event_time="ts", delay="{delay}")\n'
USERS = """\
    {name} = {name}.with_columns(user="coalesce(user, '')").key_by("user")
"""
PUBLISH = """\
    {read}.window({window}).aggregate(n=Count(), amount=Sum("amount")).publish("{table}", contract="{table}"{more})
"""
BOUNDS = """\
      - {name: window_start, logicalType: timestamp}
      - {name: window_end, logicalType: timestamp}
"""
TIMING = "      - {name: timing, logicalType: string}\n"
TOLD = TIMING + "      - {name: op, logicalType: string}\n"

KINDS = {
    "minutes": ('Tumbling("10 s"), allowed_lateness="4 s"', ', timing="timing"', BOUNDS + TIMING),
    "updated": ('Tumbling("10 s")', ', trigger="on_update", timing="timing"', BOUNDS + TIMING),
    "sliding": ('Sliding("20 s", "5 s"), allowed_lateness="2 s"', "", BOUNDS),
    "merged": ('Sliding("20 s", "2 s")', "", BOUNDS),
    "sessions": ('Session("3 s"), allowed_lateness="2 s"', ', timing="timing"', BOUNDS + TIMING),
    "firings": (
        'Tumbling("10 s"), allowed_lateness="6 s"',
        ', trigger=AfterWatermark(early=AfterCount(2), late=AfterCount(1)), accumulation="accumulating_and_retracting"'
        ', timing="timing", operation="op"',
        BOUNDS + TOLD,
    ),
    "around": ('RecordWindows("6 s")', "", BOUNDS),
    "by_time": ('TumblingBuffer(TimePolicy("7 s"))', "", BOUNDS),
    "in_order": ('SlidingBuffer(CountPolicy(2), order="event_time")', "", ""),
}
EARLY = "too_early: event time too early: its windows would begin before year 1"
FEW = ["minutes", "sessions", "firings"]
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 10))]
SOON, FINAL = ("soon", "2 s"), ("final", "15 s")


def a_mill(
    folder: Path, *reads: tuple[str, str], kinds: Iterable[str] = KINDS, session: Any = NO_SPARK, **settings: Any
) -> Mill:
    """A pipeline with a table of each kind for each of these reads, which have a name and a delay."""
    text, contracts = HEAD, {"events": EVENTS_CONTRACT.replace("EXTRA", "keep")}
    text += "".join(READ.format(name=name, delay=delay) + USERS.format(name=name) for name, delay in reads)
    plain = "".join(line for line in CONTRACT.splitlines(keepends=True) if "amounts" not in line)
    for read, _ in reads:
        for kind in kinds:
            window, more, columns = KINDS[kind]
            table = f"{read}_{kind}"
            text += PUBLISH.format(read=read, window=window, table=table, more=more)
            contracts[table] = plain.replace("firings", table) + columns
    mill = Mill(a_project(folder, text, contracts, **settings), session, "firings")
    mill.log.create_topic("events", partitions=2)
    return mill


def all_three(folder: Path, kinds: Iterable[str] = KINDS) -> tuple[Mill, Mill, Mill]:
    """With both reads, and with each alone."""
    both = a_mill(folder / "both", SOON, FINAL, kinds=kinds)
    return both, a_mill(folder / "soon", SOON, kinds=kinds), a_mill(folder / "final", FINAL, kinds=kinds)


def again(mill: Mill) -> Mill:
    """The same as another process finds it: a rebuild may have made a new generation."""
    return Mill(Project.load(mill.project.folder), mill.session, mill.name)


def feed(draw: random.Random, mills: Iterable[Mill], at: int) -> None:
    """The same records for all, out of order by up to 40 s."""
    for partition in (0, 1):
        drawn = [(at + draw.randint(-35, 5), draw.choice("abc"), draw.randint(1, 9)) for _ in range(draw.randint(0, 7))]
        for mill in mills:
            mill.feed([an_event(*each) for each in drawn], partition=partition)


def run(mill: Mill, number: int, **more: Any) -> Any:
    return again(mill).run(clock=NOW + timedelta(seconds=10 * number), **more)


def seen(mill: Mill, read: str) -> dict[str, list[Any]]:
    """The rows of the tables of a read, and what was late for them. A repair takes one batch more for some tables."""
    own, mill = {"published_at", "recorded_at", "batch_id"}, again(mill)
    found = {f"{read}_{kind}": rows_of(mill.project.published_uri(f"{read}_{kind}")) for kind in KINDS}
    late = rows_of(mill.project.table_uri(mill.name, "late"))
    found["late"] = [row for row in late if row["table_name"].startswith(read)]
    kept = {table: [{k: v for k, v in row.items() if k not in own} for row in rows] for table, rows in found.items()}
    return {table: sorted(rows, key=str) for table, rows in kept.items()}


def told(mill: Mill, read: str) -> dict[str, Any]:
    """When their oldest open windows start."""
    project = again(mill).project
    flow, view = project.pipeline(mill.name), project.ledger(mill.name).view()
    sizes = {s.table: s.oldest_open for s in state_sizes(project, flow, view.position)}
    return {table: size for table, size in sizes.items() if table.startswith(read)}


def check(both: Mill, soon: Mill, final: Mill) -> None:
    for alone, read in ((soon, "soon"), (final, "final")):
        expected, found = seen(alone, read), seen(both, read)
        for table, rows in expected.items():
            assert found[table] == rows, table
        assert told(both, read) == told(alone, read)


def amended(draw: random.Random, mill: Mill) -> tuple[int, str]:
    """One amendment at random, and why it was refused, without the numbers of batches."""
    amendment, what, back = an_amendment(mill), draw.randrange(5), draw.randrange(3)
    live = [b.batch_id for b in amendment.ledger.past().batches() if b.kind is Kind.LIVE]
    ways: list[Callable[[], Iterable[Any]]] = [
        lambda: rewind(amendment, live[max(-1 - back, -len(live))]),
        lambda: backfill(amendment, OfOffsets(since={}, until={})),
        lambda: repair(amendment, SideOutput.LATE, Selection()),
        lambda: maintain(amendment.project, mill.name, keep=timedelta(0), now=datetime.now(UTC)),
        lambda: rebuild(amendment),
    ]
    try:
        list(ways[what]())
    except TidemillError as error:
        return what, re.sub(r"\d+", "N", error.message)
    return what, ""


@pytest.mark.parametrize("seed", SEEDS)
def test_tables_are_those_of_a_pipeline_with_their_delay_alone(tmp_path: Path, seed: int) -> None:
    draw, mills = random.Random(seed), all_three(tmp_path, KINDS if seed else [*FEW, "by_time"])
    for number in range(6):
        feed(draw, mills, 10 * number)
        for mill in mills:
            run(mill, number, drain=number == 5)
        check(*mills)
    assert len(seen(mills[0], "final")["late"]) < len(seen(mills[0], "soon")["late"])


@pytest.mark.long
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(4, 10))])
def test_amendments_leave_them_so(tmp_path: Path, seed: int) -> None:
    draw, mills, ways = random.Random(seed), all_three(tmp_path), set[int]()
    for number in range(9):
        feed(draw, mills, 10 * number)
        for mill in mills:
            run(mill, number)
        if number > 1 and draw.random() < 0.7:
            chosen = draw.random()
            found = [amended(random.Random(chosen), mill) for mill in mills]
            assert found == [found[0]] * 3
            ways.add(found[0][0])
        check(*mills)
    assert ways


def test_each_way_of_going_back_leaves_them_so(tmp_path: Path) -> None:
    draw, mills = random.Random(4), all_three(tmp_path, ["minutes", "firings"])
    for what in (0, 1, 2, 3, 4):
        for number in (0, 1) if what == 0 else (what + 1,):
            feed(draw, mills, 10 * number)
            for mill in mills:
                run(mill, number)
        assert [amended(_Chosen(what, 1), mill) for mill in mills] == [(what, "")] * 3
        check(*mills)
    feed(draw, mills, 60)
    for mill in mills:
        run(mill, 6)
    check(*mills)


class _Chosen(random.Random):
    """Draws these numbers, one after the other."""

    def __init__(self, *numbers: int) -> None:
        super().__init__()
        self.numbers = iter(numbers)

    def randrange(self, *_: Any, **__: Any) -> int:
        return next(self.numbers)


def test_a_shorter_delay_closes_windows_without_a_record(tmp_path: Path) -> None:
    mill = a_mill(tmp_path, SOON, FINAL, kinds=["minutes"])
    mill.feed([an_event(0), an_event(18)])
    mill.feed([an_event(18)], partition=1)
    run(mill, 1)
    assert not rows_of(mill.project.published_uri("final_minutes"))
    assert isinstance(run(mill, 2), NothingToDo)
    file = mill.project.folder / "pipelines" / "pipeline.py"
    file.write_text(file.read_text().replace('delay="15 s"', 'delay="3 s"'))
    run(mill, 3)
    assert [row["n"] for row in rows_of(mill.project.published_uri("final_minutes"))] == [1]


def test_no_table_has_a_watermark_before_year_1(tmp_path: Path) -> None:
    mill = a_mill(tmp_path, ("soon", "2 s"), ("final", "6 hours"), kinds=["minutes"])
    early = b'{"ts": "0001-01-01T05:00:00+00:00", "user": "a", "amount": 1}'
    for partition in (0, 1):
        mill.feed([early], partition=partition)
    run(mill, 1)
    assert [row["reasons"] for row in mill.own("quarantine")] == [[EARLY]] * 2


@pytest.mark.spark
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("some", [["minutes", "firings"], pytest.param(list(KINDS), marks=pytest.mark.long)])
def test_spark_computes_the_same(tmp_path: Path, spark: Any, writer: str, some: list[str]) -> None:
    draw, (_, soon, final) = random.Random(3), all_three(tmp_path, some)
    both = a_mill(tmp_path / "spark", SOON, FINAL, kinds=some, session=spark, writer=writer, aggregate="spark")
    for number in range(4):
        feed(draw, (both, soon, final), 20 * number)
        for mill in (both, soon, final):
            run(mill, 2 * number)
    check(both, soon, final)
    assert seen(both, "final")["final_minutes"]


def test_after_a_change_of_the_delay_no_window_closes_a_second_time(tmp_path: Path) -> None:
    draw, mill, marks = random.Random(5), a_mill(tmp_path, SOON, FINAL, kinds=["minutes", "firings"]), list[int]()
    for number, delay in enumerate(["15 s"] * 3 + ["60 s"] * 5 + ["3 s"] * 3):
        file = mill.project.folder / "pipelines" / "pipeline.py"
        file.write_text(re.sub(r'delay="(15|60|3) s"', f'delay="{delay}"', file.read_text()))
        feed(draw, [mill], 10 * number)
        run(mill, number)
        position = again(mill).project.ledger("firings").view().position
        marks.append(position.watermark_of("final_firings"))
        assert marks == sorted(marks)
        assert position.watermark_of("final_minutes") == marks[-1] <= position.watermark
    rows = [r for r in rows_of(mill.project.published_uri("final_firings")) if r["op"] == "insert"]
    on_time = [(r["user"], r["window_start"]) for r in rows if r["timing"] == "ON_TIME"]
    assert len(on_time) == len(set(on_time)) > 0
    assert marks[2] == marks[5] < marks[-1]
