"""A pipeline that publishes the firings of ordered windows, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.projects import EVENTS_CONTRACT, Mill, a_project, an_event, rows_of
from tidemill.project.project import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTRACT = """
apiVersion: v3.1.0
kind: DataContract
id: firings
version: 1.0.0
status: active
schema:
  - name: firings
    logicalType: object
    properties:
      - {name: user, logicalType: string, required: true}
      - {name: n, logicalType: integer, required: true}
      - {name: amount, logicalType: integer}
      - {name: amounts, logicalType: array, items: {logicalType: integer}}
"""

BOUNDS = """\
      - {name: window_start, logicalType: timestamp, required: true}
      - {name: window_end, logicalType: timestamp, required: true}
"""

TOLD = {
    "timing": "      - {name: timing, logicalType: string}\n",
    "index": "      - {name: nth, logicalType: integer}\n",
    "last": "      - {name: last, logicalType: boolean}\n",
    "operation": "      - {name: operation, logicalType: string}\n",
}
"""The columns that tell of a firing, for what a declaration calls them: timing, index, last and operation."""

PIPELINE = """
from tidemill import *

with Pipeline("firings", every="1 minute") as pipeline:
    (
        pipeline.read("events", contract="events", event_time="ts", delay="DELAY")
        .filter("coalesce(user, '') != 'nobody'")
        .with_columns(user="coalesce(user, 'unknown')", marker="amount = -1")
        KEYED
        .window(WINDOW, allowed_lateness="LATENESS")
        .aggregate(n=Count(), amount=Sum("amount"), amounts=Collect("amount"))
        .publish("firings", contract="firings"TRIGGER)
    )
"""


def firings(
    folder: Path,
    session: SparkSession,
    window: str,
    *,
    bounds: bool = False,
    keyed: bool = True,
    trigger: str = "",
    lateness: str = "0 s",
    collect: bool = True,
    delay: str = "0 s",
    partitions: int = 1,
    **settings: Any,
) -> Mill:
    """A pipeline that counts, sums and collects amounts of events per user, or of all, and its empty topic `events`."""
    text = PIPELINE.replace("WINDOW", window).replace("DELAY", delay).replace("LATENESS", lateness)
    text = text.replace("TRIGGER", f", {trigger}" if trigger else "")
    text = text.replace("KEYED", '.key_by("user")' if keyed else "")
    contract = CONTRACT + BOUNDS if bounds else CONTRACT
    contract += "".join(line for name, line in TOLD.items() if f'{name}="' in trigger)
    if not collect:
        text = text.replace(', amounts=Collect("amount")', "")
        contract = "".join(line for line in contract.splitlines(keepends=True) if "name: amounts" not in line)
    if not keyed:
        contract = "".join(line for line in contract.splitlines(keepends=True) if "name: user" not in line)
    contracts = {"events": EVENTS_CONTRACT.replace("EXTRA", "keep"), "firings": contract}
    mill = Mill(a_project(folder, text, contracts, **settings), session, "firings")
    mill.log.create_topic("events", partitions=partitions)
    return mill


def feed(mill: Mill, amounts: list[int], user: str | None = "a", *, partition: int = 0) -> None:
    """Append an event for each amount, so many seconds after the begin."""
    mill.feed([an_event(amount, user, amount) for amount in amounts], partition=partition)


def fired(mill: Mill) -> dict[str | None, list[list[int]]]:
    """The amounts of each firing, by user, in the order of batches; firings of one batch are sorted."""
    found: dict[str | None, list[list[int]]] = {}
    for row in sorted(
        rows_of(mill.project.published_uri("firings")), key=lambda r: (r["batch_id"], r["amounts"] or [])
    ):
        assert row["n"] == len(row["amounts"] or [])
        assert row["amount"] == (sum(row["amounts"]) if row["amounts"] else None)
        found.setdefault(row.get("user"), []).append(row["amounts"] or [])
    return found


def changed(mill: Mill, old: str, new: str) -> Mill:
    """The pipeline with another text."""
    path = mill.project.folder / "pipelines" / "pipeline.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return Mill(Project.load(mill.project.folder), mill.session, mill.name)
