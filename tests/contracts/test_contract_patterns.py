"""Patterns with flags and categories of Unicode say the same about every text, whoever asks."""

# Letters that look like others are what this is about.
# ruff: noqa: RUF001

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tidemill.contracts.audit import audit
from tidemill.contracts.load import load_contract
from tidemill.contracts.masks import broken
from tidemill.contracts.patterns import complaint
from tidemill.core.contract.contract import Matches
from tidemill.core.contract.schema import Scalar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = ["", "ab", "AB", "aB", "a\nb", "ab\n", "ä", "Ä", "é", "e\u0301", "\u212a", "k", "ſ", "s", "ß", "١", "1", "Ⅷ"]
TEXTS += ["-", "a-Z", "\u2028", "𝒜", "Σ", "ς", "ǅ", "İ", "x y", "\x00"]
TAKES = {
    "(?i)ab": ["ab", "AB", "aB"],
    "(?i)ä|[k-s]": ["ä", "Ä", "\u212a", "k", "ſ", "s"],
    "(?s)a.b": ["a\nb"],
    "(?is)A.B": ["a\nb"],
    "(?i)σ": ["Σ", "ς"],
    r"\p{L}": ["ä", "Ä", "é", "\u212a", "k", "ſ", "s", "ß", "𝒜", "Σ", "ς", "ǅ", "İ"],
    r"\p{Lu}": ["Ä", "\u212a", "𝒜", "Σ", "İ"],
    r"[\p{L}\-]{2,}": ["ab", "AB", "aB", "a-Z"],
    r"\p{N}": ["١", "1", "Ⅷ"],
    r"\p{Nd}": ["١", "1"],
    r"e\p{M}": ["e\u0301"],
    r"[^\P{Zl}]": ["\u2028"],
}


@pytest.mark.parametrize(("pattern", "taken"), TAKES.items())
def test_a_pattern_takes_these_texts_alone_in_batches_and_audits(file: Any, pattern: str, taken: list[str]) -> None:
    rows = pa.table({"x": [*TEXTS, None]})
    column = f"- {{name: x, logicalType: string, logicalTypeOptions: {{pattern: '{pattern}'}}}}"
    # The decoder of records asks by the rule's pattern, an audit by its check.
    [record] = load_contract(file.an_input(column)).row_rules
    assert record.pattern == Matches(column="x", pattern=pattern)
    mask = broken(record.pattern, rows, {"x": Scalar.STRING}).to_pylist()
    assert [text for text, wrong in zip(TEXTS, mask[:-1], strict=True) if not wrong] == taken
    [result] = audit("orders", rows, load_contract(file.an_output(column)))
    assert result.observed == f"{len(TEXTS) - len(taken)} of {len(TEXTS) + 1} rows"


@pytest.mark.spark
@pytest.mark.parametrize("share", [4, pytest.param(1, marks=pytest.mark.long)])
def test_spark_takes_the_same_texts(file: Any, spark: SparkSession, share: int) -> None:
    """Spark audits by the same engine, on its workers. The predicate, which nobody runs, says it in Java's words."""
    rows = spark.createDataFrame(pa.table({"x": TEXTS}))
    found = {}
    patterns = dict(list(TAKES.items())[::share])
    for pattern, taken in patterns.items():
        column = f"- {{name: x, logicalType: string, logicalTypeOptions: {{pattern: '{pattern}'}}}}"
        [rule] = load_contract(file.an_input(column)).row_rules
        found[pattern] = [row["x"] for row in rows.where(rule.predicate).collect()]
        [result] = audit("orders", rows, load_contract(file.an_output(column)))
        assert result.observed.startswith(f"{len(TEXTS) - len(taken)} "), (pattern, result.observed)
    assert found == patterns


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (r"\p{Cc}x", r"`\p{Cc}` is a category of Unicode that engines read in other ways; known are L, M, N"),
        (r"a\pL+", r"`\p` has no name of a category in braces, as in \p{L}"),
        (r"\P", r"`\P` has no name of a category in braces"),
    ],
)
def test_a_category_of_unicode_that_is_not_known_is_named(pattern: str, said: str) -> None:
    assert complaint(pattern).startswith(said)


def test_a_backslash_before_a_letter_p_is_no_category() -> None:
    assert complaint(r"\\p") == ""
