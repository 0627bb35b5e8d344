"""Errors and warnings about a contract file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from tidemill.core.errors import ContractError

_SHOWN = 20
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

_TYPE = re.compile(
    r"of type (?:(?:array|struct)<.*?>+|decimal\([^)]*\)|(?:string|binary|boolean|int|bigint|double|date|timestamp)\b)"
)


def one_line(text: str) -> str:
    """Text of a contract in one line that is safe for terminals: control characters are written as in Python."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


class Level(StrEnum):
    """How much a finding matters.

    With an ERROR the contract cannot be used. A WARNING names what its readers would miss, and INFORMATION what
    Tidemill does not use.
    """

    ERROR = "error"
    WARNING = "warning"
    INFORMATION = "information"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One remark about one line of a contract file; `line` counts from 1."""

    file: str
    line: int
    severity: Level
    message: str
    fix: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


UNUSABLE = "no pipeline can use it"
"""The end of a warning about a contract that is fine as a description, and describes too little for a pipeline."""


class Findings:
    """The findings about one file, each once, in the order in which they were noted."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.all: list[Finding] = []
        self.has_errors = False
        self._noted: set[Finding] = set()

    def error(self, line: int, message: str, *, fix: str = "") -> None:
        """Note something that makes the contract unusable."""
        self._note(Finding(file=self.file, line=line, severity=Level.ERROR, message=message, fix=fix))

    def warning(self, line: int, message: str, *, fix: str = "") -> None:
        """Note something that should be improved."""
        self._note(Finding(file=self.file, line=line, severity=Level.WARNING, message=message, fix=fix))

    def information(self, line: int, message: str) -> None:
        """Note something that promises nothing about values, and that Tidemill does not use."""
        self._note(Finding(file=self.file, line=line, severity=Level.INFORMATION, message=message))

    def add(self, finding: Finding) -> None:
        """Note what has been found elsewhere."""
        self._note(finding)

    def __contains__(self, finding: object) -> bool:
        """Whether this has been noted."""
        return finding in self._noted

    def sorted(self) -> list[Finding]:
        """Return all findings sorted by line."""
        return sorted(self.all, key=lambda f: (f.line, f.severity, f.message))

    def raise_errors(self) -> None:
        """Raise one error for all errors found, if there are any.

        Raises:
            ContractError: its text gives file, line and fix of up to twenty errors.
        """
        errors = [f for f in self.sorted() if f.severity is Level.ERROR]
        if len(errors) == 1:
            raise ContractError(str(errors[0]), fix=errors[0].fix)
        lines = [f"{f}\n  fix: {f.fix}" if f.fix else str(f) for f in errors[:_SHOWN]]
        if len(errors) > _SHOWN:
            lines.append(f"{self.file}: and {len(errors) - _SHOWN} more")
        if errors:
            raise ContractError("\n".join(lines))

    def _note(self, finding: Finding) -> None:
        # Reports have a line for each finding, and systems of CI run what stands at the start of a line.
        finding = replace(finding, message=one_line(finding.message), fix=one_line(finding.fix))
        if finding not in self._noted:
            self._noted.add(finding)
            self.all.append(finding)
            self.has_errors |= finding.severity is Level.ERROR


def common(noted: Iterable[Findings]) -> list[Finding]:
    """What all of these have noted, whichever types their messages name: then it says only that these do not fit."""
    found: dict[Finding, Finding] | None = None
    for each in noted:
        kinds = {_kind(finding): finding for finding in each.all}
        if found is None:
            found = kinds
        else:
            found = {kind: first if first == kinds[kind] else kind for kind, first in found.items() if kind in kinds}
        if not found:
            break
    return list((found or {}).values())


def _kind(finding: Finding) -> Finding:
    """The finding without the types that its message names, and without what to do for one of them."""
    message = _TYPE.sub("of another type", finding.message)
    return finding if message == finding.message else replace(finding, message=message, fix="")
