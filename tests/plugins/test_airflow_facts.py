"""What a task says of its batches: facts for later tasks, the note of its run, lines of its log, links."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.builders import a_plan
from tidemill.core.contract.contract import Severity
from tidemill.core.contract.verdict import CheckResult, Verdict
from tidemill.core.plan.position import Position
from tidemill.core.plan.slices import BatchRange
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.account import Account
from tidemill.core.protocol.events import Audited, Committed, Executor, Planned
from tidemill_airflow.tasks.facts import Known, Widened, facts, left_after, note_of, opening, rejected
from tidemill_airflow.tasks.reporting import BatchLog, without_chatter

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def a_commit(batch_id: int = 3, account: Account | None = None, **more: Any) -> Committed:
    values: dict[str, Any] = {
        "attempt": 1,
        "plan_hash": "plan",
        "position": Position(batch_id=batch_id),
        "accounts": {"events": account or Account(read=10, aggregated=10)},
        "published": {"sums": 4},
        "tables": {"sums": 2},
        "started": NOW,
        "at": NOW + timedelta(seconds=2),
    }
    return Committed(batch_id=batch_id, **{**values, **more})


def note(*commits: Committed, known: Known | None = None, widened: Widened | None = None) -> str:
    return note_of([facts(commit, known or Known()) for commit in commits], widened)


def test_facts_name_offsets_lag_and_verdict_of_the_plan() -> None:
    plan, known = a_plan(batch_id=3), Known()
    warning = CheckResult(table="sums", rule="n", severity=Severity.WARNING, passed=False)
    known.learn(
        [
            Planned(plan=plan, executor=Executor(identity="i", host="h", pid=1), at=NOW),
            Audited(batch_id=3, attempt=1, verdict=Verdict((warning,)), logical_hash="h", at=NOW),
        ]
    )
    known.lags[3] = {"events": 5}
    found = facts(a_commit(3), known)
    ranges = {
        (t, r.topic_partition.partition): [r.from_offset, r.until_offset] for t, rs in plan.reads.items() for r in rs
    }
    assert {(t, int(p)): r for t, ps in found["offsets"].items() for p, [r] in ps.items()} == ranges
    assert found["lag"] == {"events": 5}
    assert found["verdict"] == {"state": "warned", "rules": 1, "broken": ["warning sums: n"]}


@pytest.mark.parametrize(
    ("verdict", "state"),
    [
        (Verdict(), "passed"),
        (
            Verdict((CheckResult(table="t", rule="r", severity=Severity.ERROR, passed=False),)),
            "blocked, and accepted by a person",
        ),
    ],
)
def test_verdict_says_whether_a_person_had_to_accept_it(verdict: Verdict, state: str) -> None:
    assert facts(a_commit(), Known(verdicts={3: verdict}))["verdict"]["state"] == state


@pytest.mark.parametrize(
    ("commits", "text"),
    [
        ([a_commit()], "batch 3 (live): 10 read, 10 aggregated; 4 rows to sums; 2.0 s"),
        (
            [a_commit(account=Account(read=3, rejected=2, aggregated=1))],
            "2 REJECTED: batch 3 (live): 3 read, 1 aggregated, 2 rejected; 4 rows to sums; 2.0 s",
        ),
        ([a_commit(account=Account(), published={})], "EMPTY: batch 3 (live): 0 read; no rows; 2.0 s"),
        (
            [a_commit(account=Account(), kind=Kind.REWIND, published={})],
            "batch 3 (rewind): 0 read; no rows; 2.0 s",
        ),
        (
            [a_commit(account=Account(read=2, rejected=2), kind=Kind.REPAIR, published={})],
            "NOTHING REPAIRED, 2 REJECTED: batch 3 (repair): 2 read, 2 rejected; no rows; 2.0 s",
        ),
        (
            [a_commit(3, kind=Kind.BACKFILL), a_commit(4), a_commit(5, kind=Kind.BACKFILL)],
            "3 batches, 3 to 5 (2 backfill, 1 live): 30 read, 30 aggregated; 12 rows to sums; 6.0 s",
        ),
    ],
)
def test_note_begins_with_what_is_unusual(commits: list[Committed], text: str) -> None:
    assert note(*commits) == text


def test_note_says_the_lag_and_what_was_widened() -> None:
    widened = Widened(wanted=6, reads=8, batches=(BatchRange(1, 3),))
    found = note(a_commit(), known=Known(lags={3: {"a": 5, "b": 1_000}}), widened=widened)
    assert "; lag 1,005; asked for 6, read 8; " in found


def test_rejected_records_are_told_with_their_reasons() -> None:
    commit = a_commit(account=Account(read=2, rejected=2), reasons={"amount.maximum": 2})
    assert rejected(commit) == "batch 3: 2 rejected, now in quarantine: amount.maximum 2"
    assert rejected(a_commit()) == ""


def test_lag_is_what_the_log_holds_after_the_offsets_of_the_plan() -> None:
    plan = a_plan(batch_id=3)
    [(topic, ranges)] = plan.reads.items()
    ends = {r.topic_partition.partition: r.until_offset + 7 for r in ranges}
    assert left_after(plan, {topic: ends}) == {topic: 7 * len(ranges)}
    assert left_after(plan, {}) == {topic: 0}
    assert opening(plan, 2, {topic: 7}).startswith(f"batch 3 (live), attempt 2: {plan.records} records of {topic} ")
    assert opening(plan, 1, None).endswith(str(ranges[-1].until_offset - 1))


def test_log_has_a_line_for_the_start_and_for_each_step() -> None:
    lines: list[str] = []
    log = SimpleNamespace(info=lambda text, *values: lines.append(text % values))
    plan = a_plan(batch_id=3)
    told = BatchLog(SimpleNamespace(log=lambda: SimpleNamespace(bounds=lambda _: {})), log)  # type: ignore[arg-type]
    told.step_done(None, "claim", 0.02)
    told.claimed(plan, 1)
    told.step_done(3, "aggregate", 1.25)
    told.step_failed(3, "stage", 0.5)
    assert lines[0].startswith("batch 3 (live): ")
    assert lines[1:] == ["batch 3: aggregate 1.25 s", "batch 3: stage ended after 0.50 s without a result"]
    assert (told.claimed_id, told.known.plans) == (3, {3: plan})


def test_libraries_are_quiet_while_a_task_works_unless_the_log_is_for_debugging() -> None:
    chatty, root = logging.getLogger("great_expectations"), logging.getLogger()
    before = root.level
    try:
        root.setLevel(logging.INFO)
        with without_chatter():
            assert not chatty.isEnabledFor(logging.INFO)
            assert chatty.isEnabledFor(logging.WARNING)
        assert chatty.level == logging.NOTSET
        root.setLevel(logging.DEBUG)
        with without_chatter():
            assert chatty.isEnabledFor(logging.DEBUG)
    finally:
        root.setLevel(before)


@pytest.mark.parametrize(
    ("conf", "link"),
    [
        ('"spark.ui.reverseProxyUrl" = "https://spark.shop/ui"', "https://spark.shop/ui"),
        ('"spark.yarn.historyServer.address" = "history:18080"', "http://history:18080"),
        ("", ""),
        ("what is this", ""),
    ],
)
def test_link_to_spark_is_there_where_its_settings_say_where_its_pages_are(
    tmp_path: Path, conf: str, link: str
) -> None:
    from tidemill_airflow.tasks.links import SparkLink

    (tmp_path / "tidemill.toml").write_text(f"[spark.conf]\n{conf}\n")
    task: Any = SimpleNamespace(project=str(tmp_path))
    assert SparkLink("Spark", "").get_link(task, ti_key=task) == link


def test_links_are_below_the_address_of_airflow_and_tell_tables_apart(tmp_path: Path) -> None:
    from airflow.sdk import Asset

    from tidemill_airflow.assets import batch_asset, table_asset
    from tidemill_airflow.tasks.links import links_of

    outlets = [batch_asset("page_views"), table_asset("views"), table_asset("shop/é"), Asset("other", uri="s3://a/b")]
    links = links_of("page_views", outlets)
    task: Any = SimpleNamespace(batch_id=17, project=str(tmp_path))
    assert {link.name: link.get_link(task, ti_key=task) for link in links} == {
        "Spark": "",
        "Batch": "tidemill/pipelines/page_views/batches/17",
        "History": "tidemill/pipelines/page_views",
        "Quarantine": "tidemill/pipelines/page_views/records/quarantine",
        "Table views": "tidemill/pipelines/page_views/windows/views",
        "Table shop/é": "tidemill/pipelines/page_views/windows/shop%2F%C3%A9",
    }
    assert links[0].get_link(SimpleNamespace(batch_id=None), ti_key=task) == ""  # type: ignore[arg-type]
    assert len({link.xcom_key for link in links}) == len(links)


def test_steps_are_part_of_the_commit_and_left_out_of_older_ones() -> None:
    from tidemill.core.protocol.codec import decode, encode
    from tidemill.core.protocol.summary import commit_json, steps_text

    commit = a_commit(steps={"aggregate": 1.0, "audit": 0.25})
    assert decode(Committed, encode(commit)).steps == commit.steps
    assert "steps" not in encode(replace(commit, steps=None))
    assert commit_json(commit)["steps"] == {"aggregate": 1.0, "audit": 0.25}
    assert steps_text(commit) == "aggregate 1.00 s, audit 0.25 s"
    assert steps_text(a_commit()) == ""
