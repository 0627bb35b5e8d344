"""What Spark's analyzer says about many expressions, in few statements."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tidemill.core.contract.schema import DataType, Field, ddl


@contextmanager
def a_view(session: Any, name: str, types: Mapping[str, DataType]) -> Iterator[None]:
    """A view without rows that has these columns; Spark's client does not log what Spark refuses."""
    session.sql(f"DROP VIEW IF EXISTS {name}")
    session.createDataFrame([], ddl(Field(name=n, type=t) for n, t in types.items())).createTempView(name)
    # Spark's client logs every expression that Spark refuses.
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)
    session.sql(f"DROP VIEW {name}")


def types_in_spark(session: Any, view: str, expressions: Sequence[str]) -> list[str | None]:
    """The type of each expression, None where Spark refuses it."""
    if not expressions:
        return []
    state = session._jsparkSession.sessionState()
    columns = ", ".join(f"{each} AS c{i}" for i, each in enumerate(expressions))
    try:
        plan = state.analyzer().execute(state.sqlParser().parsePlan(f"SELECT {columns} FROM {view}"))
        found = [plan.expressions().apply(i) for i in range(len(expressions))]
        return [each.dataType().simpleString() if each.resolved() else None for each in found]
    except Exception:
        # Spark refuses some calls while it looks for their function, and then the statement as a whole.
        if len(expressions) == 1:
            return [None]
        half = len(expressions) // 2
        halves = expressions[:half], expressions[half:]
        return [found for each in halves for found in types_in_spark(session, view, each)]


def checked_in_spark(session: Any, view: str, expressions: Sequence[str]) -> list[str | None]:
    """As `types_in_spark`, but also with the checks that Spark makes when all types are known: those of lambdas."""
    found = types_in_spark(session, view, expressions)
    taken = [at for at, kind in enumerate(found) if kind is not None]
    refused = _refused(session, view, expressions, taken)
    return [None if at in refused else kind for at, kind in enumerate(found)]


def _refused(session: Any, view: str, expressions: Sequence[str], taken: Sequence[int]) -> set[int]:
    if not taken:
        return set()
    state = session._jsparkSession.sessionState()
    columns = ", ".join(f"{expressions[at]} AS c{at}" for at in taken)
    try:
        plan = state.analyzer().execute(state.sqlParser().parsePlan(f"SELECT {columns} FROM {view}"))
        state.analyzer().checkAnalysis(plan)
    except Exception:
        if len(taken) == 1:
            return set(taken)
        half = len(taken) // 2
        return _refused(session, view, expressions, taken[:half]) | _refused(session, view, expressions, taken[half:])
    return set()
