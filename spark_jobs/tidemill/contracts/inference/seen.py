"""What was seen of a field in a sample, and the type that holds all of it."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidemill.core.contract.schema import Array, DataType, Decimal, Field, Object, Scalar, nameable

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?", re.ASCII)
_LONG = 2**63
_DIGITS = 38
_COUNTED = 11
"""So many different texts are counted: one more than an enum may have."""
_LONGEST = 40

_FEW, _MANY, _EACH = 10, 200, 5
"""A text is an enum if at most 10 values stand in at least 200 records, each of them at least 5 times."""


@dataclass(slots=True)
class Seen:
    """The values of one field: how often it was there, how often it was null, and what else it was."""

    there: int = 0
    nulls: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    digits: int = 0
    texts: Counter[str] = field(default_factory=Counter)
    inside: dict[str, Seen] = field(default_factory=dict)
    items: Seen | None = None

    def add(self, value: Any) -> None:
        """Look at one more value, as `json` reads it."""
        self.there += 1
        match value:
            case None:
                self.nulls += 1
            case bool():
                self.kinds["boolean"] += 1
            case int():
                self.kinds["integer" if -_LONG <= value < _LONG else "large"] += 1
                self.digits = max(self.digits, len(str(abs(value))))
            case float():
                self.kinds["number" if math.isfinite(value) else "endless"] += 1
            case str():
                self._text(value)
            case list():
                self.kinds["array"] += 1
                self.items = self.items or Seen()
                for item in value:
                    self.items.add(item)
            case Mapping():
                self.kinds["object"] += 1
                for name, inner in value.items():
                    self.inside.setdefault(name, Seen()).add(inner)

    def _text(self, value: str) -> None:
        self.kinds[_kind_of(value)] += 1
        if value in self.texts or len(self.texts) < _COUNTED:
            self.texts[value] += 1

    @property
    def values(self) -> int:
        """How many values were no null."""
        return self.there - self.nulls

    def allowed(self) -> tuple[str, ...]:
        """The only values of a text, if they clearly are few; otherwise empty."""
        counts = self.texts.values()
        clear = 1 < len(self.texts) <= _FEW and self.values >= _MANY and min(counts) >= _EACH
        short = all(0 < len(text) <= _LONGEST for text in self.texts)
        return tuple(sorted(self.texts)) if clear and short and set(self.kinds) == {"string"} else ()

    def type(self, name: str, lost: list[str]) -> DataType | None:
        """The type that holds every value; None if there is none, which is noted in `lost`."""
        kinds = set(self.kinds)
        if kinds == {"array"}:
            item = self.items.type(f"{name}[]", lost) if self.items else None
            return None if item is None else Array(item)
        if kinds == {"object"}:
            fields = tuple(self.fields(f"{name}.", self.kinds["object"], lost))
            if not fields:
                lost.append(f"`{name}` is left out: its objects have no field of one type")
            return Object(fields) if fields else None
        found = _scalar(kinds, self.digits)
        if found is None:
            what = f"it is {_listed(self.kinds)}" if kinds else "it is always null"
            lost.append(f"`{name}` is left out: {what}, so it has no one type")
        return found

    def fields(self, above: str, records: int, lost: list[str]) -> Iterator[Field]:
        """The fields inside of objects, of which there were `records`."""
        for name, seen in self.inside.items():
            if not (name and nameable(name)):
                lost.append(f"`{above}{name}` is left out: names have no quotes, backslashes or control characters")
                continue
            found = seen.type(f"{above}{name}", lost)
            if found is not None:
                yield Field(name=name, type=found, required=seen.values == records)


def _listed(kinds: Counter[str]) -> str:
    return " and ".join(f"{count:,} times {kind}" for kind, count in sorted(kinds.items()))


def _scalar(kinds: set[str], digits: int) -> Scalar | Decimal | None:
    if len(kinds) == 1:
        (kind,) = kinds
        match kind:
            case "boolean" | "string" | "date" | "timestamp":
                return Scalar(kind)
            case "integer":
                return Scalar.LONG
            case "number":
                return Scalar.DOUBLE
    if kinds and kinds <= {"string", "date", "timestamp"}:
        return Scalar.STRING
    if kinds and kinds <= {"integer", "large"} and digits <= _DIGITS:
        return Decimal(_DIGITS, 0)
    return Scalar.DOUBLE if kinds and kinds <= {"integer", "large", "number"} else None


def _kind_of(text: str) -> str:
    try:
        if _DATE.fullmatch(text):
            dt.date.fromisoformat(text)
            return "date"
        if _MOMENT.fullmatch(text):
            moment = dt.datetime.fromisoformat(text)
            (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).astimezone(dt.UTC)
            return "timestamp"
    except (ValueError, OverflowError):
        pass
    return "string"
