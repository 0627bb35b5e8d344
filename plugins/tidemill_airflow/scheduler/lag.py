"""How far behind a pipeline may be, or must be, and the triggerer's wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from airflow.triggers.base import BaseTrigger, TriggerEvent

from tidemill.core.errors import ConfigError, DeclarationError, TidemillError, shown
from tidemill.core.time.times import micros, positive_duration
from tidemill.inspect.lag import Lag, LagReader, Sources
from tidemill.project.project import Project

_DIGITS = 18
"""The most digits of a number of records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What must hold of a lag, all of what is given.

    Args:
        max_records: at most so many records are not committed.
        max_age: no record that is not committed has been in the log for longer.
        min_records: at least so many records are not committed.
        min_age: a record that is not committed has been in the log for longer.

    Raises:
        ConfigError: nothing is given, or a bound can never hold.
    """

    max_records: int | None = None
    max_age: timedelta | None = None
    min_records: int | None = None
    min_age: timedelta | None = None

    def __post_init__(self) -> None:
        most, least = self.max_records, self.min_records
        if (most, least, self.max_age, self.min_age) == (None, None, None, None):
            raise ConfigError("nothing to wait for", fix="give max_records, max_age, min_records or min_age")
        if most is not None and least is not None and least > most:
            raise ConfigError(f"min_records={least} and max_records={most} can never hold both", fix="leave one out")
        if self.max_age is not None and self.min_age is not None and self.min_age >= self.max_age:
            raise ConfigError("min_age and max_age can never hold both", fix="leave one out")
        if most == 0 and self.min_age is not None:
            raise ConfigError("min_age and max_records=0 can never hold both", fix="leave one out")

    @staticmethod
    def of(*, max_records: object, max_age: object, min_records: object, min_age: object) -> Bounds:
        """The bounds that people or templates wrote: whole numbers, and durations such as "5 minutes".

        Raises:
            ConfigError: one is no such value, or they can never hold.
        """
        return Bounds(
            max_records=_number("max_records", max_records, least=0),
            max_age=_age("max_age", max_age),
            min_records=_number("min_records", min_records, least=1),
            min_age=_age("min_age", min_age),
        )

    @property
    def json(self) -> dict[str, Any]:
        """The bounds as `of` takes them, as JSON values."""
        shown = {"max_age": self.max_age, "min_age": self.min_age}
        ages = {name: None if age is None else f"{micros(age)} us" for name, age in shown.items()}
        return {"max_records": self.max_records, "min_records": self.min_records, **ages}

    def hold(self, reader: LagReader, lag: Lag, now: datetime) -> bool:
        """Whether all of them hold. The log is asked for times only if it must be.

        Raises:
            LogError: the log does not answer.
        """
        return (
            (self.max_records is None or lag.records <= self.max_records)
            and (self.min_records is None or lag.records >= self.min_records)
            and (self.max_age is None or not reader.is_older(lag, now - self.max_age))
            and (self.min_age is None or reader.is_older(lag, now - self.min_age))
        )


def _number(name: str, value: object, *, least: int) -> int | None:
    if value is None or value == "":
        return None
    text = str(value).strip() if isinstance(value, int | str) and not isinstance(value, bool) else ""
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS else -1
    if number < least:
        raise ConfigError(f"{name}: expected a whole number of at least {least}, found {shown(value)}", fix=f"{name}=1")
    return number


def _age(name: str, value: object) -> timedelta | None:
    if value is None or value == "":
        return None
    try:
        return positive_duration(cast("str | timedelta", value), name)
    except DeclarationError as error:
        raise ConfigError(error.message, fix=error.fix) from None


class LagTrigger(BaseTrigger):
    """Waits in the triggerer until the lag of a pipeline is within bounds, or something is wrong.

    It reads ledger and log in a thread, never the pipeline's file.

    Args:
        pipeline: the pipeline.
        project: the folder with tidemill.toml, as the triggerer sees it.
        topics: the topics that it reads.
        patterns: the patterns of other topics that it reads.
        bounds: what `Bounds.json` gives.
        look_every: seconds from one look to the next.
    """

    def __init__(  # noqa: PLR0913  what to look at, how often, and for what
        self,
        *,
        pipeline: str,
        project: str,
        topics: Sequence[str],
        patterns: Sequence[str],
        bounds: dict[str, Any],
        look_every: float,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline, self.project, self.look_every = pipeline, project, look_every
        self.topics, self.patterns, self.bounds = list(topics), list(patterns), dict(bounds)
        self._reader: LagReader | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class and its arguments."""
        return f"{__name__}.{type(self).__name__}", {
            "pipeline": self.pipeline,
            "project": self.project,
            "topics": self.topics,
            "patterns": self.patterns,
            "bounds": self.bounds,
            "look_every": self.look_every,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event: the lag within the bounds, as `lag_json` gives it, or an `error` and if it is retryable."""
        while True:
            try:
                found = await asyncio.to_thread(self._look)
            except TidemillError as error:
                wrong = {"error": str(error), "retryable": error.retryable}
                yield TriggerEvent(wrong)  # type: ignore[no-untyped-call]
                return
            if found is not None:
                yield TriggerEvent(found)  # type: ignore[no-untyped-call]
                return
            await asyncio.sleep(self.look_every)

    def _look(self) -> dict[str, Any] | None:
        reader = self._reader = self._reader or reader_of(self.project, self.pipeline, self.topics, self.patterns)
        lag = reader.read()
        held = Bounds.of(**self.bounds).hold(reader, lag, datetime.now(UTC))
        return lag_json(self.pipeline, lag) if held else None


def reader_of(project: str, pipeline: str, topics: Sequence[str], patterns: Sequence[str]) -> LagReader:
    """What a trigger looks at: the ledger of a pipeline of the project in this folder, and topics of its log.

    Raises:
        ConfigError: there is no project.
    """
    return LagReader(Project.load(project), pipeline, Sources(topics=tuple(topics), patterns=tuple(patterns)))


def lag_json(pipeline: str, lag: Lag) -> dict[str, Any]:
    """What a sensor returns: the pipeline, its last batch, and how many records are not committed after it."""
    return {"pipeline": pipeline, "batch_id": lag.batch_id, "records": lag.records}
