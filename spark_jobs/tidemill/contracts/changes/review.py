"""What the changes between two versions of contracts break, which are waived, and what else is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from tidemill.contracts.changes.change import Change
from tidemill.contracts.changes.compare import bump_needed, changes_of, is_raised, pairs
from tidemill.contracts.changes.described import Described
from tidemill.contracts.changes.waivers import Waiver, ended
from tidemill.contracts.findings import Finding, Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """All changes, each with the waiver that allows it, and what else is wrong.

    `remarks` are about versions that did not rise (warnings), waivers that have ended (errors), and waivers that allow
    nothing (warnings).
    """

    changes: tuple[tuple[Change, Waiver | None], ...]
    remarks: tuple[Finding, ...]

    @property
    def breaking(self) -> int:
        """How many changes break something and are not waived."""
        return sum(bool(change.breaks) and waiver is None for change, waiver in self.changes)

    def fails(self, levels: Sequence[Level]) -> bool:
        """Whether changes break something, or there are remarks of these levels."""
        return bool(self.breaking) or any(remark.severity in levels for remark in self.remarks)


def review(
    before: Mapping[str, Described], after: Mapping[str, Described], waivers: Sequence[Waiver], today: date
) -> Review:
    """Compare two sets of contracts, by name. A waiver allows a change up to its last day."""
    valid = [waiver for waiver in waivers if not waiver.has_ended(today)]
    changes = changes_of(before, after)
    found = tuple((c, next((w for w in valid if c.breaks and w.allows(c)), None)) for c in changes)
    used = {id(waiver) for _, waiver in found}
    remarks = [
        *_not_raised(before, after, changes),
        *(ended(waiver) for waiver in waivers if waiver.has_ended(today)),
        *(_useless(waiver) for waiver in valid if id(waiver) not in used),
    ]
    return Review(changes=found, remarks=tuple(remarks))


def _not_raised(
    before: Mapping[str, Described], after: Mapping[str, Described], changes: Sequence[Change]
) -> Iterator[Finding]:
    """A warning for each contract whose version did not rise as its changes need it, or went down."""
    for first, now in pairs(before, after):
        if first is None or now is None:
            continue
        name, old, new = now.contract.name, first.contract.version, now.contract.version
        needed = bump_needed([c for c in changes if c.contract == name])
        if not is_raised(old, new, needed):
            line = now.root.line if (node := now.root.child("version")) is None else node.line
            told = f"these changes need another {needed.name.lower()} version" if needed else "it went down"
            message = f"{name}: version {old}, now {new}; {told}"
            yield Finding(file=now.contract.source, line=line, severity=Level.WARNING, message=message)


def _useless(waiver: Waiver) -> Finding:
    where = "".join(f" of {name}" for name in (waiver.field, waiver.rule) if name)
    message = f"no breaking change is {waiver.change}{where} in {waiver.contract}: the waiver allows nothing"
    fix = "remove it, or correct its contract, change, field or rule"
    return Finding(file=waiver.file, line=waiver.line, severity=Level.WARNING, message=message, fix=fix)
