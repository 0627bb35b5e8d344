"""The pipelines that an argument of `dags_for` is about: all, none, or those that it names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from tidemill.core.errors import ConfigError, DeclarationError, shown
from tidemill.core.time.times import duration

LOOK_EVERY = timedelta(seconds=2)
"""How often the triggerer looks for records, unless somebody says it."""

_LEAST = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The pipelines that `argument` names; None for all."""

    argument: str
    names: frozenset[str] | None

    @staticmethod
    def of(argument: str, given: bool | Collection[str]) -> Chosen:
        """What an argument says: True, False, or names of pipelines.

        Raises:
            ConfigError: it says something else.
        """
        if isinstance(given, bool):
            return Chosen(argument, None if given else frozenset())
        names = [given] if isinstance(given, str) else given
        if not (isinstance(names, Collection) and all(isinstance(name, str) for name in names)):
            raise ConfigError(
                f"{argument}: expected True, False or names of pipelines, found {shown(given)}",
                fix=f'for example {argument}=["sales"]',
            )
        return Chosen(argument, frozenset(names))

    def check_names(self, known: Iterable[str]) -> None:
        """Check that all pipelines exist.

        Raises:
            ConfigError: there is no such pipeline.
        """
        for name in sorted((self.names or frozenset()) - {*known}):
            raise ConfigError(f"{self.argument}: there is no pipeline {name}", fix=f"known: {', '.join(sorted(known))}")

    def __contains__(self, name: str) -> bool:
        return self.names is None or name in self.names


@dataclass(frozen=True, slots=True)
class Watched:
    """The pipelines whose runs start when there are records, and how often the triggerer looks for some."""

    names: Chosen
    every: Mapping[str, timedelta] = field(default_factory=dict)

    @staticmethod
    def of(argument: str, given: bool | Collection[str] | Mapping[str, str | timedelta]) -> Watched:
        """What an argument says: as `Chosen.of`, or a duration for each name.

        Raises:
            ConfigError: it says something else, or a duration is shorter than a second.
        """
        names = Chosen.of(argument, given)
        if not isinstance(given, Mapping):
            return Watched(names)
        return Watched(names, {name: _period(f"{argument}: {name}", value) for name, value in given.items()})

    def look_every(self, name: str) -> timedelta | None:
        """How often to look for records of a pipeline; None if only time starts its runs."""
        return self.every.get(name, LOOK_EVERY) if name in self.names else None


def _period(what: str, value: str | timedelta) -> timedelta:
    try:
        found = duration(value, what)
    except DeclarationError as error:
        raise ConfigError(error.message, fix=error.fix) from None
    if found < _LEAST:
        raise ConfigError(f"{what}: expected a second or more, found {shown(value)}", fix='for example "10 seconds"')
    return found
