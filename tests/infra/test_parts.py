"""Parts of the long forms: each long test is in one of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.parts import left_out


class Item:
    """A test in a file, as far as parts look at it."""

    def __init__(self, file: str, number: int, *, long: bool) -> None:
        self.path, self.nodeid, self._long = Path(file), f"{file}::test[{number}]", long

    def get_closest_marker(self, name: str) -> object:
        return object() if self._long and name == "long" else None


def some_tests() -> list[Any]:
    counts = {**dict.fromkeys("abcdefgh", 4), "many": 600}
    return [Item(f"{file}.py", n, long=n % 2 == 0) for file, count in counts.items() for n in range(count)]


@pytest.mark.parametrize("parts", [1, 2, 6, 9])
def test_each_long_test_is_in_one_part_and_all_others_in_each(parts: int) -> None:
    tests = some_tests()
    out = [left_out(tests, f"{part}/{parts}") for part in range(1, parts + 1)]
    times = Counter(test for left in out for test in left)
    assert {times[test] for test in tests if test.get_closest_marker("long")} == {parts - 1}
    assert all(times[test] == 0 for test in tests if not test.get_closest_marker("long"))


def test_long_tests_of_one_file_are_in_one_part_unless_they_are_many() -> None:
    tests = some_tests()
    names = Counter(str(test.path) for test in left_out(tests, "1/6"))
    assert {names[f"{file}.py"] for file in "abcdefgh"} <= {0, 2}
    assert 200 < names["many.py"] < 300


@pytest.mark.parametrize("part", ["0/6", "7/6", "1", "a/b", "1/0", "-1/6"])
def test_what_is_no_part_is_refused(part: str) -> None:
    with pytest.raises(pytest.UsageError, match="expected a part such as 2/6"):
        left_out(some_tests(), part)
