"""A selection by a name that does not exist is refused; one that merely finds nothing is not."""

from __future__ import annotations

from typing import Any

import pytest

from tidemill.core.errors import AmendmentError
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.repair.known_names import KnownNames, check_names
from tidemill.core.repair.selection import selection

KNOWN = KnownNames(
    last_batch=12,
    topics={"pages"},
    partitions={TopicPartition("events", 0), TopicPartition("events", 2)},
    tables={"sums", "totals"},
    reasons={"amount.maximum", "wrong_value(amount): `amount`: expected an integer, found 7.5"},
    rules={"amount.maximum", "paid"},
)


def check(known: KnownNames = KNOWN, **wanted: Any) -> None:
    check_names("sums", SideOutput.QUARANTINE, selection(**wanted), known)


@pytest.mark.parametrize(
    ("wanted", "found", "fix"),
    [
        (
            {"reason": "amount.maxmum"},
            "sums: there is no reason in quarantine that contains `amount.maxmum`; there are: amount.maximum, "
            "wrong_value(amount)",
            "did you mean `amount.maximum`?",
        ),
        ({"reason": "zzz"}, "there are: amount.maximum", "name one of them"),
        ({"topic": "event"}, "no topic that was read `event`; there are: events, pages", "did you mean `events`?"),
        ({"table": "total"}, "no published table `total`", "did you mean `totals`?"),
        ({"partition": 1}, "no partition 1 that was read; there are: 0, 2", "name one of them"),
        ({"topic": "events", "partition": 1}, "no partition 1 of events that was read", "name one of them"),
        ({"topic": "e" * 10**6}, f"no topic that was read '{'e' * 99}… (1,000,002 characters); there are", "name one"),
        ({"batch": "13-20"}, "no batch 13: the last batch is 12", "`tidemill history sums`"),
    ],
)
def test_a_name_that_does_not_exist_is_refused_with_those_that_do(wanted: Any, found: str, fix: str) -> None:
    with pytest.raises(AmendmentError) as error:
        check(**wanted)
    assert found in error.value.message
    assert fix in error.value.fix


@pytest.mark.parametrize(
    "wanted",
    [
        {"reason": "found 7.5"},
        {"reason": "wrong_value(amount)"},
        {"reason": "paid"},
        {"reason": "missing(user)"},
        {"reason": "cut_json"},
        {"topic": "pages", "partition": 7},
        {"topic": "events", "partition": 2, "table": "sums", "batch": "12-99", "offset": 5},
        {},
    ],
)
def test_a_name_that_exists_may_find_nothing(wanted: Any) -> None:
    check(**wanted)


def test_where_nothing_was_ever_put_aside_no_reason_is_wrong() -> None:
    check(KnownNames(last_batch=0), reason="amount.maxmum")


def test_many_reasons_are_counted() -> None:
    with pytest.raises(AmendmentError, match=r"r00, r01.* r09 and 20 more"):
        check(KnownNames(last_batch=1, reasons={f"r{n:02}" for n in range(30)}), reason="zz")
