"""The made-up traffic: the same for one seed, and with everything that makes traffic hard."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from datetime import datetime, timedelta

import pytest

from tidemill.demo.traffic import PAGES, Kind, Line, Traffic, lines
from tidemill.engine.read.decode.access_line import read_line

SMALL = Traffic(records=20_000)
TIME = re.compile(rb"\[(\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\]")


@pytest.fixture(scope="module")
def made() -> list[Line]:
    return list(lines(SMALL))


def time_of(line: Line) -> datetime:
    return datetime.strptime(TIME.search(line.value)[1].decode(), "%d/%b/%Y:%H:%M:%S %z")


def arrival(number: int) -> datetime:
    return SMALL.start + SMALL.span * number / SMALL.records


def ages(made: list[Line], kind: Kind) -> list[timedelta]:
    return [arrival(n) - time_of(line) for n, line in enumerate(made) if line.kind is kind]


def test_one_seed_gives_the_same_bytes_for_ever():
    digest = hashlib.sha256(b"\n".join(line.value for line in lines(Traffic(seed=1, records=500))))
    assert digest.hexdigest() == "f1a63f743a52c850f22c40b17b1f540d012bbf42ec13eae8166482037c574221"


def test_another_seed_gives_other_lines(made):
    assert [line.value for line in lines(Traffic(seed=8, records=50))] != [line.value for line in made[:50]]


def test_every_kind_of_line_is_there(made):
    counts = Counter(line.kind for line in made)
    assert set(counts) == set(Kind)
    assert counts[Kind.FUTURE] == 1
    assert 0.008 < counts[Kind.BROKEN] / len(made) < 0.012


def test_far_future_is_there_once_even_in_the_smallest_traffic():
    assert [line.kind for line in lines(Traffic(records=1))] == [Kind.FUTURE]


@pytest.mark.parametrize(
    ("kind", "youngest", "oldest"),
    [
        (Kind.IN_ORDER, timedelta(0), timedelta(seconds=1)),
        (Kind.OUT_OF_ORDER, timedelta(0), timedelta(minutes=1)),
        (Kind.BEHIND, timedelta(minutes=2), timedelta(minutes=51)),
        (Kind.LATE, timedelta(minutes=95), timedelta(minutes=136)),
    ],
)
def test_age_of_a_line_is_that_of_its_kind(made, kind, youngest, oldest):
    found = ages(made, kind)
    assert youngest <= min(found)
    assert max(found) <= oldest


def test_late_lines_come_only_when_their_windows_were_there(made):
    assert all(arrival(n) - SMALL.start > timedelta(hours=2) for n, x in enumerate(made) if x.kind is Kind.LATE)


def test_broken_lines_are_unreadable_or_against_the_contract_and_others_are_not(made):
    for line in made:
        readable = _readable(line.value)
        assert readable is (line.kind is not Kind.BROKEN), line


def _readable(value: bytes) -> bool:
    try:
        found = read_line(value.decode())
    except UnicodeDecodeError:
        return False
    fits = not isinstance(found, str) and found["method"] is not None and found["status"] != "999"
    return fits and "31/Feb" not in found["time"]


def test_broken_lines_are_broken_in_many_ways(made):
    reasons = {str(read_line(x.value.decode("latin-1")))[:12] for x in made if x.kind is Kind.BROKEN}
    assert len(reasons) >= 5
    assert any(x.value == b"" for x in made)
    assert any(b"\xe9" in x.value for x in made)


def test_cut_lines_have_no_size_and_unmodified_ones_a_dash(made):
    cut = next(line for line in made if line.kind is Kind.CUT)
    assert re.search(rb'" \d{3}$', cut.value)
    assert any(b" 304 - " in line.value for line in made)


def test_pages_are_skewed_and_some_have_a_query(made):
    found = [read_line(line.value.decode()) for line in made if line.kind is Kind.IN_ORDER]
    pages = Counter(each["path"].partition("?")[0] for each in found)
    assert set(pages) <= set(PAGES)
    assert pages[PAGES[0]] > 20 * pages[PAGES[-1]]
    assert any("?" in each["path"] for each in found)


def test_key_is_the_client(made):
    good = [line for line in made if line.kind is Kind.IN_ORDER]
    assert all(line.value.startswith(line.key + b" ") for line in good)


def test_traffic_without_a_record_is_refused():
    with pytest.raises(ValueError, match="at least one record"):
        Traffic(records=0)
