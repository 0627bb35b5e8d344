"""Reads the objects of JSON lines, and counts lines that are none."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from tidemill.core.counts import many

_SHOWN = 5


@dataclass(slots=True)
class Objects:
    """The objects of lines.

    `others` are the numbers of lines that are no JSON object, `twice` of those that have a key twice.
    """

    lines: Iterable[bytes | None]
    count: int = 0
    others: list[int] = field(default_factory=list)
    twice: list[int] = field(default_factory=list)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        for line in self.lines:
            self.count += 1
            found = self._object(line or b"")
            if found is None:
                self.others.append(self.count)
            elif self.count not in self.twice[-1:]:
                yield found

    def _object(self, line: bytes) -> Mapping[str, Any] | None:
        try:
            text = line.decode("utf-8")
            found = json.loads(text, parse_constant=_refused, parse_int=_number, object_pairs_hook=self._pairs)
            # Half of a character would be refused by the pipeline.
            json.dumps(found, ensure_ascii=False).encode("utf-8")
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict):
            return None
        return found

    def _pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs) and self.count not in self.twice[-1:]:
            self.twice.append(self.count)
        return found

    def said(self) -> list[str]:
        """What to tell about lines that were not used as they are."""
        said = []
        if self.others:
            said.append(f"{_lines(self.others)}no JSON object, and not looked at")
        if self.twice:
            said.append(f"{_lines(self.twice)}an object with a key twice, which a pipeline rejects; not looked at")
        return said


def _lines(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:_SHOWN])) + (", ..." if len(numbers) > _SHOWN else "")
    return f"{many(len(numbers), 'line')} ({shown}): "


def _refused(word: str) -> NoReturn:
    raise ValueError(word)


def _number(text: str) -> int | float:
    # Python refuses to read integers of thousands of digits.
    return int(text) if len(text) <= 400 else float(text)
