"""What is known of the arguments of functions, held against Spark's own analyzer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from support.columns import TYPES, VALUES
from support.spark_analysis import a_view, types_in_spark
from tidemill.core.sql.function_signatures import SIGNATURES, WORDS, Signature
from tidemill.core.sql.functions import AGGREGATE_FUNCTIONS, ROW_FUNCTIONS

pytestmark = pytest.mark.spark

LETTERS = "".join(VALUES)
SAMPLES = pytest.mark.parametrize("share", [8, pytest.param(1, marks=pytest.mark.long)])
"""Of so many functions one is looked at."""
MOST = 4
GIVEN = {
    "string": ("string",),
    "texts": ("array<string>",),
    "binary": ("binary",),
    "boolean": ("boolean",),
    "int": ("int",),
    "bigint": ("bigint",),
    "count": ("int", "bigint", "smallint", "tinyint"),
    "double": ("double",),
    "number": ("float", "double", "decimal(10,0)"),
    "date": ("date",),
    "timestamp": ("timestamp",),
}


@pytest.fixture(scope="module")
def session(spark: Any) -> Iterator[Any]:
    with a_view(spark, "signatures", TYPES):
        yield spark


def functions(share: int) -> list[tuple[str, Signature]]:
    """The functions of a sample, always the same ones."""
    known = sorted(SIGNATURES.items(), key=lambda item: item[0])
    return known if share == 1 else random.Random(13).sample(known, len(known) // share)


def wrong_numbers(name: str, signature: Signature) -> Iterator[str]:
    """Calls with more or fewer arguments than we say that there may be."""
    for count in range(MOST + 1):
        if not signature.takes(count):
            yield f"{name}({', '.join(['NULL'] * count)})"
            yield f"{name}({', '.join(['note'] * count)})"


def wrong_kinds(name: str, signature: Signature, chance: random.Random) -> Iterator[str]:
    """Calls with a value of a kind that we refuse, among others that fit."""
    for count in range(1, MOST + 1):
        if not signature.takes(count):
            continue
        for place in range(count):
            wrong = sorted(set(LETTERS) - WORDS[signature.word(place)].letters)
            for letter in chance.sample(wrong, min(len(wrong), 4)):
                for others in (None, "first", "any"):
                    values = [other(signature.word(at), others, chance) for at in range(count)]
                    values[place] = VALUES[letter]
                    yield f"{name}({', '.join(values)})"


def other(word: str, choice: str | None, chance: random.Random) -> str:
    letters = [letter for letter in LETTERS if letter in WORDS[word].letters]
    if choice is None:
        return "NULL"
    return VALUES[letters[0] if choice == "first" else chance.choice(letters)]


def test_the_functions_of_the_table_are_those_that_are_allowed() -> None:
    assert set(SIGNATURES) <= ROW_FUNCTIONS | AGGREGATE_FUNCTIONS


@SAMPLES
def test_spark_refuses_what_is_refused_for_the_number_of_its_arguments(session: Any, share: int) -> None:
    calls = [call for name, signature in functions(share) for call in wrong_numbers(name, signature)]
    found = zip(calls, (types_in_spark(session, "signatures", [call])[0] for call in calls), strict=True)
    assert [call for call, kind in found if kind is not None] == []


@SAMPLES
def test_spark_refuses_what_is_refused_for_the_kind_of_an_argument(session: Any, share: int) -> None:
    chance = random.Random(5)
    taken: list[str] = []
    for name, signature in functions(share):
        calls = [*dict.fromkeys(wrong_kinds(name, signature, chance))]
        taken += [
            f"{call}: {kind}"
            for call, kind in zip(calls, types_in_spark(session, "signatures", calls), strict=True)
            if kind
        ]
    assert taken == []


@SAMPLES
def test_what_fits_gives_what_is_said(session: Any, share: int) -> None:
    chance = random.Random(7)
    wrong: list[str] = []
    for name, signature in functions(share):
        for count in range(MOST + 1):
            if signature.takes(count):
                words = [signature.word(at) for at in range(count)]
                calls = [f"{name}({', '.join(other(w, 'any', chance) for w in words)})" for _ in range(12)]
                wrong += [
                    f"{call}: {kind}"
                    for call, kind in zip(calls, types_in_spark(session, "signatures", calls), strict=True)
                    if kind and kind not in GIVEN.get(signature.gives, (kind,))
                ]
    assert wrong == []
