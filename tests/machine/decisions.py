"""What people decide about a pipeline, and the batches that follow from it: how each begins, and what is typed."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from machine.conftest import again, an_amendment, ids, run
from machine.neighbours import beside, called
from support.projects import NO_SPARK, Mill, an_event
from tidemill.core.errors import AmendmentError, ConfigError
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import Reason
from tidemill.project import names
from tidemill.project.names import Names
from tidemill.project.project import Project
from tidemill.repair.adopt import adopt
from tidemill.repair.gone import declare_gone
from tidemill.run.batch import NothingToDo

REASON = Reason(by="ana", why="a test")


def show(mill: Mill, partitions: int) -> None:
    """The log shows so many partitions of the topic."""
    file = Path(mill.project.settings.log) / "events" / "topic.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"partitions": partitions}))


def hide(mill: Mill) -> None:
    """A partition that was read disappears, and of the other one there is more to read."""
    show(mill, 1)
    mill.feed([an_event(60), an_event(5, "b"), b"{cut"])


def declare(mill: Mill) -> None:
    """Somebody says that it is gone."""
    ids(declare_gone(an_amendment(mill), [TopicPartition("events", 1)]))


def declare_and_feed(mill: Mill) -> None:
    """The batch after that one."""
    hide(mill)
    declare(mill)
    mill.feed([an_event(75), an_event(66, "b"), an_event(3, "c")])


def bring_back(mill: Mill) -> None:
    """The partition comes back, with more."""
    declare_and_feed(mill)
    run(mill)
    show(mill, 2)
    mill.feed([an_event(71), an_event(6, "c"), b"{cut"], partition=1)


def reword(mill: Mill) -> None:
    """Numbers are declared to mean something else, and there is more to read."""
    file = mill.project.folder / "pipelines" / "pipeline.py"
    file.write_text(file.read_text().replace("!= 'nobody'", "not in ('nobody', 'b')"))
    mill.feed([an_event(60), an_event(61, "b"), an_event(5, "b"), an_event(4, "c"), b"{cut"])


def from_now(mill: Mill) -> None:
    """Somebody decides it, until there is nothing to do."""
    while not isinstance(run(mill, from_now=REASON), NothingToDo):
        pass


def more(mill: Mill) -> None:
    """There is more to read."""
    mill.feed([an_event(60), an_event(61, "b"), an_event(5, "b"), b"{cut"])


def rename(mill: Mill) -> None:
    """The pipeline gets another name, is declared so, and goes on."""
    store = again(mill).project.generations.store
    with suppress(ConfigError):
        names.rename(store, "sums", "totals", REASON, at=datetime.now(UTC))
    assert Names.read(store).renamed == {"sums": "totals"}
    run(called(mill, "totals"))


def another(mill: Mill) -> None:
    """A pipeline of another project declares the same table."""
    beside(mill, mill.project.folder / "second", "other")


def take_over(mill: Mill) -> None:
    """It takes the table over, with its rows, and goes on."""
    other = Mill(Project.load(mill.project.folder / "second"), NO_SPARK, "other")
    amendment = replace(an_amendment(other), pipeline="other")
    with suppress(AmendmentError):
        adopt(amendment, "sums")
    run(other)


@dataclass(frozen=True)
class Decision:
    """How it begins, and what is typed, the same each time. `name` and `folder` are whose the table is in the end."""

    begin: Callable[[Mill], None]
    typed: Callable[[Mill], object]
    name: str = "sums"
    folder: str = "."


DECISIONS = {
    "gone": Decision(hide, declare),
    "without it": Decision(declare_and_feed, run),
    "back again": Decision(bring_back, run),
    "from now": Decision(reword, from_now),
    "rename": Decision(more, rename, name="totals"),
    "adopt": Decision(another, take_over, name="other", folder="second"),
}
