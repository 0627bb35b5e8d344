"""Joining a table of firings with what its windows need of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.contract.schema import DataType, Scalar, spark_type
from tidemill.core.declare import operators as op
from tidemill.core.declare.columns import unknown
from tidemill.core.declare.graph import Graph
from tidemill.core.declare.types import Types
from tidemill.core.errors import DeclarationError

_NUMBERS = (Scalar.INTEGER, Scalar.LONG, Scalar.DOUBLE)


def firing_sink(graph: Graph, name: str, source: str, types: Mapping[str, Types], **common: Any) -> FiringSink:
    """The sink of the publication `name`, whose rows come from the aggregation `source` of an ordered window.

    Raises:
        DeclarationError: the publication has a column of timing; or a policy looks at a column that is not there, or is
            of another type.
    """
    publish, window_name = graph.operators[name], graph.feeding(source)[0].source
    window, where = graph.operators[window_name], graph.where(name)
    assert isinstance(publish, op.Publish)
    assert isinstance(window, op.WindowBy)
    if publish.timing is not None:
        raise DeclarationError(
            f"{where}: each firing of {window.spec} is on time, so there is no timing to publish",
            fix="leave out timing",
        )
    sink = FiringSink(start=window.start, end=window.end, **common)
    before = types[graph.feeding(window_name)[0].source]
    for column, kinds, told in ((sink.attribute, _NUMBERS, "a number"), (sink.marker, (Scalar.BOOLEAN,), "a boolean")):
        if column is not None:
            _check(graph.where(window_name), column, before, kinds, told)
    return sink


def _check(where: str, column: str, types: Types, kinds: tuple[DataType, ...], told: str) -> None:
    """Refuse a column that does not reach the window, or that is certainly of another type."""
    if column.lower() not in types:
        raise unknown(where, "column", column, types)
    found = types[column.lower()]
    if found is not None and found not in kinds:
        names = ", ".join(map(spark_type, kinds))
        raise DeclarationError(
            f"{where}: the policy looks at `{column}`, which is {spark_type(found)}; expected {told}: {names}",
            fix=f'convert it before: .with_columns({column}="CAST({column} AS {spark_type(kinds[-1])})")',
        )
