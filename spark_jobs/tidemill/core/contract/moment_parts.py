"""What `extract` and `date_part` give, and which fields a date, a time or an interval has."""

from __future__ import annotations

from tidemill.core.contract.operator_rules import MismatchError
from tidemill.core.contract.sql_types import SqlType, named
from tidemill.core.sql.interval_fields import fields_of
from tidemill.core.sql.kinds import listed
from tidemill.core.sql.operator_lines import OTHER_NAMES_OF_PARTS, PARTS_OF_MOMENTS


def part_of_moment(field: str, found: SqlType | None) -> SqlType | None:
    """What `extract` and `date_part` give; None if it is not certain.

    Raises:
        MismatchError: there is no such field, or a value of this type does not have it.
    """
    name = field.lower()
    name = OTHER_NAMES_OF_PARTS.get(name, name)
    kinds = PARTS_OF_MOMENTS.get(name)
    if kinds is None:
        raise MismatchError(f"`{field}` is no part of a date or a time", f"there are {', '.join(PARTS_OF_MOMENTS)}")
    if found is not None and found.letter not in kinds:
        raise MismatchError(f"`{found}` has no `{name}`: {listed(kinds)} has one", "convert it, or read another part")
    if found is None:
        return None
    fields = fields_of(found.name)
    if fields and name not in fields:
        raise MismatchError(f"`{found}` has no `{name}`: it has {', '.join(fields)}", "read another part")
    if found.letter in "YVC" and name in ("month", "hour", "minute"):
        return named("t")
    return named("d" if name == "second" else "i")
