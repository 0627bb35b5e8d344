"""What batches tell Spark Connect's client, so that it does not ask its server."""

from __future__ import annotations

from functools import cached_property
from types import SimpleNamespace

from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.plan import LogicalPlan
from pyspark.sql.types import StructType

from tidemill.engine.spark.query import of_columns, query


class Asked(Exception):
    """The client asks its server."""


class Client:
    """A server that must not be asked."""

    def __getattr__(self, name: str) -> object:
        raise Asked(name)


def a_frame() -> DataFrame:
    return DataFrame(LogicalPlan(None), SimpleNamespace(client=Client()))  # type: ignore[arg-type]


def test_columns_that_are_known_are_not_asked_for() -> None:
    columns = StructType().add("value", "binary")
    assert of_columns(a_frame(), columns).columns == ["value"]


def test_rows_of_a_statement_are_no_stream_without_a_question() -> None:
    assert isinstance(vars(DataFrame)["isStreaming"], cached_property)
    session = SimpleNamespace(sql=lambda *_, **__: a_frame())
    assert not query(session, "SELECT 1 FROM `the rows`", a_frame()).isStreaming  # type: ignore[arg-type]
