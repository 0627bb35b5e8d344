"""Steps over finished rows of an aggregation: what follows `aggregate` in a declaration, up to `publish`."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.core.bind.sinks import ResultStep
from tidemill.core.declare import operators as op
from tidemill.core.declare.columns import RECORD_COLUMNS
from tidemill.core.declare.graph import Graph
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.expressions import columns_of


def results_of(graph: Graph, publish: str) -> tuple[str, tuple[ResultStep, ...]]:
    """The operator that a publication is fed by, before steps that need one row only, and these steps in order."""
    steps: list[ResultStep] = []
    source = graph.feeding(publish)[0].source
    while isinstance(step := graph.operators[source], op.Filter | op.WithColumns | op.Select):
        steps.insert(0, step)
        source = graph.feeding(source)[0].source
    return source, tuple(steps)


def check_results(where: str, steps: Sequence[ResultStep], row_key: Sequence[str], columns: Sequence[str]) -> None:
    """Check that rows can still be told apart after these steps, which leave `columns`.

    Raises:
        DeclarationError: a step replaces or leaves out a column of `row_key`, or reads the place of a record.
    """
    used = {c for step in steps for text in _texts(step) for c in columns_of(text)}
    places = sorted(c for c in used if c.lower() in RECORD_COLUMNS)
    if places:
        raise DeclarationError(
            f"{where}: a step after .aggregate(...) reads `{places[0]}`, but a result comes from many records",
            fix=f"keep it with an aggregate, for example first=Min({places[0]!r})",
        )
    made = {name.lower() for step in steps if isinstance(step, op.WithColumns) for name in step.columns}
    lost = [name for name in row_key if name.lower() in made or name not in columns]
    if lost:
        raise DeclarationError(
            f"{where}: a step after .aggregate(...) replaces or leaves out `{lost[0]}`, which tells rows apart",
            fix="give the new column another name, or name the column in .select(...)",
        )


def _texts(step: ResultStep) -> Sequence[str]:
    match step:
        case op.Filter(predicate):
            return (predicate,)
        case op.WithColumns(columns):
            return tuple(columns.values())
        case _:
            return ()
