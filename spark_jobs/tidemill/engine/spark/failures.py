"""What an error of Spark or of the storage means for a user: something to correct, or something to try again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    NumberFormatException,
    ParseException,
    PySparkException,
    SparkRuntimeException,
)

from tidemill.core.errors import ConfigError, DeclarationError, EngineError, TidemillError
from tidemill.stores.refusals import refusal

_LONGEST = 600
_NOT_SQL = (ParseException, AnalysisException)


class _Cause(NamedTuple):
    """What an error is whose text has one of these codes."""

    codes: tuple[str, ...]
    error: Callable[..., TidemillError]
    why: str
    fix: str


_CAUSES = (
    _Cause(
        ("[DATA_SOURCE_NOT_FOUND]", "Failed to find data source", "[DELTA_CONFIGURE_SPARK_SESSION"),
        ConfigError,
        "this Spark lacks jars",
        "start it with Delta's jars and extension, and with those for Kafka and S3 where they are used: `tidemill jars "
        "fetch` brings them",
    ),
    _Cause(
        ("[PATH_NOT_FOUND]", "FILE_NOT_EXIST]", "java.io.FileNotFoundException", "FileNotFoundError: "),
        EngineError,
        "a file went away while the batch read it",
        "run it again: what the log or a table has lost is named then, and nothing moves",
    ),
    _Cause(
        ("java.lang.OutOfMemoryError",),
        ConfigError,
        "Spark's Java process has too little memory for this batch",
        'give it more, for example `"spark.driver.memory" = "4g"` below `[spark.conf]` in tidemill.toml, or '
        "divide the pipeline: another one may read the same topic and publish some of the tables",
    ),
    _Cause(
        ("java.lang.StackOverflowError", "[FAILED_TO_PARSE_TOO_COMPLEX]"),
        DeclarationError,
        "the pipeline has more tables and steps than Spark plans at once",
        "divide it: another pipeline may read the same topic and publish some of the tables",
    ),
)
_OF_A_ROW = (
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    NumberFormatException,
    SparkRuntimeException,
)


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Turn errors of Spark and of the storage into Tidemill's errors.

    Raises:
        DeclarationError: an expression of the pipeline or a contract is not valid, or fails for some row, or the
            pipeline has too many tables.
        ConfigError: a Spark that was not started here lacks jars, or Spark's Java process has too little memory.
        StoreError: the storage is read-only, or refuses access.
        EngineError: anything else failed; it may succeed later.
    """
    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise _of_spark(where, error) from error
    except OSError as error:
        if refused := refusal(f"{where}: the lake's storage failed", error):
            raise refused from error
        raise EngineError(
            f"{where}: the lake's storage failed: {_first_lines(error)}",
            fix="run it again; when it fails each time, look at the storage and at `tidemill doctor`",
        ) from error


def _of_spark(where: str, error: Exception) -> TidemillError:
    text = _first_lines(error)
    for cause in _CAUSES:
        if any(code in text for code in cause.codes):
            return cause.error(f"{where}: {cause.why}: {text}", fix=cause.fix)
    if isinstance(error, _NOT_SQL):
        return DeclarationError(
            f"{where}: Spark does not understand an expression: {text}",
            fix="correct the expression in the pipeline or the contract, then run again: the batch is planned anew",
        )
    if isinstance(error, _OF_A_ROW):
        return DeclarationError(
            f"{where}: an expression fails for some row: {text}",
            fix="use the forms that give null instead (try_cast, try_divide, try_element_at, ...), then run again",
        )
    if refused := refusal(f"{where}: Spark's storage failed", error):
        return refused
    return EngineError(
        f"{where}: Spark failed: {text}",
        fix="run it again; when it fails each time, look at Spark's own log and at `tidemill doctor`",
    )


def _first_lines(error: Exception) -> str:
    text = str(error)
    causes = [line.strip() for line in text.splitlines() if line.startswith("Caused by: ")]
    begin = _without_frames(text.partition("\nJVM stacktrace")[0].partition("\n\tat ")[0].strip())
    begin = begin if len(begin) <= _LONGEST else begin[:_LONGEST] + " ..."
    return f"{begin}\n  {causes[-1][:_LONGEST]}" if causes else begin


def _without_frames(text: str) -> str:
    """The text without the frames of Python: what stands before them, and the error at their end."""
    before, traced, frames = text.partition("Traceback (most recent call last):")
    lines = [line for line in frames.splitlines() if line.strip()]
    return f"{before.rstrip()} {lines[-1].strip()}".strip() if traced and lines else text
