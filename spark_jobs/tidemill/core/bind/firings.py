"""Joining a table of firings with what its windows need of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidemill.core.bind.firing_checks import check_firings
from tidemill.core.bind.firing_columns import OWN_COLUMNS, FiringColumns
from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.contract.schema import Array, DataType, Object, Scalar, spark_type
from tidemill.core.declare import operators as op
from tidemill.core.declare.aggregate_columns import columns_read
from tidemill.core.declare.columns import unknown
from tidemill.core.declare.firing import Firing
from tidemill.core.declare.guarantees import Guarantee
from tidemill.core.declare.names import told
from tidemill.core.declare.pipeline_spec import PipelineSpec
from tidemill.core.declare.types import Types
from tidemill.core.errors import DeclarationError
from tidemill.core.ordered import triggers as ordered
from tidemill.core.ordered.accumulation import Accumulation
from tidemill.core.ordered.assigners import Sessions
from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.ordered.foldable import Ordered
from tidemill.core.ordered.self_firing import SelfFiring
from tidemill.core.ordered.unreachable import check_reachable, late_part
from tidemill.core.time.trigger import Trigger
from tidemill.core.time.windows import Global, Session

_NUMBERS = (Scalar.INTEGER, Scalar.LONG, Scalar.DOUBLE)


def firing_sink(spec: PipelineSpec, name: str, source: str, types: Mapping[str, Types], **common: Any) -> FiringSink:
    """The sink of the publication `name`, whose rows come from the aggregation `source` of an ordered window.

    Raises:
        DeclarationError: the windows cannot fire so; or a policy looks at a column that is not there, or is of another
            type.
    """
    graph = spec.graph
    publish, window_name = graph.operators[name], graph.feeding(source)[0].source
    window, where = graph.operators[window_name], graph.where(name)
    assert isinstance(publish, op.Publish)
    assert isinstance(window, op.WindowBy)
    with told(where):
        folded = _folded(window, publish)
    sink = FiringSink(
        declared=window.spec, window=folded, start=window.start, end=window.end, told=columns_of(publish), **common
    )
    before = types[graph.feeding(window_name)[0].source]
    for column, kinds in ((sink.attribute, _NUMBERS), (sink.marker, (Scalar.BOOLEAN,))):
        if column is not None:
            _check(graph.where(window_name), column, before, kinds)
    check_firings(where, sink, spec.every)
    _check_names(where, sink)
    _check_guarantee(where, spec.guarantee)
    return sink


def _check_guarantee(where: str, guarantee: Guarantee) -> None:
    """Refuse to give batches up: rows that one had published would fire again from the state before it.

    Raises:
        DeclarationError: the pipeline counts records at most once.
    """
    if guarantee is Guarantee.AT_MOST_ONCE:
        raise DeclarationError(
            f'{where}: with guarantee="{guarantee}" a batch that fails is given up, and what its windows had published '
            "would fire again; tables of firings cannot take that back",
            fix='leave out guarantee: "exactly_once" costs a table of firings nothing extra',
        )


def columns_of(publish: op.Publish) -> FiringColumns:
    """The columns of a publication that say which firing a row is."""
    firing = publish.firing or Firing()
    return FiringColumns(timing=publish.timing, index=firing.index, last=firing.last, operation=firing.operation)


def replaces(publish: op.Publish) -> bool:
    """Whether a publication updates the row of the firing before."""
    return publish.firing is not None and publish.firing.accumulation == Accumulation.REPLACING


def _folded(window: op.WindowBy, publish: op.Publish) -> Ordered:
    """What is folded: the buffer, or windows of event time with their trigger."""
    if isinstance(window.spec, SelfFiring):
        if publish.timing is not None:
            raise DeclarationError(
                f"each firing of {window.spec} is on time, so there is no timing to publish", fix="leave out timing"
            )
        return window.spec
    firing = publish.firing
    assert firing is not None
    assert not isinstance(publish.trigger, Trigger | None)
    spec = window.spec
    check_reachable(publish.trigger)
    _check_late(window, late_part(publish.trigger))
    return EventWindows(
        windows=Sessions(spec.gap) if isinstance(spec, Session) else spec.panes,
        trigger=publish.trigger,
        allowed_lateness=window.allowed_lateness,
        accumulation=firing.accumulation,
        evictor=window.evictor,
        empty_on_time=firing.empty_on_time,
        accept_loss=firing.accept_loss,
    )


def _check_late(window: op.WindowBy, late: ordered.Trigger | None) -> None:
    """Refuse a trigger for late records where there are none. Other windows may get an allowed lateness one day."""
    if late is not None and isinstance(window.spec, Global):
        raise DeclarationError(
            f'late="{late}" is about records that come after the end of their window, and Global() never ends: it '
            "never fires",
            fix="leave out late, or choose windows that end, such as Tumbling",
        )


def _check_names(where: str, sink: FiringSink) -> None:
    """Refuse keys that would be columns of state twice, and columns that rows have twice while they are folded."""
    read = {column for aggregate in sink.aggregates.values() for column in columns_read(aggregate)}
    used = {*sink.keys, *read, *(c for c in (sink.attribute, sink.marker) if c is not None)}
    found = {column for column in used if column.lower() in OWN_COLUMNS}
    if own := sorted(column for column in found if column in sink.keys or column.startswith("_")):
        other = f"{own[0].strip('_')}_"
        raise DeclarationError(
            f"{where}: state of firings has a column `{own[0]}` of its own, so windows can use no column of that name",
            fix=f'give the column another name before: .with_columns({other}="`{own[0]}`")',
        )


def _check(where: str, column: str, types: Types, kinds: tuple[DataType, ...]) -> None:
    """Refuse a column that does not reach the window, or that is certainly of another type."""
    if column.lower() not in types:
        raise unknown(where, "column", column, types)
    found = types[column.lower()]
    if found is not None and found not in kinds:
        names = " or ".join(map(spark_type, kinds))
        raise DeclarationError(
            f"{where}: the policy looks at `{column}`, which is {spark_type(found)}; expected {names}",
            fix=f'convert it before: .with_columns({column}_="{_converted(column, found, kinds)}"), and look at '
            f"`{column}_`",
        )


def _converted(column: str, found: DataType, kinds: tuple[DataType, ...]) -> str:
    """An expression that makes a number of a column of this type, or a condition."""
    if Scalar.BOOLEAN in kinds:
        condition = "= 'end'" if found is Scalar.STRING else "= 1" if found in _NUMBERS else "IS NOT NULL"
        return f"{column} {condition}"
    match found:
        case Scalar.TIMESTAMP:
            return f"unix_micros({column})"
        case Scalar.DATE:
            return f"unix_date({column})"
        case Scalar.BOOLEAN:
            return f"IF({column}, 1, 0)"
        case Array():
            return f"size({column})"
        case Object(fields=fields) if fields:
            return f"{column}.{fields[0].name}"
        case Scalar.BINARY:
            return f"octet_length({column})"
        case _:
            return f"try_cast({column} AS DOUBLE)"
