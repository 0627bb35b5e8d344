"""The audit of rows in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.contracts.beside import Beside, Where
from tidemill.contracts.masks import Types, broken, is_of_rows
from tidemill.contracts.outcomes import Found, columns_of, named, of_count, of_rows
from tidemill.core.contract.contract import Contract, Expectation, Holds, RowCountBetween, TableRule, Unique
from tidemill.core.contract.scope import Scope
from tidemill.tables.keys import repeated


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What an audit of rows in memory asks others for."""

    beside: Beside
    where: Where


@dataclass(slots=True, kw_only=True)
class Kept:
    """The rows that a table keeps: how many, how many break each rule, and columns of rules that compare rows.

    For rules about the batch it is empty, and has only where the table is.
    """

    table: Beside
    count: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    parts: list[pa.Table] = field(default_factory=list)

    def together(self, rows: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Columns of these rows and then of the kept ones."""
        first = rows.select(list(columns))
        return pa.concat_tables([first, *(part.select(list(columns)).cast(first.schema) for part in self.parts)])


def found_in_memory(
    rows: pa.Table, contract: Contract, shown: Sequence[list[str]], limit: int, around: Around
) -> tuple[dict[str, Found], Kept]:
    """Check each rule but expectations, and say what the table keeps.

    `shown` are the columns to show for each rule, of at most `limit` rows.
    """
    types = {each.name: each.type for each in contract.fields}
    rows = rows.combine_chunks()
    kept = _kept([rule for rule in contract.table_rules if rule.scope is Scope.TABLE], types, around)
    found = {}
    for rule, columns in zip(contract.table_rules, shown, strict=True):
        more = kept if rule.scope is Scope.TABLE else Kept(table=around.beside)
        if isinstance(rule.check, Holds):
            bad = around.where(rows, columns, f"NOT ({rule.check.predicate})")
            some = partial(bad.slice, 0, limit)
            found[rule.name] = of_rows(len(bad) + more.bad[rule.name], len(rows) + more.count, rule.tolerance, some)
        elif not isinstance(rule.check, Expectation):
            with named(rule.name):
                show = partial(_first, rows.select(columns), limit)
                found[rule.name] = _checked(rule, rows, types, show, more)
    return found, kept


def _kept(rules: Sequence[TableRule], types: Types, around: Around) -> Kept:
    kept = Kept(table=around.beside)
    compared = _columns(rule for rule in rules if isinstance(rule.check, Unique | Expectation))
    for part in around.beside.kept(_columns(rules)) if rules else ():
        assert isinstance(part, pa.Table)
        kept.count += len(part)
        for rule in rules:
            kept.bad[rule.name] += _bad(rule, part, types, around.where)
        if compared:
            kept.parts.append(part.select(compared))
    return kept


def _columns(rules: Iterable[TableRule]) -> list[str]:
    return sorted({column for rule in rules for column in columns_of(rule.check)})


def _bad(rule: TableRule, rows: pa.Table, types: Types, where: Where) -> int:
    """How many of these rows break a rule about one row; 0 for other rules."""
    if isinstance(rule.check, Holds):
        return len(where(rows, rule.check.columns[:1], f"NOT ({rule.check.predicate})"))
    if not is_of_rows(rule.check):
        return 0
    with named(rule.name):
        return pc.sum(broken(rule.check, rows, types)).as_py() or 0


def _first(rows: pa.Table, limit: int, places: pa.Array) -> pa.Table:
    return rows.take(places[:limit])


def _checked(
    rule: TableRule,
    rows: pa.Table,
    types: Types,
    show: Callable[[pa.Array], pa.Table],
    kept: Kept,
) -> Found:
    check, count = rule.check, len(rows) + kept.count
    if isinstance(check, RowCountBetween):
        return of_count(check, count, rule.tolerance)
    if isinstance(check, Unique) and rule.scope is Scope.TABLE:
        alike = repeated(check.columns, kept.together(rows, check.columns))
        return of_rows(len(alike), count, rule.tolerance, lambda: show(alike.filter(pc.less(alike, len(rows)))))
    if isinstance(check, Unique):
        alike = repeated(check.columns, rows, kept.table.rows(check.columns))
        return of_rows(len(alike), count, rule.tolerance, lambda: show(alike))
    mask = broken(check, rows, types)
    bad = (pc.sum(mask).as_py() or 0) + kept.bad[rule.name]
    return of_rows(bad, count, rule.tolerance, lambda: show(pc.indices_nonzero(mask)))
