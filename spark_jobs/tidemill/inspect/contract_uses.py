"""Which pipelines use a contract, and what they have committed by it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from tidemill.core.bind.flow import PUBLISHED
from tidemill.core.counts import many
from tidemill.core.declare import operators as op
from tidemill.core.declare.aggregate_columns import columns_read
from tidemill.core.errors import DeclarationError, TidemillError
from tidemill.core.sql.expressions import columns_of

if TYPE_CHECKING:
    from tidemill.core.protocol.view import View
    from tidemill.project.project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSize:
    """A table in the lake: where it is, the version of the last commit if it is known, and its rows."""

    table: str
    path: str
    version: int | None
    rows: int

    def __str__(self) -> str:
        """For example "/lake/published/sums at version 3, 12 rows"."""
        at = "" if self.version is None else f" at version {self.version}"
        return f"{self.path}{at}, {many(self.rows, 'row')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """How one pipeline uses a contract.

    `columns` are those that it reads by name, and may be names that it makes itself. `batches` is None if its ledger
    cannot be read; `error` says why, or why its tables cannot be read.
    """

    pipeline: str
    topics: str = ""
    table: str = ""
    columns: tuple[str, ...] = ()
    batches: int | None = None
    published: TableSize | None = None
    state: tuple[TableSize, ...] = ()
    error: str = ""

    def __str__(self) -> str:
        """What it does with the contract, and what it has committed, as one line."""
        does = f"reads {self.topics}" if self.topics else f"publishes table {self.table}"
        parts = [f"pipeline {self.pipeline} {does}: {self._committed()}"]
        parts += [f"columns {', '.join(self.columns)}"] if self.columns else []
        parts += [f"table {self.published}"] if self.published else []
        parts += [f"state of {size.table} in {size}" for size in self.state]
        parts += [self.error] if self.error and self.batches is not None else []
        return "; ".join(parts)

    def _committed(self) -> str:
        if self.batches is None:
            return self.error
        if not self.batches:
            return "nothing committed yet"
        return f"its state and tables are those of {many(self.batches, 'committed batch')}"


def use_json(use: Use) -> dict[str, Any]:
    """A use as JSON values."""
    return asdict(use)


def uses_by_contract(project: Project) -> Mapping[str, Sequence[str]]:
    """Say of each contract which pipelines use it, how, and what they have committed, in a line for each."""
    return {name: [str(use) for use in uses] for name, uses in uses_of(project).items()}


def uses_of(project: Project) -> Mapping[str, Sequence[Use]]:
    """The uses of each contract. Pipelines need not fit their contracts; those that cannot be loaded are left out."""
    found: dict[str, list[Use]] = defaultdict(list)
    for name in project.pipeline_names():
        for contract, use in _uses(project, name):
            found[contract].append(use)
    return found


def not_loaded(project: Project) -> Sequence[str]:
    """Why pipelines could not be loaded, a line for each: nobody knows which contracts they use."""
    return [fault.message.splitlines()[0] for fault in project.faults]


def _uses(project: Project, name: str) -> Iterator[tuple[str, Use]]:
    operators = project.spec(name).graph.operators.values()
    view, error = _view(project, name)
    batches = None if view is None else view.position.batch_id
    used = tuple(sorted(set(_columns(operators))))
    for operator in operators:
        use: Use | None = None
        match operator:
            case op.Read():
                topics = ", ".join(operator.names) or f"topics like {operator.pattern}"
                use = Use(pipeline=name, topics=topics, columns=used, batches=batches, error=error)
            case op.Publish():
                use = Use(pipeline=name, table=operator.table, batches=batches, error=error)
            case _:
                continue
        yield operator.contract, _with_sizes(project, view, use)


def _view(project: Project, name: str) -> tuple[View | None, str]:
    try:
        return project.ledger(name).view(), ""
    except TidemillError as error:
        return None, f"its ledger cannot be read: {error.message.splitlines()[0]}"


def _with_sizes(project: Project, view: View | None, use: Use) -> Use:
    """The same with the sizes of the tables that batches have committed."""
    if view is None or not view.position.batch_id:
        return use
    position = view.position
    with_state = [table for table in position.shapes if use.table in ("", table)]
    try:
        state = tuple(
            _size(project, use.pipeline, table, project.table_uri(use.pipeline, "state", table)) for table in with_state
        )
        mark = position.tables.get(PUBLISHED + use.table)
        published = None
        if mark is not None:
            published = _size(project, use.pipeline, use.table, project.published_uri(use.table), mark.version)
    except TidemillError as error:
        said = f"its tables cannot be read: {error.message.splitlines()[0]}"
        return replace(use, error=said)
    return replace(use, state=state, published=published)


def _size(project: Project, pipeline: str, table: str, path: str, version: int | None = None) -> TableSize:
    from tidemill.tables.handles import rows_of
    from tidemill.tables.interface import TableSpec

    spec = TableSpec(name=table, uri=path, storage=project.storage, owner=project.uris(pipeline).owner, fields=())
    return TableSize(table=table, path=path, version=version, rows=rows_of(spec))


def _columns(operators: Collection[op.Operator]) -> Iterator[str]:
    """The columns that operators name."""
    for operator in operators:
        match operator:
            case op.Read(event_time=column, watermark=watermark):
                yield from () if column is None else (column,)
                yield from () if watermark is None else _names([watermark])
            case op.Filter(predicate):
                yield from _names([predicate])
            case op.WithColumns(columns):
                yield from _names(columns.values())
            case op.Split(routes=routes):
                yield from _names(routes.values())
            case op.Select(columns) | op.KeyBy(columns):
                yield from columns
            case op.AggregateBy(aggregates):
                with suppress(DeclarationError):
                    yield from (name for each in aggregates.values() for name in columns_read(each))
            case _:
                pass


def _names(expressions: Collection[str]) -> Iterator[str]:
    for text in expressions:
        # A pipeline with a wrong expression cannot run; other commands say why.
        with suppress(DeclarationError):
            yield from columns_of(text)
