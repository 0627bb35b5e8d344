"""What people can have done to a pipeline as a whole: the fields of each action, and what it would do.

A plan has the lines that the task of the action logs with *plan only*. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tidemill.core.plan.amendments import Reason, SideOutput
from tidemill.repair.job import AmendmentJob
from tidemill_airflow.naming import rebuild_dag_of, replay_dag_of, rewind_dag_of, verify_dag_of
from tidemill_airflow.pages.sight import Sight
from tidemill_airflow.tasks.asked import CANCEL, compared_of, records_of, replay_of, target_of

YES = "yes"
"""What a box that is ticked sends."""

_DIGITS = 18


class Input(Enum):
    """What a field takes."""

    TEXT = "text"
    NUMBER = "number"
    BATCH = "batch"
    BOX = "box"
    RECORDS = "records"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a form."""

    name: str
    label: str
    help: str = ""
    takes: Input = Input.TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something that a DAG does to a pipeline.

    `check` refuses values that do not fit together. `plan` says what would happen; None if nothing is changed, so that
    nobody needs a plan. `needed` are the fields without which the plan only helps to choose. `modes` are what one can
    ask for instead of doing it.
    """

    name: str
    title: str
    words: str
    start: str
    dag_of: Callable[[str], str]
    fields: tuple[Field, ...]
    check: Callable[[Mapping[str, Any]], object]
    plan: Callable[[AmendmentJob, Mapping[str, Any]], Iterable[str]] | None = None
    needed: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    shows_values: bool = False

    def given(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """The fields that are filled in, as the form of the DAG takes them.

        A number that is none stays a text, which `check` refuses in words.
        """
        return values_of(self.fields, asked)

    def is_complete(self, given: Mapping[str, Any]) -> bool:
        """Whether it can be started with these values."""
        return all(name in given for name in self.needed)

    def lines(self, sight: Sight, given: Mapping[str, Any]) -> list[str]:
        """What it would do.

        Raises:
            TidemillError: it would be refused, for this reason.
        """
        if self.plan is None:
            return []
        job = AmendmentJob(project=sight.project, pipeline=sight.name, reason=Reason(by="a preview"))
        return list(self.plan(job, given))


def values_of(fields: Sequence[Field], asked: Mapping[str, str]) -> dict[str, Any]:
    """The fields that are filled in, with values of their types. A number that is none stays a text."""
    found = {field: asked.get(field.name, "").strip() for field in fields}
    return {field.name: _value(field.takes, text) for field, text in found.items() if text}


def _value(takes: Input, text: str) -> Any:
    if takes is Input.BOX:
        return text == YES
    if takes not in (Input.NUMBER, Input.BATCH):
        return text
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS:
        return int(text)
    whole, dot, part = text.partition(".")
    known = dot and (whole + part).isascii() and (whole + part).isdigit() and len(text) <= _DIGITS
    return float(text) if known else text


def _rewind(job: AmendmentJob, given: Mapping[str, Any]) -> Iterable[str]:
    from tidemill.inspect.lines import rewind_lines
    from tidemill.inspect.waiting import committed_lines
    from tidemill.repair.rewind import preview

    to = target_of(given)
    if to is None:
        return ["the newest batches, to one of which you can return:", *committed_lines(job.ledger)]
    return rewind_lines(preview(job, to))


def _rebuild(job: AmendmentJob, _: Mapping[str, Any]) -> Iterable[str]:
    from tidemill.inspect.rebuilding import rebuild_lines

    return rebuild_lines(job.project, job.pipeline)


def _replay(job: AmendmentJob, given: Mapping[str, Any]) -> Iterable[str]:
    from tidemill.inspect.repairs import repair_lines

    if "records" not in given:
        return []
    late, chosen = replay_of(given)
    return repair_lines(job, SideOutput.LATE if late else SideOutput.QUARANTINE, chosen)


def _check_replay(given: Mapping[str, Any]) -> None:
    replay_of(given)
    records_of(given)


BATCH_RECORDS = Field(
    name="batch_records", label="Most records in a batch", help="empty: the project's", takes=Input.NUMBER
)
ACCEPT_LOSS = Field(name="accept_loss", label="Go on without records that the log no longer holds", takes=Input.BOX)

REPLAY = Action(
    name="replay",
    title="Replay",
    words="Puts records through the pipeline once more that were rejected or came too late. What still fails goes "
    "back, with its new reasons.",
    start="Start the replay",
    dag_of=replay_dag_of,
    fields=(
        Field(name="records", label="Records", takes=Input.RECORDS),
        Field(name="rule", label="Rejected for", help="a part of the reason; empty: all"),
        Field(name="table", label="Late for the table", help="only for late records"),
        Field(name="batch", label="Put aside by batch", help="for example 7, or 7-9; empty: all"),
        Field(name="topic", label="Topic", help="empty: all"),
        Field(name="partition", label="Partition", help="empty: all", takes=Input.NUMBER),
        Field(name="offset", label="Offset", help="of one record; empty: all", takes=Input.NUMBER),
        Field(name="since", label="Put aside from", help="UTC, for example 2026-03-01 12:00:00"),
        Field(name="until", label="Put aside before", help="UTC"),
        BATCH_RECORDS,
    ),
    check=_check_replay,
    plan=_replay,
    needed=("records",),
    shows_values=True,
)

REWIND = Action(
    name="rewind",
    title="Rewind",
    words="Undoes batches: offsets, watermark, state and tables return to what they were after an earlier batch. The "
    "next batch reads on from there.",
    start="Start the rewind",
    dag_of=rewind_dag_of,
    fields=(
        Field(name="to", label="Return to batch", help="later batches are undone; 0: before all", takes=Input.BATCH),
    ),
    check=target_of,
    plan=_rewind,
    needed=("to",),
)

REBUILD = Action(
    name="rebuild",
    title="Rebuild",
    words="Builds all tables again from the log, beside the published ones, and switches to them at the end. Live "
    "batches go on meanwhile.",
    start="Start the rebuild",
    dag_of=rebuild_dag_of,
    fields=(BATCH_RECORDS, ACCEPT_LOSS),
    check=records_of,
    plan=_rebuild,
    modes=(CANCEL,),
)

VERIFY = Action(
    name="verify",
    title="Verify",
    words="Computes published tables again from the log, and fails if they differ. Nothing is changed.",
    start="Start the verification",
    dag_of=verify_dag_of,
    fields=(
        Field(name="from_window", label="Windows from", help="event time in UTC; empty: all"),
        Field(name="to_window", label="Windows before", help="event time in UTC"),
        Field(name="sample", label="Share of the windows, in percent", help="empty: all", takes=Input.NUMBER),
    ),
    check=compared_of,
)

ACTIONS = (REPLAY, REWIND, REBUILD, VERIFY)
