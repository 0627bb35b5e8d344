"""What becomes of each construct of the standard: it is enforced, read as information, or refused with a reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from itertools import count
from pathlib import Path

from support.odcs_constructs import Construct, Json, constructs
from support.odcs_values import values
from tidemill.contracts.compile import compile_document
from tidemill.contracts.document import Node
from tidemill.contracts.findings import Finding, Findings, Level
from tidemill.contracts.whole import Whole
from tidemill.core.contract.contract import Contract

_PATH = Path("t.odcs.yaml")
_DESCRIBED = re.compile("description='[^']*'")


class Outcome(StrEnum):
    """What a contract that uses a construct becomes."""

    ENFORCED = "enforced"
    INFORMATION = "information"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Told:
    """The outcome of a construct; `why` is the reason why it is refused, or what is said of it as information."""

    construct: Construct
    outcome: Outcome
    why: str = ""

    @property
    def said(self) -> str:
        """The outcome and its reason, for a table of them."""
        return f"{self.outcome}: {self.why}" if self.why else str(self.outcome)


@cache
def outcomes(*, is_input: bool, version: str = "v3.2.0") -> tuple[Told, ...]:
    """The outcome of every construct."""
    made = (*constructs(is_input=is_input, version=version), *values(is_input=is_input, version=version))
    return tuple(map(_told, made))


def _told(construct: Construct) -> Told:
    contract, found = compiled(construct.document)
    before, known = compiled(construct.without)
    errors = [f for f in found if f.severity is Level.ERROR]
    if errors:
        return Told(construct, Outcome.REFUSED, errors[0].message)
    # Without its comparison, a rule means nothing, and is refused.
    is_needed = construct.key.startswith("must") and any(f.severity is Level.ERROR for f in known)
    if _meaning(contract) != _meaning(before) or is_needed:
        return Told(construct, Outcome.ENFORCED)
    said = {f.message for f in known}
    told = [f.message for f in found if f.severity is Level.INFORMATION and f.message not in said]
    return Told(construct, Outcome.INFORMATION, told[0] if told else "")


def compiled(document: Json) -> tuple[Contract | None, list[Finding]]:
    """The contract of a document, and what is found about it."""
    findings = Findings(str(_PATH))
    lines = count(1)
    return compile_document(Whole(_node(document, lines)), _PATH, findings), findings.all


def _node(value: Json, lines: Iterator[int]) -> Node:
    """A value as it is read from a file that has each key in a line of its own."""
    line = next(lines)
    if isinstance(value, dict):
        return Node({key: _node(inner, lines) for key, inner in value.items()}, line)
    return Node(tuple(_node(item, lines) for item in value) if isinstance(value, list) else value, line)


def _meaning(contract: Contract | None) -> object:
    """What a contract enforces; its version and descriptions are information."""
    if contract is None:
        return None
    return _DESCRIBED.sub("", repr(replace(contract, version="", description="", fingerprint="")))
