"""Waivers: changes of contracts that somebody allows for a time, in a file beside the contracts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from tidemill.contracts.changes.change import KINDS, Change
from tidemill.contracts.document import EMPTY, Node, read
from tidemill.contracts.files import files_below
from tidemill.contracts.findings import Finding, Findings, Level
from tidemill.contracts.nodes import closest, shown
from tidemill.core.errors import ContractError

FILE = "waivers.yaml"

_NEARLY = (FILE, "waivers.yml", "waiver.yaml", "waiver.yml")

_WHAT = "a file of waivers lists changes of contracts that somebody allows up to a day: waivers: [], or remove it"

_NEEDED = ("contract", "change", "reason", "owner", "until")
_KEYS = (*_NEEDED, "field", "rule")


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """Allows one kind of change of a contract until the end of a day (UTC).

    `field` and `rule` narrow it to a field, or to a rule or service level; empty texts mean any.
    """

    contract: str
    change: str
    reason: str
    owner: str
    until: date
    field: str
    rule: str
    file: str
    line: int

    @property
    def about(self) -> tuple[str, str, str, str]:
        """What it allows, wherever it stands and whoever answers for it."""
        return self.contract, self.change, self.field, self.rule

    def allows(self, change: Change) -> bool:
        """Whether it is about this change, whatever its end."""
        named = (self.contract, self.change) == (change.contract, change.kind)
        return named and self.field in ("", change.where) and self.rule in ("", change.message)

    def has_ended(self, today: date) -> bool:
        """Whether its last day is over."""
        return today > self.until

    def __str__(self) -> str:
        """For example "waived until 2026-12-31 by data-team: readers moved to sums_2"."""
        return f"waived until {self.until} by {self.owner}: {self.reason}"


def read_waivers(place: Path) -> tuple[list[Waiver], list[Finding]]:
    """The waivers beside contracts, and their faults: of a folder with all folders below it, or beside a file."""
    found: list[Waiver] = []
    faults: list[Finding] = []
    for path in waiver_files(place):
        findings = Findings(str(path))
        if path.name != FILE:
            findings.error(1, f"waivers are read from {FILE} alone", fix=f"rename it to {FILE}")
            faults += findings.sorted()
            continue
        found += _of_file(path, findings)
        faults += findings.sorted()
    return found, faults


def waiver_files(place: Path) -> list[Path]:
    """The files of waivers of a folder and of all folders below it, or beside a file of a contract.

    Files that were called nearly so are among them: nobody should believe that they are read.
    """
    if not place.is_dir():
        return [path for name in _NEARLY if (path := place.parent / name).is_file()]
    return sorted(path for path in files_below(place) if path.name in _NEARLY and path.is_file())


def lint_waivers(place: Path, today: date) -> list[Finding]:
    """What is wrong with the waivers of a folder: faults, and waivers that have ended. Nothing for a file."""
    if not place.is_dir():
        return []
    try:
        waivers, faults = read_waivers(place)
    except ContractError:
        # The folder cannot be read, which is found with the contracts already.
        return []
    # Whether its change is still to come, or was merged long ago, only a comparison can say.
    return [*faults, *(ended(waiver, Level.WARNING) for waiver in waivers if waiver.has_ended(today))]


def ended(waiver: Waiver, level: Level) -> Finding:
    """What a waiver is after its last day: an error where its change is still there, and fails."""
    message = f"the waiver of {waiver.change} in {waiver.contract} ended on {waiver.until}; it was {waiver.owner}'s"
    fix = "take the change back, or agree on another day with those whom it breaks; remove a waiver that is done"
    return Finding(file=waiver.file, line=waiver.line, severity=level, message=message, fix=fix)


def _of_file(path: Path, findings: Findings) -> list[Waiver]:
    noted = Findings(findings.file)
    root = read(path, noted)
    for fault in noted.all:
        findings.add(replace(fault, fix=_WHAT) if fault.message == EMPTY else fault)
    if root is None:
        return []
    _check_keys(root, ("waivers",), "a file of waivers", findings)
    listed = root.child("waivers")
    if listed is None or not isinstance(listed.value, tuple):
        findings.error(root.line, "expected `waivers:` and a list", fix="waivers: [], or remove the file")
        return []
    return [waiver for node in listed.value if (waiver := _waiver(node, path, findings)) is not None]


def _waiver(node: Node, path: Path, findings: Findings) -> Waiver | None:
    before = len(findings.all)
    _check_keys(node, _KEYS, "a waiver", findings)
    texts = dict(_texts(node, findings))
    until = _day(node, findings)
    if (kind := texts["change"]) and kind not in KINDS:
        line = child.line if (child := node.child("change")) is not None else node.line
        known = ", ".join(KINDS)
        findings.error(line, f"no change is called `{kind}`", fix=closest(kind, KINDS) or f"one of {known}")
    if until is None or len(findings.all) > before:
        return None
    return Waiver(**texts, until=until, file=str(path), line=node.line)


def _texts(node: Node, findings: Findings) -> Iterator[tuple[str, str]]:
    for key in _KEYS:
        if key == "until":
            continue
        child, text = node.child(key), node.text(key).strip()
        if child is not None and not text:
            findings.error(child.line, f"`{key}`: expected text, found {shown(child)}")
        elif child is None and key in _NEEDED:
            findings.error(node.line, f"a waiver needs `{key}`", fix=f"add {key}: ...")
        yield key, text


def _day(node: Node, findings: Findings) -> date | None:
    child = node.child("until")
    if child is None:
        findings.error(node.line, "a waiver needs `until`, its last day", fix="add until: 2026-12-31")
        return None
    try:
        return date.fromisoformat(str(child.value))
    except ValueError:
        findings.error(child.line, f"`until`: expected a day, found {shown(child)}", fix="for example 2026-12-31")
        return None


def _check_keys(node: Node, known: Sequence[str], title: str, findings: Findings) -> None:
    if not isinstance(node.value, Mapping):
        findings.error(node.line, f"expected {title}, found {shown(node)}", fix=f"it has the keys {', '.join(known)}")
        return
    for key, child in node.value.items():
        if key not in known:
            fix = closest(key, known) or f"it has the keys {', '.join(known)}"
            findings.error(child.line, f"{title} has no `{key}`", fix=fix)
