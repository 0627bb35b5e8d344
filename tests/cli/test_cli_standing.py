"""`plan`, `status` and `history`: what a pipeline would do, where it stands, what it did."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from support.builders import NOW
from support.projects import Mill, an_event, somebody
from tidemill.cli.output import ago
from tidemill.core.contract.contract import Severity
from tidemill.core.contract.verdict import CheckResult, Verdict
from tidemill.core.exit_code import ExitCode
from tidemill.core.identity.semantics import SEMANTICS
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.read_limit import ReadLimit
from tidemill.core.protocol.account import Account
from tidemill.core.protocol.codec import fingerprint
from tidemill.core.protocol.events import Audited, Committed, Executor, Planned
from tidemill.core.time.watermarks import Furthest
from tidemill.ledger.process import this_process
from tidemill.run.claiming import Request, next_plan


def open_batch(mill: Mill, *, executor: Executor | None = None, limit: int | None = None) -> BatchPlan:
    """Plan a batch, as a run does that dies right then."""
    ledger, who = mill.project.ledger("sums"), executor or this_process()
    request = Request(executor=who, clock=datetime.now(UTC), limit=ReadLimit(limit))
    plan = next_plan(mill.project.pipeline("sums"), mill.log, ledger.view(), request)
    assert plan is not None
    ledger.append(lambda _: Planned(plan=plan, executor=who, at=request.clock))
    return plan


def verdict(mill: Mill, plan: BatchPlan, *results: CheckResult) -> None:
    event = Audited(
        batch_id=plan.batch_id, attempt=1, verdict=Verdict(results), logical_hash=plan.logical_hash, at=plan.clock
    )
    mill.project.ledger("sums").append(lambda _: event)


def commit(mill: Mill, plan: BatchPlan, *results: CheckResult) -> None:
    """Commit a plan as if all of its records had been counted."""
    verdict(mill, plan, *results)
    times = {r.topic_partition: Furthest(1_000_000) for r in plan.topics["events"].ranges if r}
    position = plan.position.after(
        batch_id=plan.batch_id, attempt=1, topics=plan.topics_after(times), watermark=1_000_000
    )
    event = Committed(
        batch_id=plan.batch_id,
        attempt=1,
        plan_hash=fingerprint(plan),
        position=position,
        accounts={"events": Account(read=plan.records, aggregated=plan.records)},
        published={"sums": 2},
        started=plan.clock,
        at=plan.clock,
    )
    mill.project.ledger("sums").append(lambda _: event)


def test_plan_without_dry_run_is_refused(tidemill, mill):
    said = tidemill("plan", "sums")
    assert said.code == ExitCode.WRONG
    assert "tidemill plan sums --dry-run" in said.err
    assert not mill.project.ledger("sums").exists


def test_plan_shows_what_would_be_read_and_writes_nothing(tidemill, mill):
    mill.feed([an_event(n) for n in range(5)])
    said = tidemill("plan", "sums", "--dry-run", "--limit", "3", "--json")
    assert said.code == ExitCode.DONE
    assert said.json["batch_id"] == 1
    assert said.json["records"] == 3
    assert said.json["open"] is False
    (item,) = said.json["ranges"]
    assert (item["partition"], item["from_offset"], item["until_offset"]) == (0, 0, 3)
    assert not mill.project.ledger("sums").exists


def test_plan_for_people_names_ranges(tidemill, mill):
    mill.feed([an_event(n) for n in range(5)])
    said = tidemill("plan", "sums", "--dry-run", "--drain")
    assert "batch 1 would read 5 records" in said.out
    assert "it drains the input" in said.out


def test_plan_with_an_empty_log_is_nothing_to_do(tidemill):
    said = tidemill("plan", "sums", "--dry-run", "--json")
    assert said.code == ExitCode.NOTHING_TO_DO
    assert said.json == {"pipeline": "sums", "nothing_to_do": True, "tables": []}


def test_plan_of_an_open_batch_is_the_one_it_has(tidemill, mill):
    mill.feed([an_event(n) for n in range(5)])
    open_batch(mill, limit=2)
    said = tidemill("plan", "sums", "--dry-run", "--json")
    assert (said.json["open"], said.json["records"], said.json["attempt"]) == (True, 2, 2)


def changed(mill):
    file = mill.project.folder / "pipelines" / "pipeline.py"
    file.write_text(file.read_text().replace("'unknown'", "'nobody at all'"))


def test_plan_of_an_open_batch_says_what_a_run_would_do_with_it(tidemill, mill):
    def fate():
        return tidemill("plan", "sums", "--dry-run", "--json").json["open_batch"]

    mill.feed([an_event(1)])
    plan = open_batch(mill)
    assert fate() == "continued with the plan it has"
    verdict(mill, plan, CheckResult(table="sums", rule="n.minimum", severity=Severity.ERROR, passed=False))
    assert fate().startswith("blocked by its audit")
    assert "would be blocked by its audit" in tidemill("plan", "sums", "--dry-run").out.replace("\n", " ")
    changed(mill)
    assert fate().startswith("cancelled and planned anew")
    verdict(mill, plan)
    assert fate().startswith("refused: it may be published in part")


def test_status_of_a_new_pipeline_has_no_commit(tidemill):
    said = tidemill("status", "sums", "--json")
    assert said.code == ExitCode.DONE
    assert said.json["last_commit"] is None
    assert said.json["watermark"] is None
    assert said.json["partitions"][0]["committed"] is None


def test_status_shows_lag_and_last_commit_of_each_partition(tidemill, mill):
    mill.feed([an_event(n) for n in range(5)])
    commit(mill, open_batch(mill, limit=3))
    said = tidemill("status", "sums", "--json").json
    (partition,) = said["partitions"]
    assert (partition["committed"], partition["until_offset"], partition["lag"]) == (3, 5, 2)
    assert partition["max_event_time"] == "1970-01-01T00:00:01+00:00"
    assert said["lag"] == 2
    assert said["watermark"] == "1970-01-01T00:00:01+00:00"
    assert (said["last_commit"]["batch_id"], said["last_commit"]["read"]) == (1, 3)
    assert said["open_batch"] is None


def test_status_says_who_holds_the_open_batch(tidemill, mill):
    mill.feed([an_event(1)])
    open_batch(mill)
    held = tidemill("status", "sums", "--json").json["open_batch"]
    me = this_process()
    assert (held["pid"], held["host"], held["holder"]) == (me.pid, me.host, "running")
    assert me.text in tidemill("status", "sums").out


@pytest.mark.parametrize(
    ("executor", "holder", "said"),
    [
        (somebody("a task"), "on another host", "on another host"),
        (replace(this_process("gone"), pid=1, process_started="1"), "gone", "takes it over"),
    ],
)
def test_status_says_whether_the_holder_lives(tidemill, mill, executor, holder, said):
    mill.feed([an_event(1)])
    open_batch(mill, executor=executor)
    assert tidemill("status", "sums", "--json").json["open_batch"]["holder"] == holder
    assert said in tidemill("status").out


def test_status_says_that_a_batch_is_blocked(tidemill, mill):
    mill.feed([an_event(1)])
    broken = CheckResult(table="sums", rule="n.minimum", severity=Severity.ERROR, passed=False)
    verdict(mill, open_batch(mill), broken)
    assert tidemill("status", "sums", "--json").json["open_batch"]["blocked"] is True
    assert "blocked by its audit" in tidemill("status", "sums").out
    assert "blocks: 0 of 1 rules hold; broken: error sums: n.minimum" in tidemill("history", "sums").out
    shown = tidemill("audit", "show", "sums").out
    assert "batch 1 read 1 record: events-0 [0, 1)" in shown
    typed = [line.strip().partition("  ")[0] for line in shown.splitlines() if line.startswith("  tidemill audit")]
    assert typed == [
        f"tidemill audit {word}" for word in ('accept sums --why "..."', 'divert sums --why "..."', "retry sums")
    ]


def test_decision_that_waits_for_the_next_run_is_shown_and_stays(tidemill, mill):
    mill.feed([an_event(1)])
    verdict(mill, open_batch(mill), CheckResult(table="sums", rule="r", severity=Severity.ERROR, passed=False))
    missing = tidemill("audit", "accept", "sums")
    assert (missing.code, "a decision needs a reason" in missing.err) == (ExitCode.WRONG, True)
    assert tidemill("audit", "accept", "sums", "--by", "ann", "--why", "a van").code == ExitCode.DONE
    said = "was blocked by its audit; accept by ann: a van; the next run publishes it as it is"
    for command in (("status", "sums"), ("plan", "sums", "--dry-run"), ("audit", "show", "sums")):
        assert said in " ".join(tidemill(*command).out.split())
    opened = tidemill("status", "sums", "--json").json["open_batch"]
    assert (opened["blocked"], opened["decided"]) == (False, {"decision": "accept", "by": "ann", "why": "a van"})
    again = tidemill("audit", "divert", "sums", "--why", "changed my mind")
    assert (again.code, "accept is recorded about batch 1 already, by ann: a van" in again.err) == (
        ExitCode.WRONG,
        True,
    )


def test_what_an_audit_found_is_shown_of_earlier_batches_too(tidemill, mill):
    mill.feed([an_event(1)])
    plan, row = open_batch(mill), {"user": "[red]a[/]"}
    broken = CheckResult(
        table="sums", rule="n.maximum", severity=Severity.WARNING, passed=False, observed="[1] row", failing_rows=(row,)
    )
    commit(mill, plan, broken)
    told = tidemill("history", "sums").out
    assert "0 of 1 rules hold; broken: warning sums: n.maximum: [1] row" in told
    assert tidemill("audit", "show", "sums").code == ExitCode.WRONG
    shown = tidemill("audit", "show", "sums", "--batch", "1")
    assert (shown.code, "[1] row" in shown.out, "n.maximum: {'user': '[red]a[/]'}" in shown.out) == (0, True, True)
    assert tidemill("audit", "show", "sums", "--batch", "1", "--json").json["failing_rows"] == [row]
    missing = tidemill("audit", "show", "sums", "--batch", "2")
    assert (missing.code, "no audit of batch 2" in missing.err) == (ExitCode.WRONG, True)


def test_history_says_how_many_events_it_does_not_show(tidemill, mill):
    mill.feed([an_event(n) for n in range(3)])
    for _ in range(3):
        commit(mill, open_batch(mill, limit=1))
    assert tidemill("history", "sums", "--last", "2").out.splitlines()[-1].startswith("7 older events are not shown")
    for all_of_it in (("--last", "9"), ("--last", "0"), ("--all",), ()):
        assert "not shown" not in tidemill("history", "sums", *all_of_it).out
    shown = [json.loads(line)["sequence"] for line in tidemill("history", "sums", "--all", "--json").out.splitlines()]
    assert shown == list(range(1, 10))


def test_status_counts_records_that_retention_took_before_they_were_read(tidemill, mill):
    mill.feed([an_event(n) for n in range(5)])
    commit(mill, open_batch(mill, limit=1))
    mill.log.trim("events", 0, 4)
    (partition,) = tidemill("status", "sums", "--json").json["partitions"]
    assert (partition["from_offset"], partition["lost"], partition["lag"]) == (4, 3, 4)
    assert "3 records lost" in tidemill("status", "sums").out


def test_status_says_that_a_log_ends_before_what_was_read(tidemill, mill):
    mill.feed([an_event(n) for n in range(3)])
    commit(mill, open_batch(mill))
    topic = mill.log.topic("events")
    shutil.rmtree(Path(mill.project.settings.log) / "events" / topic.topic_id)
    (partition,) = tidemill("status", "sums", "--json").json["partitions"]
    assert (partition["until_offset"], partition["committed"], partition["cut"]) == (0, 3, 3)
    assert "ends 3 offsets before" in tidemill("status", "sums").out


def test_status_without_a_topic_says_so_and_goes_on(tidemill, mill):
    mill.log.delete_topic("events")
    said = tidemill("status", "sums", "--json")
    assert said.code == ExitCode.DONE
    assert "no topic 'events'" in said.json["problem"]
    assert "no topic 'events'" in tidemill("status").out


def test_history_of_one_batch_has_its_events_alone_and_says_what_computed_them(tidemill, mill):
    mill.feed([an_event(n) for n in range(3)])
    for _ in range(3):
        commit(mill, open_batch(mill, limit=1))
    found = tidemill("history", "sums", "--batch", 2, "--last", 1, "--json").lines
    assert [each["sequence"] for each in found] == [4, 5, 6]
    said = " ".join(tidemill("history", "sums", "--batch", 2).out.split())
    assert f"semantics {SEMANTICS};" in said
    assert "not shown" not in said
    missing = tidemill("history", "sums", "--batch", 4)
    assert (missing.code, "the ledger has no event of batch 4" in missing.err) == (ExitCode.WRONG, True)
    assert "fix: `tidemill status sums`" in missing.err


def test_history_has_every_event_in_order(tidemill, mill):
    mill.feed([an_event(n) for n in range(5)])
    commit(mill, open_batch(mill, limit=3))
    found = tidemill("history", "sums", "--json").lines
    assert [each["event"] for each in found] == ["planned", "audited", "committed"]
    assert [each["sequence"] for each in found] == [1, 2, 3]
    assert found[0]["plan"]["batch_id"] == 1
    assert found[2]["accounts"]["events"]["read"] == 3
    assert "read 3 = aggregated 3" in tidemill("history", "sums").out


def test_history_of_the_last_events_is_their_end(tidemill, mill):
    mill.feed([an_event(n) for n in range(5)])
    for _ in range(2):
        commit(mill, open_batch(mill, limit=1))
    assert [each["sequence"] for each in tidemill("history", "sums", "--last", 2, "--json").lines] == [5, 6]
    assert len(tidemill("history", "sums", "--last", 0, "--json").lines) == 6


def test_history_of_a_pipeline_that_is_not_declared_any_more_stays_readable(tidemill, mill):
    mill.feed([an_event(1)])
    open_batch(mill)
    (mill.project.folder / "pipelines" / "pipeline.py").unlink()
    assert [each["event"] for each in tidemill("history", "sums", "--json").lines] == ["planned"]


def test_who_holds_a_batch_is_told_once(tidemill, mill):
    mill.feed([an_event(1)])
    open_batch(mill)
    here = this_process()
    told = f"process {here.pid} on {here.host}"
    for words in (("status", "sums"), ("history", "sums")):
        out = " ".join(tidemill(*words).out.split())
        assert (out.count(told), here.pid_namespace in out) == (1, False), out


def test_history_without_batches_says_so(tidemill):
    assert "no batch was planned yet" in tidemill("history", "sums").out
    assert tidemill("history", "sums", "--json").lines == []


@pytest.mark.parametrize(
    ("age", "text"), [(5, "5 s ago"), (125, "2 min ago"), (7_300, "2 h ago"), (200_000, "2 d ago"), (-3, "0 s ago")]
)
def test_age_is_told_in_its_largest_unit(age, text):
    assert ago(NOW - timedelta(seconds=age), NOW) == text


def test_a_name_of_before_is_said_to_be_renamed_whatever_is_declared_now(tidemill, mill):
    mill.feed([an_event(1)])
    commit(mill, open_batch(mill))
    assert tidemill("rename", "sums", "totals").code == ExitCode.DONE
    file = mill.project.folder / "pipelines" / "pipeline.py"
    file.write_text(file.read_text().replace('Pipeline("sums"', 'Pipeline("totals"'))
    for command in ("status", "explain", "verify", "run"):
        said = tidemill(command, "sums")
        assert (said.code, "pipeline sums was renamed to totals" in said.err) == (ExitCode.WRONG, True), command
    assert tidemill("status", "totals").code == ExitCode.DONE
