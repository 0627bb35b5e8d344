"""The forms of the DAGs that a person triggers: fields in sections, with help in plain words.

A form refuses values of a wrong type itself. What only the ledger can tell, and which fields fit together, is checked
when the run begins, before anything is done: `tidemill_airflow.tasks.asked`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import Param

from tidemill.core.log.offsets import MAX_OFFSET
from tidemill_airflow.tasks.asked import ASK, CANCEL, DO, FROM_NOW, GONE, PLAN, RESUME, SHOW

WHAT, WHICH, LIMITS, WHO = "What to do", "Which records", "Limits", "Who and why"

MOST_RECORDS = 2**53 - 1
"""The greatest count that forms take: browsers know whole numbers exactly up to here.

Every number of a form has a maximum. Airflow accepts any whole number for a run, but cannot send one above 2**64 to the
process of a task: the process ends before it has begun, in every try, and no other run of the DAG starts meanwhile.
"""

_MOST_PARTITIONS = 2**31 - 1

_MODES = {
    PLAN: "plan only: say what would happen, and change nothing",
    DO: "do it",
    RESUME: "resume: complete the backfill that is open",
    CANCEL: "cancel: drop what is not complete. Readers never saw anything of it",
}


def backfill_form(topics: Sequence[str]) -> dict[str, Param]:
    """The form of backfills of a pipeline that reads these topics."""
    places = [f"{topic}-0:0" for topic in topics]
    arrived, offsets, windows = "By arrival in the log", "By offsets", "By windows"
    return {
        "mode": _mode(PLAN, DO, RESUME, CANCEL),
        "from_time": _time("From", arrived, "Records that arrived at this time or later."),
        "to_time": _time("Up to", arrived, "Records that arrived before this time. Empty: up to the last commit."),
        "from_offsets": _text(
            "From",
            offsets,
            "TOPIC-PARTITION:OFFSET, several with commas. The plan without any bounds lists the offsets.",
            examples=places,
        ),
        "to_offsets": _text(
            "Up to",
            offsets,
            "These offsets are not read. A partition that is named in only one of the fields has no other bound; "
            "partitions that are not named are not read.",
        ),
        "from_window": _time("From", windows, "The first window is the one that contains this event time."),
        "to_window": _time("Up to", windows, "Windows that start at this event time or later are not computed."),
        "accept_loss": _loss(),
        **_batch_records(),
        **_who(),
    }


def replay_form(topics: Sequence[str], tables: Sequence[str]) -> dict[str, Param]:
    """The form of replays."""
    return {
        "mode": _mode(PLAN, DO),
        "records": Param(
            "quarantine",
            enum=["quarantine", "late"],
            values_display={"quarantine": "rejected records (quarantine)", "late": "late records"},
            title="Records",
            section=WHICH,
        ),
        "rule": _text("Rejected for", WHICH, "A part of the reason, such as the name of a rule. Not for late records."),
        "table": _text("Late for", WHICH, "A published table. Not for rejected records.", examples=list(tables)),
        "batch": _text("Put aside by batch", WHICH, "For example 7, or 7-9.", examples=["7", "7-9"]),
        "since": _time("Put aside from", WHICH, "At this time or later, by the clock of the batch."),
        "until": _time("Put aside before", WHICH, "By the clock of the batch."),
        "topic": _text("Topic", WHICH, "Empty: all topics.", examples=list(topics)),
        "partition": _number("Partition", WHICH, "Empty: all partitions.", least=0, most=_MOST_PARTITIONS),
        "offset": _number("Offset", WHICH, "Empty: all offsets.", least=0, most=MAX_OFFSET),
        **_batch_records(),
        **_who(),
    }


def decision_form() -> dict[str, Param]:
    """The form of decisions."""
    says = {
        SHOW: "show: say what waits for a decision, and change nothing",
        ASK: "ask: wait until somebody answers under Required Actions",
        "accept": "accept: publish the blocked batch as it is",
        "divert": "divert: send all records of the blocked batch to quarantine",
        "retry": "retry: audit the blocked batch again, after the contract was mended",
        FROM_NOW: "from now: published numbers mean something else from the next batch on",
        GONE: "gone: go on without partitions that the log has lost",
    }
    return {
        "decision": Param(SHOW, enum=list(says), values_display=says, title="Decision", section=WHAT),
        "batch": _number(
            "Blocked batch",
            WHAT,
            "For accept, divert and retry: the batch that you looked at. Another batch is never decided about.",
            least=1,
            most=MAX_OFFSET,
        ),
        "partitions": _text("Lost partitions", WHAT, "For gone: TOPIC-PARTITION, several with commas."),
        **_who("show or ask"),
    }


def rewind_form() -> dict[str, Param]:
    """The form of rewinds."""
    return {
        "mode": _mode(PLAN, DO),
        "to": _number(
            "Return to batch",
            WHAT,
            "Later batches are taken back. 0: before the first batch. The plan without a batch lists the newest ones.",
            least=0,
            most=MAX_OFFSET,
        ),
        **_who("a plan"),
    }


def rebuild_form() -> dict[str, Param]:
    """The form of rebuilds."""
    return {"mode": _mode(PLAN, DO, CANCEL), "accept_loss": _loss(), **_batch_records(), **_who("a plan")}


def verify_form() -> dict[str, Param]:
    """The form of verifications."""
    scope = "What to compare"
    return {
        "from_window": _time("From", scope, "Only windows that start at this event time or later."),
        "to_window": _time("Up to", scope, "Only windows that start before this event time."),
        "sample": Param(
            100,
            type="number",
            exclusiveMinimum=0,
            maximum=100,
            title="Share of the windows, in percent",
            description="Less than 100: windows are chosen at random.",
            section=scope,
        ),
        "seed": Param(
            0,
            type="integer",
            minimum=-MOST_RECORDS,
            maximum=MOST_RECORDS,
            title="Seed",
            description="The same seed chooses the same windows.",
            section=scope,
        ),
    }


def maintenance_form() -> dict[str, Param]:
    """The form of maintenance."""
    return {
        "keep": _text(
            "How far back one may want to go",
            LIMITS,
            "For example 7 days. Empty: as tidemill.toml says.",
            examples=["7 days", "30 days"],
        )
    }


def _mode(*modes: str) -> Param:
    return Param(
        PLAN,
        enum=list(modes),
        values_display={mode: _MODES[mode] for mode in modes},
        title="Mode",
        description="Read the plan in the log of the task, then trigger it again.",
        section=WHAT,
    )


def _who(needed_unless: str = "") -> dict[str, Param]:
    """Who and why. With `needed_unless`, the task refuses to do anything else without a reason."""
    title, reason = "Why", "Your reason. The ledger keeps it."
    if needed_unless:
        title, reason = "Why (required)", f"{reason} Only {needed_unless} needs none."
    return {
        "by": _text("Who", WHO, "Empty: the user of Airflow who triggers the run, if Airflow knows it."),
        "why": _text(title, WHO, reason, format="multiline"),
    }


def _batch_records() -> dict[str, Param]:
    empty = "Empty: the limit of the project."
    return {"batch_records": _number("Most records in a batch", LIMITS, empty, least=1, most=MOST_RECORDS)}


def _loss() -> Param:
    return Param(
        False,
        type="boolean",
        title="Continue without records that the log no longer holds",
        description="They no longer count in the results.",
        section=LIMITS,
    )


def _text(title: str, section: str, description: str, **more: Any) -> Param:
    return Param(None, type=["null", "string"], title=title, description=description, section=section, **more)


def _time(title: str, section: str, description: str) -> Param:
    return _text(title, section, description, format="date-time")


def _number(title: str, section: str, description: str, *, least: int, most: int) -> Param:
    return Param(
        None,
        type=["null", "integer"],
        minimum=least,
        maximum=most,
        title=title,
        description=description,
        section=section,
    )
