"""Forms that say what would happen: the plans of backfills and replays, and verifications."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.form_tasks import NOTES, executed, tiny  # noqa: F401  a fixture
from support.commands import type_command
from support.projects import NO_SPARK, Mill, an_event, sums
from tidemill.core.errors import Incompatible
from tidemill.engine.publish.comparison import Differences
from tidemill.inspect.verify import Scope, Verified

pytestmark = pytest.mark.airflow

PLAN = {"mode": "plan only"}


@pytest.fixture
def mill(tmp_path: Path) -> Mill:
    """A batch of three records, and one of two, of which one is rejected and one is late."""
    made = sums(tmp_path, NO_SPARK)
    made.feed([an_event(1), an_event(15), an_event(30)])
    made.run()
    made.feed([b"{cut", an_event(2)])
    made.run()
    return made


def plan(mill: Mill, kind: str, form: dict[str, Any]) -> str:
    from tidemill_airflow.tasks import amendments

    return str(executed(mill, getattr(amendments, kind), {**PLAN, **form})["text"])


def test_the_plan_of_a_backfill_is_the_dry_run_of_the_command(mill: Mill) -> None:
    told = plan(mill, "BackfillOperator", {"from_offsets": "events-0:1", "to_offsets": "events-0:2"})
    asked = ("backfill", "sums", "--from-offsets", "events-0:1", "--to-offsets", "events-0:2", "--dry-run")
    typed = type_command(mill.project.folder, *asked).out
    assert told.splitlines()[:-1] == typed.strip().splitlines()[:-1]
    assert told.endswith("nothing was done: this is a plan only")
    assert "asked     for 1 record; whole batches are read again, which makes 3" in told
    assert "reads     3 records, in whole batches: events-0 [0, 3)" in told
    assert NOTES[-1] == "PLAN: asked for 1 record; whole batches are read again, which makes 3"


def test_a_backfill_of_whole_batches_says_nothing_of_more_than_was_asked_for(mill: Mill) -> None:
    assert "asked" not in plan(mill, "BackfillOperator", {"from_offsets": "events-0:0"})


def test_the_plan_of_a_backfill_without_bounds_lists_offsets(mill: Mill) -> None:
    told = plan(mill, "BackfillOperator", {})
    assert "events-0: read up to offset 5, newest event 2026-01-01 00:00:30" in told


def test_the_plan_of_a_replay_names_records_with_their_reasons(mill: Mill) -> None:
    told = plan(mill, "ReplayOperator", {})
    assert "takes     1 record, in 1 batch, live ones in between" in told
    assert "events-0 offset 3, put aside by batch 2: not an event" in told
    late = plan(mill, "ReplayOperator", {"records": "late"})
    assert "events-0 offset 4, put aside by batch 2: late for sums, window of 2026-01-01 00:00:00" in late


def test_the_plan_of_a_replay_refuses_a_name_that_does_not_exist(mill: Mill) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="event"):
        plan(mill, "ReplayOperator", {"topic": "evnts"})


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"topic": "evnts"}, "there is no topic that was read `evnts`"),
        ({"rule": "amuont"}, "there is no reason in quarantine that contains `amuont`"),
        ({"partition": 77}, "there is no partition 77 that was read; there are: 0"),
        ({"batch": "77"}, "there is no batch 77: the last batch is 2"),
        ({"records": "late", "table": "sum"}, "there is no published table `sum`"),
    ],
)
def test_a_replay_refuses_a_name_that_does_not_exist_as_its_plan_does(
    mill: Mill, form: dict[str, Any], says: str
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from tidemill_airflow.tasks.amendments import ReplayOperator

    for mode in ("plan only", "do it"):
        with pytest.raises(AirflowFailException, match=says):
            executed(mill, ReplayOperator, {"mode": mode, **form})
    assert NOTES[-1].startswith("FAILED: sums: there is no ")


def test_only_the_first_turn_of_a_replay_asks_whether_its_records_exist(mill: Mill) -> None:
    """Its own batch may have taken the only record with that reason."""
    from airflow.sdk.exceptions import AirflowSkipException

    from tidemill_airflow.tasks.amendments import ReplayOperator

    form = {"mode": "do it", "records": "late", "offset": 4}
    assert executed(mill, ReplayOperator, form)["batches"]
    assert executed(mill, ReplayOperator, {**form, "topic": "evnts"}, tries=2)["batches"]
    with pytest.raises(AirflowSkipException, match="nothing to do"):
        executed(mill, ReplayOperator, form, run="manual__2")


def verified(monkeypatch: pytest.MonkeyPatch, mill: Mill, *found: Any, **form: Any) -> Any:
    """What the task says of these comparisons."""
    from tidemill_airflow.tasks.verifying import VerifyOperator

    def compare(_: Any, scope: Scope) -> Iterator[Verified]:
        for each in found:
            if isinstance(each, Exception):
                raise each
            yield Verified(table="sums", differences=each)

    monkeypatch.setattr("tidemill.inspect.verify.verify", compare)
    return executed(mill, VerifyOperator, form)


def test_a_verification_succeeds_fails_or_proves_nothing(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

    done = verified(monkeypatch, mill, Differences(compared=3))
    assert (done["rows"], done["text"]) == ({"sums": 3}, "sums: 3 rows compared, 0 different")
    assert NOTES[-1] == "COMPARED: 3 rows of sums, and none differs"
    with pytest.raises(AirflowFailException, match="sums: rows differ from the log"):
        verified(monkeypatch, mill, Differences(compared=3, missing=1, count=1))
    assert NOTES[-1] == "DIFFERENT: sums: rows differ from the log"
    for form in ({}, {"sample": 10}, {"from_window": "2026-01-01", "to_window": "2026-01-02"}):
        with pytest.raises(AirflowSkipException, match="this proves nothing"):
            verified(monkeypatch, mill, Differences(), **form)
        assert NOTES[-1] == "skipped: nothing was compared, so this proves nothing"
    with pytest.raises(AirflowFailException, match="nobody decided"):
        verified(monkeypatch, mill, Differences(compared=3), Incompatible("nobody decided"))
