"""Stories of records that are rejected first and let in later, for tests that compare them with records never rejected.

A record that is let in counts where it lies in the log. So in the end all is as if no record had been rejected, as long
as rejected records would not have moved the watermark: their event times are not ahead.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from amend.conftest import an_amendment, done
from support.firings import firings
from support.projects import NOW, Mill, an_event
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.repair.selection import selection
from tidemill.core.repair.side_outputs import Selection
from tidemill.project.project import Project
from tidemill.repair.repair import repair

_SAID = 'timing="timing", index="nth"'
_TWICE = "AfterWatermark(early=AfterCount(2), late=AfterCount(1))"


def _trigger(trigger: str, accumulation: str, **more: str) -> str:
    told = "".join(f', {name}="{column}"' for name, column in more.items())
    return f'trigger={trigger}, accumulation="{accumulation}", {_SAID}{told}'


KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "count": ("TumblingBuffer(CountPolicy(3))", {}),
    "idle": ("TumblingBuffer(CountPolicy(2), idle_timeout='3 minutes')", {}),
    "sorted": ("SlidingBuffer(CountPolicy(3), order='event_time')", {}),
    "time": ("TumblingBuffer(TimePolicy('15 s'))", {"bounds": True}),
    "tumbling": (
        "Tumbling('10 s')",
        {"trigger": _trigger(_TWICE, "discarding"), "lateness": "10 s", "bounds": True},
    ),
    "retracting": (
        "Sliding('20 s', '10 s')",
        {
            "trigger": _trigger(
                "AfterWatermark(early=AfterCount(2))", "accumulating_and_retracting", operation="operation"
            ),
            "bounds": True,
        },
    ),
    "sessions": (
        "Session('10 s')",
        {"trigger": _trigger("AfterWatermark(early=AfterCount(3))", "accumulating"), "bounds": True},
    ),
    "replacing": (
        "Session('10 s')",
        {"trigger": _trigger("AfterWatermark(early=AfterCount(2))", "accumulating_and_replacing"), "bounds": True},
    ),
    "global": ("Global()", {"trigger": _trigger("Repeatedly(AfterCount(3))", "accumulating")}),
    "of all": ("TumblingBuffer(CountPolicy(4))", {"keyed": False}),
}
"""Ordered windows, and how each is declared."""


@dataclass(frozen=True)
class Story:
    """Batches of records of each partition, and which batches' rejected records are let in after which batch."""

    batches: Sequence[Sequence[Sequence[bytes]]]
    admitted: dict[int, Sequence[int]]
    widened: int


def drawn(seed: int, *, batches: int = 8) -> Story:
    """A story of two partitions and three users; about every fifth record is rejected at first."""
    luck, newest, found = random.Random(seed), [0, 0], []
    widened = luck.randrange(2, batches - 1)
    for _ in range(batches):
        batch: list[list[bytes]] = [[], []]
        for partition in (0, 1):
            for _ in range(luck.randrange(5)):
                user, odd = luck.choice("abc"), luck.random() < 0.25
                second = newest[partition] + luck.randrange(-8, 1 if odd else 7)
                newest[partition] = max(newest[partition], second)
                amount = luck.randrange(1, 9) + (2_000_000 if odd else 0)
                batch[partition].append(an_event(max(second, 0), user, amount))
        found.append(batch)
    admitted = {at: luck.sample(range(1, widened + 1), 1) for at in range(widened, batches) if luck.random() < 0.6}
    return Story(found, admitted, widened)


def a_mill(folder: Path, session: Any, kind: str, *, collect: bool = True, **settings: Any) -> Mill:
    """A pipeline with this kind of windows over two partitions."""
    window, declared = KINDS[kind]
    return firings(folder, session, window, delay="3 s", partitions=2, collect=collect, **declared, **settings)


def widen(mill: Mill) -> Mill:
    """The same with a contract that rejects none of the records any more."""
    contract = mill.project.folder / "data_contracts" / "events.odcs.yaml"
    contract.write_text(contract.read_text().replace("maximum: 1000000", "maximum: 3000000"))
    return Mill(Project.load(mill.project.folder), mill.session, mill.name)


def fed(mill: Mill, batch: Sequence[Sequence[bytes]], number: int) -> None:
    """The next batch of a story, at its minute."""
    for partition, values in enumerate(batch):
        mill.feed(values, partition=partition)
    mill.run(clock=NOW + timedelta(minutes=number))


def never_rejected(mill: Mill, story: Story) -> Mill:
    """The story with the wider contract from the beginning."""
    mill = widen(mill)
    for number, batch in enumerate(story.batches, start=1):
        fed(mill, batch, number)
    return mill


def let_in_later(mill: Mill, story: Story, disturb: Callable[[Mill, int], None] = lambda *_: None) -> Mill:
    """The story as it went: some records are let in on the way, the others in the end; `disturb` does something else.

    It is called before and after each repair, once none of the records would be rejected any more.
    """
    for number, batch in enumerate(story.batches, start=1):
        fed(mill, batch, number)
        if number == story.widened:
            mill = widen(mill)
        for batch_id in story.admitted.get(number, ()):
            disturb(mill, number)
            let_in(mill, batch=str(batch_id))
            disturb(mill, number)
    let_in(mill)
    disturb(mill, len(story.batches))
    let_in(mill)
    return mill


def let_in(mill: Mill, **chosen: Any) -> None:
    """A repair of rejected records."""
    done(repair(an_amendment(mill), SideOutput.QUARANTINE, selection(**chosen) if chosen else Selection()))


OF_THREE = """
from tidemill import *

with Pipeline("firings", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts")
    buffered = events.key_by("user").window(TumblingBuffer(CountPolicy(2)))
    buffered.aggregate(n=Count(), amount=Sum("amount")).publish("firings", contract="firings")
    pairs = events.key_by("user").window(SlidingBuffer(CountPolicy(2)))
    pairs.aggregate(n=Count(), amount=Sum("amount")).publish("pairs", contract="pairs")
    minutes = events.key_by("user").window(Tumbling("1 minute"))
    minutes.aggregate(n=Count(), amount=Sum("amount")).publish("minutes", contract="minutes", trigger="on_update")
"""
PAIRS = [1, 2_000_001, 2_000_003, 7, 9]
"""The sums of each two neighbours of the key null, once the rejected record counts."""


def of_three_tables(folder: Path, session: Any, **settings: Any) -> Mill:
    """A pipeline with two tables of firings and one of windows, with records of a key that is null, one rejected."""
    mill = firings(folder, session, "TumblingBuffer(CountPolicy(2))", collect=False, **settings)
    (folder / "pipelines" / "pipeline.py").write_text(OF_THREE)
    contract = (folder / "data_contracts" / "firings.odcs.yaml").read_text()
    contract = contract.replace("user, logicalType: string, required: true", "user, logicalType: string")
    bounds = (
        "      - {name: window_start, logicalType: timestamp}\n      - {name: window_end, logicalType: timestamp}\n"
    )
    for name, text in (("firings", contract), ("pairs", contract), ("minutes", contract + bounds)):
        named = text.replace("id: firings", f"id: {name}").replace("- name: firings", f"- name: {name}")
        (folder / "data_contracts" / f"{name}.odcs.yaml").write_text(named)
    mill = Mill(Project.load(folder), session, "firings")
    for amounts in ([1, 2_000_000], [3, 4], [5]):
        mill.feed([*(an_event(1, None, amount) for amount in amounts), an_event(1, "b", 1)])
        mill.run()
    return mill
