"""Which collations texts may have: those that COLLATE and `collate` name."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tidemill.core.contract.constant_texts import written_text
from tidemill.core.contract.operator_rules import MismatchError
from tidemill.core.contract.sql_types import STRING, SqlType
from tidemill.core.sql.collations import fault_of_collation


def collated(found: SqlType | None, name: str) -> SqlType:
    """A text with a collation.

    Raises:
        MismatchError: it is no text, or there is no such collation.
    """
    if found is not None and found.letter not in "sn":
        raise MismatchError(f"texts have collations, but this is `{found}`", "leave out COLLATE")
    if fault := fault_of_collation(name):
        raise MismatchError(fault, "write a collation that there is")
    return STRING


def name_of(node: exp.Expr) -> str:
    """The name behind COLLATE."""
    return ".".join(part.name for part in node.parts) if isinstance(node, exp.Column) else node.name


def collate_called(written: exp.Expr, types: Sequence[SqlType | None]) -> SqlType:
    """What `collate` gives, whose second argument names a collation.

    Raises:
        MismatchError: it is no constant text, or there is no such collation.
    """
    kind = types[1]
    if written.find(exp.Column, exp.Identifier) is not None or (kind is not None and kind.letter != "s"):
        raise MismatchError("`collate` takes the name of a collation as a constant text", "write 'UTF8_LCASE'")
    text = written_text(written)
    return collated(types[0], "UTF8_BINARY" if text is None else text)
