"""What an error of Spark or of the storage means to a user: something to correct, or something to try again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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

from tidemill.core.errors import DeclarationError, EngineError

_LONGEST = 600
_NOT_SQL = (ParseException, AnalysisException)
_OF_A_ROW = (
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    NumberFormatException,
    SparkRuntimeException,
)


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Errors of Spark and of the storage leave as ours.

    Raises:
        DeclarationError: an expression of the pipeline or a contract is not valid, or fails for some row.
        EngineError: anything else that was refused; it may succeed later.
    """
    try:
        yield
    except _NOT_SQL as error:
        raise DeclarationError(
            f"{where}: Spark does not understand an expression: {_first_lines(error)}",
            fix="correct the expression in the pipeline or the contract, then run again: the batch is planned anew",
        ) from error
    except _OF_A_ROW as error:
        raise DeclarationError(
            f"{where}: an expression fails for some row: {_first_lines(error)}",
            fix="use the forms that give null instead (try_cast, try_divide, try_element_at, ...), then run again",
        ) from error
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise EngineError(
            f"{where}: Spark failed: {_first_lines(error)}",
            fix="run it again; when it fails each time, look at Spark's own log and at `tidemill doctor`",
        ) from error
    except OSError as error:
        raise EngineError(
            f"{where}: the lake's storage failed: {_first_lines(error)}",
            fix="run it again; when it fails each time, look at the storage and at `tidemill doctor`",
        ) from error


def _first_lines(error: Exception) -> str:
    text = str(error)
    causes = [line.strip() for line in text.splitlines() if line.startswith("Caused by: ")]
    begin = text.partition("\nJVM stacktrace")[0].partition("\n\tat ")[0].strip()
    begin = begin if len(begin) <= _LONGEST else begin[:_LONGEST] + " ..."
    return f"{begin}\n  {causes[-1][:_LONGEST]}" if causes else begin
