"""Contracts of published tables: they must have the columns that are published, and the key that tells rows apart."""

from __future__ import annotations

from tidemill.core.contract.contract import Contract
from tidemill.core.declare.columns import PUBLISHED_COLUMNS
from tidemill.core.errors import DeclarationError


def check_published(
    where: str, contract: Contract, columns: tuple[str, ...], *, change: str = "the keys and aggregates"
) -> None:
    """Refuse a contract that is not of a table with exactly these columns.

    Raises:
        DeclarationError: the text says what is missing or too much; `change` says where to change it.
    """
    if contract.format is not None:
        raise DeclarationError(
            f"{where} publishes under `{contract.name}`, a contract of records in the format {contract.format.value}",
            fix="name a contract of a table: one without a format",
        )
    lower = [column.lower() for column in columns]
    twice = [column for column in columns if lower.count(column.lower()) > 1]
    if twice:
        raise DeclarationError(
            f"{where} publishes `{twice[0]}` twice: ({', '.join(columns)})",
            fix=f"rename one of them in {change}",
        )
    own = [c for c in contract.columns if c in PUBLISHED_COLUMNS]
    missing = [c for c in columns if c not in contract.columns]
    extra = [c for c in contract.columns if c not in columns]
    if own or missing or extra:
        found = [
            f"the contract lacks {', '.join(missing)}" if missing else "",
            f"the contract has {', '.join(extra)}, which are not published" if extra else "",
            f"{', '.join(own)} are added by Tidemill" if own else "",
        ]
        raise DeclarationError(
            f"{where} publishes ({', '.join(columns)}): {'; '.join(f for f in found if f)}",
            fix=f"change {change} or {contract.source or contract.name}",
        )


def check_primary_key(where: str, contract: Contract, bounds: tuple[str, ...], keys: tuple[str, ...]) -> None:
    """Check that the primary key of a contract is what tells published rows apart: window and keys.

    Raises:
        DeclarationError: it has another column, or lacks one.
    """
    named = contract.primary_key
    others = [column for column in named if column not in (*bounds, *keys)]
    if others:
        raise DeclarationError(
            f"{where}: the primary key of {contract.source or contract.name} has {', '.join(others)}, which is "
            "no window and no key: its value may change when a window is published again",
            fix=f"remove primaryKey at {', '.join(others)}: windows and keys are enough",
        )
    missing = [] if set(bounds) & set(named) else [*bounds[:1]]
    missing += [key for key in keys if key not in named]
    if named and missing:
        raise DeclarationError(
            f"{where}: the primary key of {contract.source or contract.name} is ({', '.join(named)}), but a row is "
            f"published for each window and key: rows that differ in {', '.join(missing)} only would agree in it",
            fix=f"set primaryKey: true at {', '.join(missing)} as well, or nowhere: windows and keys are enough",
        )
