"""What the values of forms mean, without Airflow and without a ledger."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tidemill.core.errors import ConfigError
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.slices import BatchRange
from tidemill.core.protocol.events import Decision
from tidemill.core.repair.selection import OfTimes, OfWindows
from tidemill_airflow.tasks import asked

DAY = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"decision": "accept"}, "batch: accept is a decision about one batch, and none is named"),
        ({"decision": "accept", "batch": 0}, "expected the number of a batch, found 0"),
        ({"decision": "accept", "batch": True}, "expected the number of a batch, found True"),
        ({"decision": "accept", "batch": "7"}, "expected the number of a batch, found '7'"),
        ({"decision": "accept", "batch": 7, "partitions": "a-0"}, "partitions: accept is not about lost partitions"),
        ({"decision": "from now", "batch": 7}, "batch: from now is not about a blocked batch"),
        ({"decision": "gone"}, "gone needs the partitions"),
        ({"decision": "gone", "partitions": " , "}, "gone needs the partitions"),
        ({"decision": "gone", "partitions": "events"}, "expected TOPIC-PARTITION, found 'events'"),
        ({"decision": "gone", "partitions": "events-\u0663"}, "expected TOPIC-PARTITION"),
        ({"decision": "forget"}, "expected one of show, accept, divert, retry, from now, gone, found 'forget'"),
    ],
)
def test_a_decision_that_is_not_clear_is_refused(form: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        asked.choice_of(form)


def test_a_decision_is_about_what_it_names() -> None:
    assert asked.choice_of({}) == asked.choice_of({"decision": "ask", "batch": 7}) == asked.Shown()
    assert asked.choice_of({"decision": "divert", "batch": 7}) == asked.AboutAudit(decision=Decision.DIVERT, batch_id=7)
    lost = (TopicPartition("web.access", 3), TopicPartition("web.access", 4))
    found = asked.choice_of({"decision": "gone", "partitions": "web.access-3, web.access-4"})
    assert found == asked.WithoutPartitions(places=lost)


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"from_time": "yesterday"}, "from time: expected a time such as 2026-03-01T12:00:00Z, found 'yesterday'"),
        ({"from_offsets": "web.access:7"}, "expected TOPIC-PARTITION:OFFSET"),
        ({"from_time": "2026-01-01", "to_offsets": "a-0:7"}, "the form has times and offsets"),
        ({"from_time": "2026-01-01", "from_window": "2026-01-01", "to_window": "2026-01-02"}, "times and windows"),
        ({"from_window": "2026-01-01"}, "from_window is given without to_window"),
        ({"to_window": "2026-01-01"}, "to_window is given without from_window"),
        ({"from_window": "2026-01-02", "to_window": "2026-01-01"}, "is not before"),
        ({"from_time": "2026-01-02", "to_time": "2026-01-01"}, "is not before"),
        ({"from_time": 7}, "from_time: expected a text, found 7"),
        ({"from_offsets": "orders-\u0660:7"}, "expected TOPIC-PARTITION:OFFSET"),
        ({"from_offsets": f"orders-{'9' * 5_000}:7"}, "expected TOPIC-PARTITION:OFFSET"),
    ],
)
def test_bounds_of_a_backfill_that_contradict_each_other_are_refused(form: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        asked.backfill_of(form)


def test_bounds_of_a_backfill_are_times_offsets_or_windows_and_blanks_are_none() -> None:
    assert asked.backfill_of({"from_time": "  ", "to_offsets": ""}) is None
    assert asked.backfill_of({"from_time": "2026-01-01"}) == OfTimes(since=DAY, until=None)
    both = {"from_window": "2026-01-01T00:00:00Z", "to_window": "2026-01-02"}
    assert asked.backfill_of(both) == OfWindows(since=DAY, until=datetime(2026, 1, 2, tzinfo=UTC))


def test_conditions_of_the_other_kind_of_records_are_refused() -> None:
    with pytest.raises(ConfigError, match="rule: only rejected records have one, and late is chosen"):
        asked.replay_of({"records": "late", "rule": "cents"})
    with pytest.raises(ConfigError, match="table: only late records have one, and quarantine is chosen"):
        asked.replay_of({"table": "sums"})
    with pytest.raises(ConfigError, match="expected quarantine or late, found 'all'"):
        asked.replay_of({"records": "all"})


@pytest.mark.parametrize(
    "batch", ["50-", "-50", "\u0663", "7-\u0669", "0", "9-7", "7-9-11", "9" * 31, "9" * 5_000, "1_0"]
)
def test_batches_are_one_number_or_two(batch: str) -> None:
    with pytest.raises(ConfigError, match="batch: expected a batch such as 7, or 7-9, found"):
        asked.replay_of({"batch": batch})


def test_batches_may_have_blanks() -> None:
    assert asked.replay_of({"batch": " 7 - 9 "})[1].batches == (BatchRange(7, 10),)
    assert asked.replay_of({"batch": "7"})[1].batches == (BatchRange(7, 8),)


@pytest.mark.parametrize(
    "refuse",
    [
        lambda text: asked.backfill_of({"from_offsets": text}),
        lambda text: asked.backfill_of({"from_offsets": f"a-0:1,a-0:2,{text}-0:1"}),
        lambda text: asked.backfill_of({"from_time": text}),
        lambda text: asked.backfill_of({"from_window": text, "to_window": text}),
        lambda text: asked.replay_of({"batch": text}),
        lambda text: asked.replay_of({"records": text}),
        lambda text: asked.choice_of({"decision": text}),
        lambda text: asked.choice_of({"decision": "gone", "partitions": text}),
        lambda text: asked.mode_of({"mode": text}, (asked.PLAN,)),
        lambda text: asked.compared_of({"seed": text}),
        lambda text: asked.target_of({"to": text}),
        lambda text: asked.records_of({"batch_records": text}),
        lambda text: asked.check_fields({text: 1}, asked.BACKFILL_FIELDS),
        lambda text: asked.who_of({"by": [text]}, None),
    ],
)
def test_errors_show_the_beginning_of_a_long_value(refuse: Callable[[str], object]) -> None:
    with pytest.raises(ConfigError) as refused:
        refuse("x" * 1_000_000)
    assert len(str(refused.value)) < 500


def test_a_field_that_a_form_does_not_have_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="no field 'from_tme'") as refused:
        asked.check_fields({"from_tme": "2026-01-01"}, asked.BACKFILL_FIELDS)
    assert refused.value.fix == "did you mean from_time?"


def test_the_ledger_gets_a_name_and_a_reason_or_nothing_is_done() -> None:
    assert asked.who_of({"by": None}, "ana") == "ana"
    assert asked.who_of({"by": " ben "}, "ana") == "ben"
    with pytest.raises(ConfigError, match="does not say who triggered"):
        asked.who_of({"by": "  "}, None)
    with pytest.raises(ConfigError, match="needs a reason"):
        asked.why_of({"why": "  "})


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"sample": 0}, "more than 0"),
        ({"sample": 101}, "up to 100"),
        ({"sample": "all"}, "found 'all'"),
        ({"sample": float("nan")}, "up to 100 percent, found nan"),
        ({"seed": 1.5}, "a whole number, found 1.5"),
        ({"to_window": "2026-01-02"}, "to_window is given without from_window"),
    ],
)
def test_a_verification_of_nothing_is_refused(form: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        asked.compared_of(form)


def test_modes_default_to_a_plan_and_numbers_are_numbers() -> None:
    assert asked.mode_of({}, (asked.PLAN, asked.DO)) == asked.PLAN
    with pytest.raises(ConfigError, match="expected one of plan only, do it, found 'cancel'"):
        asked.mode_of({"mode": "cancel"}, (asked.PLAN, asked.DO))
    with pytest.raises(ConfigError, match="found -1"):
        asked.target_of({"to": -1})
    with pytest.raises(ConfigError, match="found 0"):
        asked.records_of({"batch_records": 0})
