"""What the changes between two versions of contracts break, which are waived, and what else is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from tidemill.contracts.changes.change import Breaks, Change
from tidemill.contracts.changes.compare import bump_needed, changes_of, is_raised, pairs
from tidemill.contracts.changes.described import Described
from tidemill.contracts.changes.waivers import Waiver, ended
from tidemill.contracts.findings import Finding, Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """All changes, each with the waiver that allows it, and what else is wrong.

    A change fails if it breaks one of `failing`, and is an ERROR; one that breaks something else is a WARNING that does
    not fail. `remarks` are about versions that did not rise (warnings), waivers that have ended while their change is
    still there and fails (errors), and waivers that allow nothing (warnings). `done` are waivers that have ended and
    whose changes do not fail, and waivers whose changes have arrived at the base: warnings that never fail, because
    others would be stopped by what nobody needs any more.
    """

    changes: tuple[tuple[Change, Waiver | None], ...]
    remarks: tuple[Finding, ...]
    failing: frozenset[Breaks] = frozenset(Breaks)
    done: tuple[Finding, ...] = ()

    @property
    def breaking(self) -> int:
        """How many changes fail and are not waived."""
        return self._counted(Level.ERROR)

    @property
    def warned(self) -> int:
        """How many changes break only what does not fail, and are not waived."""
        return self._counted(Level.WARNING)

    def level(self, change: Change, waiver: Waiver | None) -> Level:
        """How much a change matters."""
        if not change.breaks or waiver is not None:
            return Level.INFORMATION
        return Level.ERROR if change.breaks & self.failing else Level.WARNING

    def fails(self, levels: Sequence[Level]) -> bool:
        """Whether changes break what they must not, or there are remarks of these levels."""
        return bool(self.breaking) or any(remark.severity in levels for remark in self.remarks)

    def _counted(self, level: Level) -> int:
        return sum(self.level(*each) is level for each in self.changes)


def review(  # noqa: PLR0913  what is compared, and by which agreements
    before: Mapping[str, Described],
    after: Mapping[str, Described],
    waivers: Sequence[Waiver],
    today: date,
    *,
    once: Sequence[Waiver] = (),
    failing: frozenset[Breaks] = frozenset(Breaks),
) -> Review:
    """Compare two sets of contracts, by name. A waiver allows a change up to its last day.

    `once` are the waivers of the old version, and `failing` is what no change may break.
    """
    valid = [waiver for waiver in waivers if not waiver.has_ended(today)]
    changes = changes_of(before, after)
    found = tuple((c, next((w for w in valid if c.breaks and w.allows(c)), None)) for c in changes)
    used = {id(waiver) for _, waiver in found}
    late = [waiver for waiver in waivers if waiver.has_ended(today) and any(map(waiver.allows, changes))]
    missed = [waiver for waiver in late if any(_is_open(waiver, *each, failing) for each in found)]
    needless = [waiver for waiver in waivers if waiver not in late and id(waiver) not in used]
    known = {waiver.about for waiver in once}
    remarks = [
        *_not_raised(before, after, changes),
        *(ended(waiver, Level.ERROR) for waiver in late if waiver in missed),
        *(_useless(waiver) for waiver in needless if waiver.about not in known),
    ]
    done = [
        *(ended(waiver, Level.WARNING) for waiver in late if waiver not in missed),
        *(_useless(waiver) for waiver in needless if waiver.about in known),
    ]
    return Review(changes=found, remarks=tuple(remarks), failing=failing, done=tuple(done))


def _is_open(late: Waiver, change: Change, waiver: Waiver | None, failing: frozenset[Breaks]) -> bool:
    """Whether a change fails that only a waiver which has ended would allow."""
    return late.allows(change) and waiver is None and bool(change.breaks & failing)


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
