"""The MERGE statement of an upsert by Spark."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.core.sql.text import quoted

GONE = "__gone"
"""The column of the source that says whether a row is to be removed; there only if some are."""


def merge_statement(  # noqa: PLR0913, PLR0917  what is merged into what
    target: str,
    source: str,
    keys: Sequence[str],
    bounds: str | None,
    columns: Sequence[str],
    there: Sequence[str],
    *,
    removes: bool,
) -> str:
    """Merge `source` into `target` by `keys`, within `bounds`, a condition on `t`, if there is one.

    A row that matches is replaced completely: columns that are `there` but not among `columns` become null. With
    `removes`, rows that match a source row with `GONE` are removed.
    """
    on = [f"t.{quoted(k)} <=> s.{quoted(k)}" for k in keys]
    names, others = [quoted(c) for c in columns], [quoted(c) for c in there if c not in columns]
    updates = [f"t.{c} = s.{c}" for c in names] + [f"t.{c} = NULL" for c in others]
    removed, kept = (f" WHEN MATCHED AND s.{GONE} THEN DELETE", f" AND NOT s.{GONE}") if removes else ("", "")
    return (
        f"MERGE INTO {target} AS t USING {source} AS s"
        f" ON {' AND '.join([bounds, *on] if bounds else on)}"
        f"{removed} WHEN MATCHED THEN UPDATE SET {', '.join(updates)}"
        f" WHEN NOT MATCHED{kept} THEN INSERT ({', '.join(names)}) VALUES ({', '.join('s.' + c for c in names)})"
    )
