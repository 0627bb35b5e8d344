"""The types of expressions and aggregates, as Spark's analyzer finds them without any rows."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from functools import reduce

from pyspark.errors import AnalysisException, IllegalArgumentException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Flow, Input
from tidemill.core.bind.sinks import RowSink, Sink, StatefulSink, WindowedSink
from tidemill.core.contract.row_rules import patterns_of
from tidemill.core.contract.schema import Array, DataType, Decimal, Field, Object, Scalar, ddl
from tidemill.core.declare.type_checks import Foreign, check_fits, check_numbers, check_united
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.text import quoted, renamed
from tidemill.core.time.window_expressions import BOUNDS
from tidemill.engine.aggregate.aggregate_sql import partials_of, results
from tidemill.engine.aggregate.branches import Branch, Path, branch_out, branches_of, unpack
from tidemill.engine.aggregate.firing_sql import OF_FIRINGS, finished_firings
from tidemill.engine.aggregate.table_types import check_published, check_state, where_published
from tidemill.engine.aggregate.time_zones import check_zone
from tidemill.engine.aggregate.window_sql import finished_windows, partial_aggregates
from tidemill.engine.read.decode import decoder_for
from tidemill.engine.read.typed_rows import ANY_TIME, checked, row_schema
from tidemill.engine.spark.query import ROWS, queries, query
from tidemill.engine.storage.table_layout import Uris
from tidemill.tables.arrow_types import schema_fields

_SCALARS: dict[type[T.DataType], Scalar] = {
    T.StringType: Scalar.STRING,
    T.BinaryType: Scalar.BINARY,
    T.BooleanType: Scalar.BOOLEAN,
    T.ByteType: Scalar.INTEGER,
    T.ShortType: Scalar.INTEGER,
    T.IntegerType: Scalar.INTEGER,
    T.LongType: Scalar.LONG,
    T.FloatType: Scalar.DOUBLE,
    T.DoubleType: Scalar.DOUBLE,
    T.DateType: Scalar.DATE,
    T.TimestampType: Scalar.TIMESTAMP,
    T.TimestampNTZType: Scalar.TIMESTAMP,
}
_NO_TOPIC = ("'' AS _topic",)
_SHOWN_FIELDS = "spark.sql.debug.maxToStringFields"
_CLOCK = re.compile(r"cast\(\s*(?:now|today|yesterday|tomorrow)(?: [^#()]*)? as (?:date|time)\w*\)", re.IGNORECASE)


def check_types(session: SparkSession, flow: Flow, uris: Uris) -> None:
    """Refuse a declaration if its contracts could lose values, or if its types do not fit existing tables.

    It reads only the newest version of each table of the flow, and runs no job.

    Raises:
        DeclarationError: Spark cannot run an expression; or values could be lost, or depend on the clock.
        Incompatible: the state or a published table has columns of other types.
    """
    for source in (s for s in flow.sources if s.watermark is not None):
        with _told(f"{flow.spec.graph.where(source.name)}: Spark cannot run the watermark"):
            _decoded(session, source).selectExpr("*", *_NO_TOPIC).selectExpr(f"unix_micros({source.watermark})")
    for sink in flow.sinks:
        where = where_published(flow, sink)
        with _told(f"{where}: Spark cannot run what {sink.table} is computed by"):
            _check(session, flow, sink, uris, where)


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Say of an expression that Spark refuses, what it is and why."""
    try:
        yield
    except (AnalysisException, IllegalArgumentException, ParseException) as error:
        raise DeclarationError(f"{what}: {str(error).splitlines()[0]}") from None


def _check(session: SparkSession, flow: Flow, sink: Sink, uris: Uris, where: str) -> None:
    rows = _rows(session, flow, sink, where)
    if rows is None:
        return
    columns = sink.contract.columns
    if isinstance(sink, RowSink):
        published = rows
    elif isinstance(sink, FiringSink):
        _check_numbers(rows, sink, where)
        state = rows.groupBy(*map(quoted, sink.keys)).agg(
            *(F.expr(renamed(t, n)) for n, t in partials_of(sink).items())
        )
        check_state(flow, sink, uris, _types_of(state))
        _, text = finished_firings(ROWS, sink)
        published = query(session, text, state.selectExpr("*", *OF_FIRINGS))
        columns = tuple(f.name for f in sink.computed)
    else:
        _check_numbers(rows, sink, where)
        check_zone(session, sink, where)
        state = partial_aggregates(rows, sink)
        check_state(flow, sink, uris, _types_of(state))
        _, text = results(finished_windows(ROWS, sink), sink)
        published = query(session, text, state.selectExpr("*", *_firing(sink)))
        columns = tuple(f.name for f in sink.computed)
    for field in published.select(*map(quoted, columns)).schema.fields:
        if not isinstance(field.dataType, T.NullType):
            check_fits(where, field.name, data_type(field.dataType), sink.contract)
    _check_clock(published, where)
    check_published(flow, sink, uris)


def empty_rows(session: SparkSession, flow: Flow, sink: Sink) -> DataFrame:
    """A frame without rows that has the columns of those that enter a sink, which some input leads to."""
    rows = _rows(session, flow, sink, sink.table)
    assert rows is not None
    return rows


def _rows(session: SparkSession, flow: Flow, sink: Sink, where: str) -> DataFrame | None:
    """An empty frame with the columns of the rows that enter a sink; None when no input leads to the sink."""
    parts = [unpack(_branched(session, *each), [each[2]]) for each in _branches(flow, sink)]
    for other in parts[1:]:
        check_united(where, _types_of(parts[0]), _types_of(other))
    return reduce(DataFrame.unionByName, parts) if parts else None


def _types_of(rows: DataFrame) -> dict[str, DataType | Foreign | None]:
    return {f.name.lower(): None if isinstance(f.dataType, T.NullType) else data_type(f.dataType) for f in rows.schema}


def _branches(flow: Flow, sink: Sink) -> Iterator[tuple[Input, Path, Branch]]:
    for source in flow.sources:
        for branch, path in branches_of(flow, source):
            if branch.sink is sink:
                yield source, path, branch


def _branched(session: SparkSession, source: Input, path: Path, branch: Branch) -> DataFrame:
    statement, columns = checked(source, ANY_TIME), [f.name for f in decoder_for(source.contract).schema]
    texts = branch_out(statement, columns, [(branch, path)], marked=source.watermark is not None)
    return queries(session, texts, _decoded(session, source))


def _decoded(session: SparkSession, source: Input) -> DataFrame:
    """Decoded rows of an input: none of them, with their columns."""
    schema = row_schema(decoder_for(source.contract), patterns_of(source.contract.row_rules))
    return session.createDataFrame([], ddl(schema_fields(schema)))


def _firing(sink: WindowedSink) -> list[str]:
    bounds = ("_start", "_end") if sink.merging else BOUNDS
    return ["true AS _touched", *(f"0L AS {bound}" for bound in bounds)]


def _check_numbers(rows: DataFrame, sink: StatefulSink, where: str) -> None:
    """Refuse sums and averages of texts: Spark would convert them, and fail at the first text that is not a number."""
    over = {name: a.over[0] for name, a in sink.aggregates.items() if a.over and a.over[0] != "*"}
    found = rows.selectExpr(*(f"({text}) AS `_over_{name}`" for name, text in over.items())).schema
    for field, name in zip(found.fields, over, strict=True):
        known = data_type(field.dataType)
        if not isinstance(known, Foreign):
            check_numbers(where, name, sink.aggregates[name], known)


def _check_clock(rows: DataFrame, where: str) -> None:
    """Refuse texts such as 'now' that Spark itself casts to a date or a time: they depend on the clock."""
    shown, conf = io.StringIO(), rows.sparkSession.conf
    before = conf.get(_SHOWN_FIELDS) or ""
    # By default, Spark shows only the first columns of a plan.
    conf.set(_SHOWN_FIELDS, 1_000_000)
    try:
        with redirect_stdout(shown):
            rows.explain(extended=True)
    finally:
        conf.set(_SHOWN_FIELDS, before)
    found = _CLOCK.search(shown.getvalue().partition("== Optimized")[0])
    if found:
        raise DeclarationError(
            f"{where}: {found.group()} gives another answer each time", fix="write the date or the time itself"
        )


def data_type(found: T.DataType) -> DataType | Foreign:
    """A type of Spark as a type of contracts; narrower numbers become the next wider type."""
    match found:
        case T.DecimalType():
            return Decimal(found.precision, found.scale)
        case T.ArrayType():
            item = data_type(found.elementType)
            return Foreign(found.simpleString()) if isinstance(item, Foreign) else Array(item)
        case T.StructType():
            inner = [(f.name, data_type(f.dataType)) for f in found.fields]
            fields = tuple(Field(name=n, type=t) for n, t in inner if not isinstance(t, Foreign))
            return Object(fields) if len(fields) == len(inner) else Foreign(found.simpleString())
        case _:
            return _SCALARS.get(type(found)) or Foreign(found.simpleString())
