"""The crash matrix with Kafka as the log, and both tables sent to topics of Kafka: every boundary, every way to fail.

The oracle is an unbroken run, a plain recomputation from the raw log, and what readers of committed records were sent.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from batch.test_batch_kills import be_killed
from kafka.conftest import Cluster
from support.connect import ConnectServer
from support.projects import Mill, rows_of, somebody, without_own
from support.recovery import WIDE_READS, WIDE_WRITES, a_wide_mill, finish, paused, recomputed
from tidemill.core.errors import Fenced, LogUnreachable
from tidemill.core.protocol import failpoints
from tidemill.core.protocol.failpoints import VARIABLE, Injected, boundaries_of
from tidemill.log.reading import read_topic
from tidemill.project.project import Project
from tidemill.project.settings import FILE

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

SENT = ["sent:OUT-sums", "sent:OUT-totals"]
"""The writes of a batch besides those to tables; `OUT` is another word in each test."""

WRITES = [*WIDE_WRITES[:-1], *SENT, WIDE_WRITES[-1]]
PLACES = [f"{side}:{name}" for name in (*WIDE_READS, *WRITES) for side in ("before", "after")]
SHORT = ("before:records:sums", "after:sent:OUT-sums")

Seen = dict[str, list[dict[str, Any]]]
Copy = Callable[..., Mill]


def shortened(cases: list[tuple[Any, ...]], *marks: Any) -> list[Any]:
    """The cases; those that are not short are crashes, the others have these marks."""
    short = [place in SHORT and not again for place, again in cases]
    return [pytest.param(*c, marks=marks if s else pytest.mark.crash) for c, s in zip(cases, short, strict=True)]


@pytest.fixture(autouse=True)
def _answers_that_can_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failpoints, "_lost", set())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, spark: Any, cluster: Cluster) -> Path:
    """A wide mill after its first batch. Its records lie in topics of the broker, for all copies; Spark reads them."""
    folder = tmp_path_factory.mktemp("made")
    a_wide_mill(folder, spark, log={"kafka": cluster.broker.servers}, driver_records=0)
    return folder


@pytest.fixture(scope="module")
def copy(made: Path, spark: Any, cluster: Cluster) -> Copy:
    """Gives a copy that sends to topics of its own; `remote` is where processes of their own run Spark.

    If it is `alone`, the process of a batch reads its records, without Spark.
    """

    def give(folder: Path, *, remote: str = "", alone: bool = False) -> Mill:
        shutil.copytree(made, folder, dirs_exist_ok=True)
        out = f"out-{uuid.uuid4().hex[:8]}"
        file = folder / "pipelines" / "pipeline.py"
        text = file.read_text()
        for table in ("sums", "totals"):
            cluster.topic(name=f"{out}-{table}")
            text = text.replace(f'contract="{table}"', f'contract="{table}", topic="{out}-{table}"')
        file.write_text(text)
        settings = folder / FILE
        text = settings.read_text()
        if remote:
            text = text.replace("[spark]", f'[spark]\nremote = "{remote}"')
        if alone:
            text = text.replace('"driver_records" = 0', '"driver_records" = 1000')
        settings.write_text(text)
        return Mill(Project.load(folder), spark, "wide")

    return give


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, copy: Copy) -> Seen:
    """What an unbroken run shows, which is what the raw log gives."""
    mill = copy(tmp_path_factory.mktemp("whole"))
    mill.catch_up()
    seen = everything(mill)
    assert {name: len(rows) for name, rows in seen.items() if name in ("sums", "totals")} == {"sums": 9, "totals": 5}
    assert {name: seen[name] for name in ("sums", "totals")} == recomputed(mill)
    for table in ("sums", "totals"):
        # The first batch published when nothing was sent yet.
        rows = [row for row in rows_of(mill.project.published_uri(table)) if row["batch_id"] > 1]
        assert newest(seen[f"sent {table}"]) == {(row["window_start"], row.get("user")): row["n"] for row in rows}
    return seen


def newest(messages: list[dict[str, Any]]) -> dict[tuple[datetime, str | None], int]:
    """Of each window and key the count that was sent last."""
    found = {}
    for message in sorted(messages, key=lambda m: int(dict(m["headers"])["tidemill.batch"])):
        row = json.loads(message["value"])
        assert json.loads(message["key"]).items() <= row.items()
        found[datetime.fromisoformat(row["window_start"]), row.get("user")] = row["n"]
    return found


def everything(mill: Mill) -> Seen:
    """All that readers of tables and topics are shown."""
    found = {name: without_own(rows) for name, rows in mill.everything().items()}
    for sink in mill.project.pipeline("wide").sinks:
        records = read_topic(mill.log, sink.topic or "")
        rows = [{"key": r.key, "value": r.value, "headers": r.headers} for r in records]
        found[f"sent {sink.table}"] = sorted(rows, key=str)
    return found


def here(mill: Mill, place: str) -> str:
    """The place with the names of this mill's topics."""
    out = (mill.project.pipeline("wide").sinks[0].topic or "").removesuffix("-sums")
    return place.replace("OUT", out)


def test_no_boundary_is_left_out(tmp_path: Path, copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    met: list[str] = []
    monkeypatch.setattr(failpoints, "_reach", lambda side, name, _: met.append(name) if side == "before" else None)
    mill = copy(tmp_path)
    mill.catch_up()
    listed = {b.name for b in boundaries_of(mill.project.pipeline("wide"))}
    assert set(met) == listed - {"claimed", "cancelled", "upkeep"}
    assert set(met) == {here(mill, name) for name in (*WIDE_READS, *WRITES)}
    writes = [here(mill, name) for name in WRITES]
    assert [name for name in met if name in writes] == writes


@pytest.mark.parametrize(("place", "again"), shortened([(place, again) for place in PLACES for again in (0, 1)]))
def test_a_step_that_fails_changes_nothing_in_the_end(  # noqa: PLR0917
    tmp_path: Path, copy: Copy, whole: Seen, monkeypatch: pytest.MonkeyPatch, place: str, again: int
) -> None:
    # Each place is met in both ways, for the time of one.
    mill = copy(tmp_path, alone=bool(again))
    monkeypatch.setenv(VARIABLE, f"{here(mill, place)}=raise")
    for number in range(1 + again):
        try:
            mill.run(drain=True)
        except Injected:
            continue
        # A retry does not come to every step.
        assert number
    monkeypatch.delenv(VARIABLE)
    mill.catch_up()
    assert everything(mill) == whole


@pytest.mark.parametrize("place", [p if p == SENT[0] else pytest.param(p, marks=pytest.mark.crash) for p in WRITES])
def test_an_answer_that_is_lost_changes_nothing_in_the_end(
    tmp_path: Path, copy: Copy, whole: Seen, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    mill = copy(tmp_path)
    monkeypatch.setenv(VARIABLE, f"{here(mill, place)}=lose")
    if place in SENT:
        with pytest.raises(LogUnreachable):
            mill.run(drain=True)
    else:
        mill.run(drain=True)
    assert failpoints._lost
    monkeypatch.delenv(VARIABLE)
    mill.catch_up()
    assert everything(mill) == whole


@pytest.mark.parametrize(
    "place",
    [
        pytest.param("before:sent:OUT-sums", marks=pytest.mark.long),
        *(pytest.param(p, marks=pytest.mark.crash) for p in ("after:sent:OUT-sums", "before:sent:OUT-totals")),
        *(
            pytest.param(p, marks=pytest.mark.crash)
            for p in ("after:planned", "before:records:sums", "before:committed")
        ),
    ],
)
def test_an_attempt_that_wakes_up_when_its_batch_is_committed_sends_nothing(
    tmp_path: Path, copy: Copy, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    mill = copy(tmp_path)
    seen: Seen = {}

    def meanwhile() -> None:
        finish(mill, 0)
        seen.update(everything(mill))

    happened = paused(monkeypatch, here(mill, place), meanwhile)
    with pytest.raises(Fenced):
        mill.run(executor=somebody("the slower"))
    assert happened
    assert seen["sent sums"]
    assert everything(mill) == seen


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    with ConnectServer(tmp_path_factory.mktemp("connect")) as server:
        yield server


@pytest.mark.parametrize(
    ("place", "again"),
    shortened([*((p, 0) for p in PLACES), *((f"after:{name}", 1) for name in WRITES)], pytest.mark.long),
)
def test_a_process_that_is_killed_changes_nothing_in_the_end(  # noqa: PLR0917
    tmp_path: Path, copy: Copy, whole: Seen, connect: ConnectServer, place: str, again: int
) -> None:
    mill = copy(tmp_path, remote=connect.remote)
    be_killed(tmp_path, here(mill, place), again)
    mill.catch_up()
    assert everything(mill) == whole
