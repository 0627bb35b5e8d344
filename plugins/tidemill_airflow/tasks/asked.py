"""What the values of a form mean. Wrong values and combinations are refused here, before anything is done.

This module does not import Airflow.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tidemill.core.errors import ConfigError, shown
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.protocol.events import Decision
from tidemill.core.repair.selection import OfWindows, Wanted, place_of, selection, wanted, windows_of
from tidemill.core.repair.side_outputs import Selection
from tidemill.core.time.times import duration

PLAN, DO, RESUME, CANCEL = "plan only", "do it", "resume", "cancel"
"""The modes of forms."""

SHOW, ASK, FROM_NOW, GONE = "show", "ask", "from now", "gone"
"""What the form of decisions offers beside the decisions about a blocked batch."""

BOUNDS = ("from_time", "to_time", "from_offsets", "to_offsets", "from_window", "to_window")
"""The fields that say what a backfill reads."""

DECISION_FIELDS = frozenset(("decision", "batch", "partitions", "by", "why"))
BACKFILL_FIELDS = frozenset((*BOUNDS, "mode", "accept_loss", "batch_records", "by", "why"))
REPLAY_FIELDS = frozenset(
    ("mode", "records", "rule", "table", "batch", "since", "until", "topic", "partition", "offset", "batch_records")
) | {"by", "why"}
REWIND_FIELDS = frozenset(("mode", "to", "by", "why"))
REBUILD_FIELDS = frozenset(("mode", "accept_loss", "batch_records", "by", "why"))
VERIFY_FIELDS = frozenset(("from_window", "to_window", "sample", "seed"))
MAINTENANCE_FIELDS = frozenset(("keep",))
RUN_FIELDS = frozenset(("max_records", "max_batches"))
"""The fields of the pipeline's own DAG."""


def check_fields(asked: Mapping[str, Any], fields: Collection[str]) -> None:
    """Refuse a value for a field that the form does not have.

    Raises:
        ConfigError: there is one. The error names the nearest field.
    """
    for name in asked:
        if name not in fields:
            near = difflib.get_close_matches(str(name)[:100], sorted(fields), n=1)
            fix = f"did you mean {near[0]}?" if near else f"the fields are {', '.join(sorted(fields))}"
            raise ConfigError(f"the form has no field {shown(str(name))}", fix=fix)


def mode_of(asked: Mapping[str, Any], modes: Collection[str]) -> str:
    """The mode of a form; `plan only` if none is given.

    Raises:
        ConfigError: there is no such mode.
    """
    mode = str(asked.get("mode") or PLAN)
    if mode not in modes:
        raise ConfigError(f"mode: expected one of {', '.join(modes)}, found {shown(mode)}", fix="choose one of them")
    return mode


def who_of(asked: Mapping[str, Any], user: str | None) -> str:
    """Who asks for a change: the name in the form, or else the user of Airflow.

    Raises:
        ConfigError: nobody is known.
    """
    name = _text(asked, "by") or (user or "").strip()
    if not name:
        raise ConfigError(
            "by: Airflow does not say who triggered this run, and the ledger keeps who asks for a change",
            fix="trigger it again, with your name in `by`",
        )
    return name


def why_of(asked: Mapping[str, Any]) -> str:
    """The reason for a change.

    Raises:
        ConfigError: none is given.
    """
    if not (why := _text(asked, "why")):
        raise ConfigError("why: a change needs a reason, which the ledger keeps", fix="trigger it again, with `why`")
    return why


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Say what waits for a decision, and change nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutAudit:
    """What happens to the blocked batch, and which one somebody has looked at."""

    decision: Decision
    batch_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FromNow:
    """Numbers mean something else from the next batch on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutPartitions:
    """Batches go on without these partitions."""

    places: tuple[TopicPartition, ...]


Choice = Shown | AboutAudit | FromNow | WithoutPartitions


def choice_of(asked: Mapping[str, Any]) -> Choice:
    """What the form of decisions asks for.

    Raises:
        ConfigError: fields are missing, or belong to another decision.
    """
    chosen = str(asked.get("decision") or SHOW)
    batch, partitions = asked.get("batch"), _text(asked, "partitions")
    if batch is not None and chosen in (FROM_NOW, GONE):
        raise ConfigError(f"batch: {chosen} is not about a blocked batch", fix="leave batch empty")
    if partitions and chosen != GONE:
        raise ConfigError(f"partitions: {chosen} is not about lost partitions", fix="leave partitions empty")
    match chosen:
        case "show" | "ask":
            return Shown()
        case "from now":
            return FromNow()
        case "gone":
            return WithoutPartitions(places=_places(partitions))
        case _ if chosen in set(Decision):
            return AboutAudit(decision=Decision(chosen), batch_id=_batch(batch, chosen))
        case _:
            known = (SHOW, *Decision, FROM_NOW, GONE)
            raise ConfigError(f"decision: expected one of {', '.join(known)}, found {shown(chosen)}", fix="choose one")


def _batch(value: Any, chosen: str) -> int:
    if value is None:
        raise ConfigError(
            f"batch: {chosen} is a decision about one batch, and none is named",
            fix=f"choose {SHOW} first: the log of that run says which batch is blocked, and by what",
        )
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(f"batch: expected the number of a batch, found {shown(value)}", fix="for example 12")
    return value


def _places(text: str) -> tuple[TopicPartition, ...]:
    places = tuple(place_of(part) for part in filter(None, map(str.strip, text.split(","))))
    if not places:
        raise ConfigError(
            "partitions: gone needs the partitions that the log has lost", fix="for example web.access-3, web.access-4"
        )
    return places


def backfill_of(asked: Mapping[str, Any]) -> Wanted | None:
    """What a backfill reads again; None if no field says it.

    Raises:
        ConfigError: fields contradict each other, or one has the wrong form.
    """
    given = {name: _text(asked, name) for name in BOUNDS}
    if not any(given.values()):
        return None
    for name, other in (("from_window", "to_window"), ("to_window", "from_window")):
        if given[name] and not given[other]:
            raise ConfigError(f"{name} is given without {other}", fix=f"give {other}, too")
    kinds = [kind for kind in ("time", "offsets", "window") if given[f"from_{kind}"] or given[f"to_{kind}"]]
    if len(kinds) > 1:
        names = " and ".join(f"{kind}s" if kind != "offsets" else kind for kind in kinds)
        raise ConfigError(f"the form has {names}, and a backfill wants one of them", fix="leave the others empty")
    windows = f"{given['from_window']}/{given['to_window']}" if given["from_window"] else None
    return wanted(**{name: given[name] or None for name in BOUNDS[:4]}, windows=windows)


def replay_of(asked: Mapping[str, Any]) -> tuple[bool, Selection]:
    """Whether late records are meant (otherwise rejected ones), and which.

    Raises:
        ConfigError: a field belongs to the other kind of records, or has the wrong form.
    """
    records = asked.get("records") or "quarantine"
    if records not in ("quarantine", "late"):
        raise ConfigError(f"records: expected quarantine or late, found {shown(records)}", fix="choose one of them")
    late = records == "late"
    name, other, what = ("rule", "table", "rejected") if late else ("table", "rule", "late")
    if _text(asked, name):
        raise ConfigError(f"{name}: only {what} records have one, and {records} is chosen", fix=f"leave {name} empty")
    names = ("batch", "topic", "partition", "offset", "since", "until")
    found = {each: asked.get(each) for each in names}
    return late, selection(**found, **{"table" if late else "reason": asked.get(other)})


def target_of(asked: Mapping[str, Any]) -> int | None:
    """The batch to which a rewind returns; None if no field says it.

    Raises:
        ConfigError: it is no number of a batch.
    """
    value = asked.get("to")
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise ConfigError(
            f"to: expected the number of a batch, found {shown(value)}", fix="for example 41; 0: before all"
        )
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What a verification compares: see `tidemill.inspect.verify.Scope`."""

    windows: OfWindows | None
    sample: float
    seed: int


def compared_of(asked: Mapping[str, Any]) -> Compared:
    """What the form of verifications asks for.

    Raises:
        ConfigError: only one bound of the windows is given, or a field has the wrong form.
    """
    since, until = _text(asked, "from_window"), _text(asked, "to_window")
    if bool(since) != bool(until):
        given, other = ("from_window", "to_window") if since else ("to_window", "from_window")
        raise ConfigError(f"{given} is given without {other}", fix=f"give {other}, too, or leave both empty")
    windows = windows_of("windows", f"{since}/{until}") if since else None
    percent, seed = asked.get("sample"), asked.get("seed") or 0
    share = 100 if percent is None else percent
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 100:
        raise ConfigError(
            f"sample: expected more than 0 and up to 100 percent, found {shown(share)}", fix="for example 10"
        )
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ConfigError(f"seed: expected a whole number, found {shown(seed)}", fix="for example 1")
    return Compared(windows=windows, sample=share / 100, seed=seed)


def records_of(asked: Mapping[str, Any]) -> int | None:
    """The most records in a batch; None for the project's limit.

    Raises:
        ConfigError: it is no whole number of at least 1.
    """
    value = asked.get("batch_records")
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ConfigError(
            f"batch_records: expected a whole number of at least 1, found {shown(value)}", fix="for example 100000"
        )
    return value


def keep_of(asked: Mapping[str, Any]) -> timedelta | None:
    """How far back one can go after maintenance; None for what the project says.

    Raises:
        TidemillError: it is no duration.
    """
    text = _text(asked, "keep")
    return duration(text, "keep") if text else None


def _text(asked: Mapping[str, Any], name: str) -> str:
    """The text of a field without blanks around it.

    Raises:
        ConfigError: the value is no text.
    """
    value = asked.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ConfigError(f"{name}: expected a text, found {shown(value)}", fix="write it in quotes")
    return value.strip()
