"""Changes of the fields of a contract."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidemill.contracts.changes.change import Change
from tidemill.contracts.changes.described import Described
from tidemill.contracts.changes.information import UNIT, of_items, of_property
from tidemill.core.contract.contract import ExtraFields, Format
from tidemill.core.contract.fitting import Fit, fit
from tidemill.core.contract.schema import Array, DataType, Field, Object, spark_type
from tidemill.core.counts import many

_ALIKE = 0.8


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two versions of a contract."""

    before: Described
    after: Described

    @property
    def refuses_extras(self) -> bool:
        """Whether records with a field that the new contract does not name are refused, at any depth."""
        new = self.after.contract
        return new.format is Format.JSON and new.extra_fields is ExtraFields.REJECT

    def change(self, kind: str, path: tuple[str, ...] = (), message: str = "", line: int | None = None) -> Change:
        """A change at a property, or of the whole contract."""
        return Change(
            kind=kind,
            contract=self.after.contract.name,
            file=self.after.contract.source,
            line=line or self.after.line_at(path),
            where=".".join(path).replace(".[]", "[]"),
            message=message,
            is_input=self.after.is_input,
        )


def field_changes(both: Comparison) -> Iterator[Change]:
    """All changes of columns, and of what is inside them."""
    before, after = both.before.contract.fields, both.after.contract.fields
    yield from _of_level(both, (), before, after)
    old, new = ([f.name for f in fields] for fields in (before, after))
    formats = {both.before.contract.format, both.after.contract.format}
    if formats == {Format.CSV} and len(old) != len(new):
        yield both.change("column-count", (), f"{many(len(old), 'column')}, now {many(len(new), 'column')}")
    # A field of CSV is known by its place: a new one before others moves them.
    if both.after.contract.format is Format.CSV and old != new[: len(old)] and set(old) <= set(new):
        yield both.change("column-moved", (), f"{', '.join(old)}, now {', '.join(new)}")
    else:
        yield from _moved(both, (), before, after)


def _moved(
    both: Comparison, path: tuple[str, ...], before: Sequence[Field], after: Sequence[Field]
) -> Iterator[Change]:
    """The change of the order of those fields that both versions have."""
    old, new = ([f.name for f in fields] for fields in (before, after))
    kept_old, kept_new = [n for n in old if n in new], [n for n in new if n in old]
    if kept_old != kept_new:
        kind = "field-moved-inside" if path else "field-moved"
        yield both.change(kind, path, f"{', '.join(kept_old)}, now {', '.join(kept_new)}")


def _of_level(
    both: Comparison, path: tuple[str, ...], before: Sequence[Field], after: Sequence[Field]
) -> Iterator[Change]:
    old, new = {f.name: f for f in before}, {f.name: f for f in after}
    gone, added = [n for n in old if n not in new], [n for n in new if n not in old]
    for name in gone:
        other = next((n for n in added if _is_renamed(both, path, old[name], new[n])), None)
        if other is None:
            yield both.change("field-removed-refused" if both.refuses_extras else "field-removed", (*path, name))
        else:
            added.remove(other)
            yield both.change("field-renamed", (*path, other), f"{name}, now {other}")
            yield from _of_field(both, (*path, other), old[name], new[other])
    for name in added:
        yield both.change("field-added-required" if new[name].required else "field-added", (*path, name))
    for name, field in new.items():
        if name in old:
            yield from _of_field(both, (*path, name), old[name], field)


def _is_renamed(both: Comparison, path: tuple[str, ...], old: Field, new: Field) -> bool:
    """Whether a field that is gone is one that is new: of the same type, and told in the same words or spelt alike."""
    if old.type != new.type:
        return False
    if old.description and old.description == new.description:
        return True
    first, second = both.before.property_at((*path, old.name)), both.after.property_at((*path, new.name))
    known = first is not None and second is not None and first.text("physicalName") == second.text("physicalName") != ""
    was, now = (name.lower().replace("_", "") for name in (old.name, new.name))
    return known or difflib.SequenceMatcher(None, was, now).ratio() >= _ALIKE


def _of_field(both: Comparison, path: tuple[str, ...], old: Field, new: Field) -> Iterator[Change]:
    yield from _of_null(both, path, old, new)
    yield from _of_type(both, path, old.type, new.type)
    if old.description != new.description:
        yield both.change("description-changed", path)
    yield from _of_notes(both, path, old, new)


def _of_null(both: Comparison, path: tuple[str, ...], old: Field, new: Field) -> Iterator[Change]:
    """The change of `required`. A rule that refuses null in its stead is told with the rules."""
    if old.required == new.required:
        return
    if len(path) > 1:
        yield both.change(f"required-{'added' if new.required else 'removed'}-inside", path)
    elif not new.required and not both.after.has_null_rule(new.name):
        yield both.change("required-removed", path)
    elif new.required:
        ruled = both.before.has_null_rule(old.name)
        yield both.change("rule-reworded" if ruled else "required-added", path, "required" if ruled else "")


def _of_notes(both: Comparison, path: tuple[str, ...], old: Field, new: Field) -> Iterator[Change]:
    first, second = both.before.property_at((*path[:-1], old.name)), both.after.property_at(path)
    if first is None or second is None:
        return
    units = [
        next((n.text("value") for n in p.items("customProperties") if n.text("property") == UNIT), "")
        for p in (first, second)
    ]
    if units[0] != units[1]:
        # To say a unit for the first time is no other unit: values are what they were.
        yield both.change(
            "unit-changed" if units[0] else "unit-added", path, f"{units[0] or 'none'}, now {units[1] or 'none'}"
        )
    if second.is_true("deprecated") is not first.is_true("deprecated"):
        yield both.change("deprecated" if second.is_true("deprecated") else "deprecated-no-more", path)
    names = {*both.before.rules, *both.after.rules}
    ruled = {name.partition(".")[2] for name in names if name.partition(".")[0] in (old.name, new.name)}
    for kind, message, line in of_property(first, second, ruled, same_type=old.type == new.type):
        yield both.change(kind, path, message, line)


def _of_type(both: Comparison, path: tuple[str, ...], old: DataType, new: DataType) -> Iterator[Change]:
    match old, new:
        case Object(before), Object(after):
            yield from _of_level(both, path, before, after)
            yield from _moved(both, path, before, after)
        case Array(before), Array(after):
            yield from _of_type(both, (*path, "[]"), before, after)
            first, second = (one.property_at((*path, "[]")) for one in (both.before, both.after))
            if first is not None and second is not None:
                for kind, message, line in of_items(first, second, same_type=before == after):
                    yield both.change(kind, (*path, "[]"), message, line)
        case _ if old != new:
            wider, narrower = fit(old, new) is Fit.FITS, fit(new, old) is Fit.FITS
            kind = "type-widened" if wider else "type-narrowed" if narrower else "type-changed"
            yield both.change(kind, path, f"{spark_type(old)}, now {spark_type(new)}")
