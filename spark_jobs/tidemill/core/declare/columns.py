"""The columns that leave each operator, checked against the columns that the next operator uses."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from tidemill.core.contract.contract import Contract, ExtraFields, Format
from tidemill.core.contract.schema import Scalar
from tidemill.core.declare import operators as op
from tidemill.core.declare.aggregate_columns import columns_read
from tidemill.core.declare.aggregates import Aggregate
from tidemill.core.declare.graph import Graph
from tidemill.core.declare.names import told
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.expressions import columns_of

WINDOW_COLUMNS = ("window_start", "window_end")
"""The first columns of a windowed table, unless the declaration gives them other names."""

PUBLISHED_COLUMNS = ("batch_id", "published_at")
"""The columns that Tidemill adds to every published table."""

RECORD_COLUMNS = ("_topic", "_partition", "_offset", "_timestamp")
"""The record that a row comes from: every expression may read these."""

STATE_COLUMNS = frozenset(
    {
        *(*WINDOW_COLUMNS, *PUBLISHED_COLUMNS, "attempt", "pane_day", "pane_start", "_pane", "_start", "_fires"),
        *("pane_end", "_session", "_end", "_kind"),
        *("_touched", "_before", "_after", "_refused_until", "_again_until", "_on_time", "_again"),
    }
)
"""Columns of state besides keys and aggregates, at rest and while windows are merged. No key may have these names."""

_UNITS = ", and the custom property `timestamp: epoch_s`, `epoch_ms` or `epoch_us` if it counts from 1970"

_OF_ROWS = "_time _behind _mark _block _error _broken _unmatched _raw _rejected _alive"
HIDDEN_COLUMNS = frozenset((*RECORD_COLUMNS, *_OF_ROWS.split()))
"""Columns of rows besides those of their contract."""


def columns_by_operator(graph: Graph, contracts: Mapping[str, Contract]) -> Mapping[str, tuple[str, ...]]:
    """The columns that leave each operator, in order.

    Raises:
        DeclarationError: an operator uses a column that does not reach it.
    """
    columns: dict[str, tuple[str, ...]] = {}
    for name in graph.in_order():
        operator = graph.operators[name]
        before = [columns[edge.source] for edge in graph.feeding(name)]
        left = _leaving(graph.where(name), operator, before, contracts)
        columns[name] = (*grouped_by(graph, name), *left) if isinstance(operator, op.AggregateBy) else left
    return columns


def grouped_by(graph: Graph, aggregate: str) -> tuple[str, ...]:
    """The columns of the results of an aggregation that are no aggregates: bounds of windows, then keys."""
    found: tuple[str, ...] = ()
    for edge in graph.feeding(aggregate):
        match graph.operators[edge.source]:
            case op.WindowBy(columns=bounds):
                found = (*bounds, *grouped_by(graph, edge.source))
            case op.KeyBy(columns=keys):
                found = keys
            case _:
                pass
    return found


def _leaving(
    where: str, operator: op.Operator, before: list[tuple[str, ...]], contracts: Mapping[str, Contract]
) -> tuple[str, ...]:
    match operator:
        case op.Read():
            return _read(where, operator, contracts)
        case op.Union():
            return _union(where, before)
        case op.Filter(predicate):
            _check(where, [predicate], before[0])
        case op.Split(routes=routes):
            _check(where, routes.values(), before[0])
        case op.WithColumns(added):
            _check_different(where, tuple(added))
            _check(where, added.values(), before[0])
            return before[0] + added_to(before[0], added)
        case op.Select(selected):
            _exist(where, selected, before[0])
            _check_different(where, selected)
            return selected
        case op.KeyBy(keys):
            _exist(where, keys, before[0])
            _check_different(where, keys)
            _check_keys(where, keys)
        case op.AggregateBy(aggregates):
            _aggregates(where, aggregates, before[0])
            return tuple(aggregates)
        case op.Behind() | op.WindowBy() | op.Publish() | op.Discard():
            pass
    return before[0]


def added_to(before: Iterable[str], added: Iterable[str]) -> tuple[str, ...]:
    """The columns of `added` that are new. The others replace a column whose name may differ in case and stays."""
    there = {column.lower() for column in before}
    return tuple(column for column in added if column.lower() not in there)


def _check_different(where: str, names: tuple[str, ...]) -> None:
    lower = [name.lower() for name in names]
    twice = [name for name in names if lower.count(name.lower()) > 1]
    if twice:
        raise DeclarationError(f"{where} names `{twice[0]}` twice; case does not matter: {', '.join(names)}")


def _check_keys(where: str, keys: tuple[str, ...]) -> None:
    """Refuse a key with the name of a column that state has anyway: state has one column for each key."""
    reserved = [key for key in keys if key.lower() in STATE_COLUMNS]
    if reserved:
        raise DeclarationError(
            f"{where}: state has a column `{reserved[0]}` of its own, so no key can have that name",
            fix=f'give the key another name: .with_columns({reserved[0].strip("_")}_="`{reserved[0]}`")',
        )


def _read(where: str, read: op.Read, contracts: Mapping[str, Contract]) -> tuple[str, ...]:
    contract = contracts.get(read.contract)
    if contract is None:
        raise no_contract(where, read.contract, contracts)
    if contract.format is None:
        raise DeclarationError(
            f"{where}: contract `{contract.name}` has no format, so its records cannot be decoded",
            fix=f"add the custom property `format`: {', '.join(Format)}",
        )
    if read.event_time is not None:
        _exist(where, (read.event_time,), contract.columns)
        field = next(f for f in contract.fields if f.name == read.event_time)
        if field.type is not Scalar.TIMESTAMP:
            times = " or ".join(f"`{each.name}`" for each in contract.fields if each.type is Scalar.TIMESTAMP)
            name = contract.source or contract.name
            units = _UNITS if field.type in (Scalar.INTEGER, Scalar.LONG) else ""
            raise DeclarationError(
                f"{where}: event_time `{read.event_time}` is of type {field.type}, expected a timestamp",
                fix=f"{f'name {times}; or ' if times else ''}write logicalType: timestamp for it in {name}{units}",
            )
    _check(f"{where}: watermark", filter(None, [read.watermark]), contract.columns)
    kept = contract.format is Format.JSON and contract.extra_fields is ExtraFields.KEEP
    return (*contract.columns, "_extra") if kept else contract.columns


def _union(where: str, before: list[tuple[str, ...]]) -> tuple[str, ...]:
    for other in before[1:]:
        if set(other) != set(before[0]):
            raise DeclarationError(
                f"{where} merges streams with other columns: ({', '.join(before[0])}) and ({', '.join(other)})",
                fix="use select and with_columns to give them the same",
            )
    return before[0]


def _aggregates(where: str, aggregates: Mapping[str, Aggregate], before: tuple[str, ...]) -> None:
    reserved = [c for c in aggregates if c.lower() in WINDOW_COLUMNS + PUBLISHED_COLUMNS]
    if reserved:
        raise DeclarationError(f"{where}: `{reserved[0]}` is a column of Tidemill's own", fix="choose another name")
    for name, aggregate in aggregates.items():
        with told(f"{where}: `{name}`"):
            used = columns_read(aggregate)
        _exist(where, sorted(used), before)


def _check(where: str, expressions: Iterable[str], known: tuple[str, ...]) -> None:
    for expression in expressions:
        with told(where):
            used = columns_of(expression)
        _exist(where, sorted(used), known)


def _exist(where: str, used: Iterable[str], known: tuple[str, ...]) -> None:
    available = {c.lower() for c in (*known, *RECORD_COLUMNS)}
    for column in used:
        if column.lower() not in available:
            raise unknown(where, "column", column, known)


def no_contract(where: str, name: str, known: Iterable[str]) -> DeclarationError:
    """The error for a contract that does not exist."""
    return unknown(where, "contract", name, known, fix=f"write it: a file {name}.odcs.yaml beside the others")


def unknown(where: str, kind: str, name: str, known: Iterable[str], *, fix: str = "") -> DeclarationError:
    """The error for a name that does not exist; it lists the existing names. `fix` helps where none is similar."""
    listed = sorted(known)
    close = difflib.get_close_matches(name, listed, n=1)
    return DeclarationError(
        f"{where}: there is no {kind} `{name}`; there are: {', '.join(listed) or 'none'}",
        fix=f"did you mean `{close[0]}`?" if close else fix,
    )
