"""What a place of Spark is refused for, before anything runs there."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql.connect.session import SparkSession as OnAServer
from servers import free_ports

from tidemill.core.errors import ConfigError, DeclarationError, EngineError
from tidemill.engine.spark import session as sessions
from tidemill.engine.spark.connect import connect_session
from tidemill.engine.spark.failures import explained
from tidemill.engine.spark.session import ConnectSpark, open_session
from tidemill.engine.spark.settings import is_connect, settle
from tidemill.project.project import Project


def test_a_server_that_is_not_there_is_told_at_once() -> None:
    remote = f"sc://127.0.0.1:{free_ports(1)[0]}"
    start = time.monotonic()
    for ask in (
        lambda: connect_session(remote, str(uuid.uuid4())),
        lambda: open_session(ConnectSpark(remote=remote, identity=str(uuid.uuid4())), name="t"),
    ):
        with pytest.raises(EngineError, match=r"nobody listens at 127\.0\.0\.1:\d+: .*refused"):
            ask()
    assert time.monotonic() - start < 30, "Spark's own client goes on for ten minutes"


def test_a_token_in_a_file_is_refused_and_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "tidemill.toml").write_text('[spark]\nremote = "sc://far:15002/;token=s3cret"\n')
    with pytest.raises(ConfigError, match="SPARK_CONNECT_AUTHENTICATE_TOKEN") as refused:
        Project.load(tmp_path)
    assert "s3cret" not in str(refused.value)


@pytest.mark.spark
@pytest.mark.parametrize("name", ["nobody-has-this", "avro"])
def test_a_spark_without_a_jar_is_told_so(spark: Any, name: str) -> None:
    with pytest.raises(ConfigError, match="lacks jars"), explained("p: batch 1"):
        spark.read.format(name).load()


def test_too_little_memory_is_told_with_the_setting() -> None:
    with pytest.raises(ConfigError, match="too little memory for this batch") as refused, explained("p"):
        raise Py4JError("calling o322.sql.\n: java.lang.OutOfMemoryError: Java heap space")
    assert "[spark.conf]" in refused.value.fix


@pytest.mark.parametrize("said", [": java.lang.StackOverflowError", "[FAILED_TO_PARSE_TOO_COMPLEX] The statement"])
def test_a_pipeline_that_is_too_large_for_spark_is_told_to_divide(said: str) -> None:
    with pytest.raises(DeclarationError, match="more tables and steps than Spark plans") as refused, explained("p"):
        raise Py4JError(said)
    assert "another pipeline may read the same topic" in refused.value.fix


@pytest.mark.spark
def test_what_others_hide_stays_hidden(spark: Any) -> None:
    hidden, other = "spark.sql.redaction.string.regex", spark.newSession()
    other.conf.set(hidden, "their secret")
    for _ in range(2):
        assert settle(other, {}).conf.get(hidden).startswith(r"(?:their secret)|org\.apache\.kafka")
    assert settle(spark.newSession(), {hidden: "mine"}).conf.get(hidden).startswith("(?:mine)|org")


@pytest.mark.spark
@pytest.mark.parametrize(("named", "expected"), [({}, "16"), ({"spark.sql.shuffle.partitions": "7"}, "7")])
def test_state_is_not_shuffled_into_as_many_pieces_as_records(spark: Any, named: dict[str, str], expected: str) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.shuffle.partitions", "200")
    assert settle(other, named).conf.get("spark.sql.shuffle.partitions") == expected
    assert settle(spark, {}).conf.get("spark.sql.shuffle.partitions") == "2", "what somebody chose stays"


@pytest.mark.parametrize(
    ("master", "here"), [("spark://127.0.0.1:7077", True), ("spark://far:7077", False), ("yarn", False)]
)
def test_only_a_cluster_on_this_machine_reaches_a_driver_that_hides(master: str, here: bool) -> None:
    assert sessions._is_here(master) is here


def test_a_session_of_somebodys_own_class_is_known_to_be_on_a_server() -> None:
    class Theirs(OnAServer):
        """A session as a vendor makes it."""

    session: Any = Theirs.__new__(Theirs)
    assert is_connect(session)
