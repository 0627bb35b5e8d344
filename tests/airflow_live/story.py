"""What is done to the DAG of a pipeline while a scheduler runs it: the order of its acts is the order of this file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

from airflow_live.airflow import Airflow, is_alive, parent_of
from airflow_live.outcome import Story
from chaos.oracle import judge
from chaos.records import Producer
from chaos.world import PIPELINE, World
from support.projects import ROOT
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.events import Committed, Decided, Event, Executor, Planned
from tidemill.core.protocol.view import OpenBatch

TASK = "batch"
OWN = f"airflow:{PIPELINE}/"
ENDED = ("success", "failed")
STRICT = """
    quality:
      - {type: library, metric: rowCount, mustBeLessThan: 1, severity: error}
"""
"""No row may be published."""


class Teller:
    """Does it. The gate is a file: while it is gone, tasks wait before they publish."""

    def __init__(self, airflow: Airflow, world: World, gate: Path, dags: Path) -> None:
        self.story = Story()
        self._airflow, self._world, self._gate, self._dags = airflow, world, gate, dags
        self._producer = Producer(world, Random("airflow"), steps=60)
        self._ledger = world.load().ledger(PIPELINE)
        self._stricter: dict[str, str] = {}

    def tell(self) -> Story:
        """All acts, one after the other."""
        self._airflow.wait_for("the DAG", self._has_dag)
        self._overlap()
        self._kill_the_task()
        self._kill_the_supervisor()
        self._clear_what_succeeded()
        self._clear_what_runs()
        self._mark_success()
        self._decide()
        self._backfill()
        self._start_on_records()
        self._end()
        return self.story

    def _overlap(self) -> None:
        """Scheduled runs, a manual one, and processes of `tidemill run` at the same time."""
        self._feed()
        self._airflow.wait_for("a first batch", self._commits)
        beside = [self._tidemill("run", PIPELINE, "--until-caught-up", "--limit", "15") for _ in range(2)]
        manual = self._airflow.call("POST", f"dags/{PIPELINE}/dagRuns", logical_date=None)["dag_run_id"]
        for _ in range(10):
            self._feed()
            time.sleep(1)
        codes = [process.wait(300) for process in beside]
        state = self._airflow.wait_for("the manual run", lambda: self._ended(manual))
        self._caught_up()
        by = Counter("airflow" if e.identity.startswith(OWN) else "tidemill run" for e in self._executors())
        self.story.overlapped = {"codes": codes, "manual": state, "planned by": by}

    def _kill_the_task(self) -> None:
        with self._held() as batch:
            os.kill(batch.executor.pid, signal.SIGKILL)
            self.story.kills += 1
        self.story.task_killed = self._committed(batch)

    def _kill_the_supervisor(self) -> None:
        """The task itself is frozen meanwhile, and wakes up when its retry has committed."""
        with self._held() as batch:
            task = batch.executor.pid
            supervisor = parent_of(task)
            os.kill(supervisor, signal.SIGKILL)
            self.story.kills += 1
            # In this order: a process that is stopped when its group loses its last parent is hung up.
            self._airflow.wait_for("the end of the supervisor", lambda: not is_alive(supervisor))
            os.kill(task, signal.SIGSTOP)
        found = self._committed(batch)
        alive = is_alive(task)
        os.kill(task, signal.SIGCONT)
        self._airflow.wait_for("the end of the old task", lambda: not is_alive(task))
        again = self._committed(batch)
        self.story.supervisor_killed = {**found, "alive": alive, "the same after it woke up": again == found}

    def _clear_what_succeeded(self) -> None:
        self._caught_up()
        # A run whose task is cleared before the scheduler knows that the run has ended stays as it is.
        newest = [r["dag_run_id"] for r in reversed(self._runs()) if r["state"] == "success"]
        run = next(r for r in newest if self._state_of(r) == "success" and self._batches_of(r))
        before, announced = self._batches_of(run), self._announced_by(run)
        self._clear(run)
        self._airflow.wait_for("the second end of the run", lambda: self._tries(run) > 1 and self._ended(run))
        self.story.cleared = {
            "before": before,
            "after": self._batches_of(run),
            "state": self._state_of(run),
            "announced": announced,
            "announced again": self._announced_by(run)[len(announced) :],
        }
        links = self._airflow.wait_for("all links, which come after the end of the task", lambda: self._links(run))
        self.story.links = {**links, "batch": str(before[-1])}

    def _links(self, run: str) -> dict[str, str | None]:
        """The links of a task, once all but that to Spark are there."""
        path = f"dags/{PIPELINE}/dagRuns/{run}/taskInstances/{TASK}/links"
        found: dict[str, str | None] = self._airflow.call("GET", path)["extra_links"]
        return found if all(link for name, link in found.items() if name != "Spark") else {}

    def _clear_what_runs(self) -> None:
        with self._held() as batch:
            self._clear(_run_of(batch.executor))
            self._airflow.wait_for("the end of the old task", lambda: not is_alive(batch.executor.pid))
        self.story.cleared_running = self._committed(batch)

    def _mark_success(self) -> None:
        with self._held() as batch:
            run, offsets = _run_of(batch.executor), self._ledger.view().position.topics
            path = f"dags/{PIPELINE}/dagRuns/{run}/taskInstances/{TASK}"
            self._airflow.call("PATCH", path, new_state="success")
            self._airflow.wait_for("the end of the old task", lambda: not is_alive(batch.executor.pid))
            moved = self._ledger.view().position.topics != offsets
        found = self._committed(batch)
        self.story.marked = {**found, "moved": moved, "state": self._state_of(run), "marked run": run}

    def _decide(self) -> None:
        """An audit blocks a batch, its run is marked as a success, and a person answers what Airflow asks."""
        self._caught_up()
        contract = self._world.seats[0] / "data_contracts" / "sums.odcs.yaml"
        plain, dag = contract.read_text(), f"{PIPELINE}.decide"
        contract.write_text(plain.rstrip() + STRICT)
        try:
            batch = self._airflow.wait_for("a batch that is blocked", self._blocked)
            self._stricter = {batch.plan.logical_hash: "plain"}
            run = _run_of(batch.executor)
            self._airflow.wait_for("the end of its run", lambda: self._ended(run))
            path = f"dags/{PIPELINE}/dagRuns/{run}/taskInstances/{TASK}"
            self._airflow.call("PATCH", path, new_state="success")
            asked = self._airflow.wait_for("a question", lambda: self._asked(dag))
            later = self._airflow.wait_for("a later run", lambda: self._later(run))
            # Airflow fails a task whose answer comes before its executor knows that the task waits.
            time.sleep(3)
            path = f"dags/{dag}/dagRuns/{asked[0]}"
            answer = {"chosen_options": ["accept"], "params_input": {"reason": "a trial"}}
            self._airflow.call("PATCH", f"{path}/taskInstances/ask/-1/hitlDetails", **answer)
            self._airflow.wait_for("the decision", lambda: self._airflow.call("GET", path)["state"] in ENDED)
            found = self._committed(batch)
        finally:
            contract.write_text(plain)
        [decided] = [e for e in self._events() if isinstance(e, Decided)]
        self.story.decided = {
            "asked": len(self._asked(dag)),
            "a later run": self._state_of(later),
            "decide": self._airflow.call("GET", path)["state"],
            "decision": decided.decision.value,
            "why": decided.why,
            "commits": found["commits"],
        }

    def _blocked(self) -> OpenBatch | None:
        """The batch that its audit blocks. If there was nothing to publish, there is more to read now."""
        batch = self._ledger.view().open_batch
        if batch is None and not self._behind():
            self._feed()
        return batch if batch is not None and batch.is_blocked else None

    def _asked(self, dag: str) -> list[str]:
        """The runs that wait for an answer, or had one."""
        runs = [r["dag_run_id"] for r in self._airflow.call("GET", f"dags/{dag}/dagRuns")["dag_runs"]]
        return [r for r in runs if self._airflow.call("GET", f"dags/{dag}/dagRuns/{r}/hitlDetails")["hitl_details"]]

    def _later(self, run: str) -> str:
        """A run after this one that has ended, and was not skipped."""
        runs = [r["dag_run_id"] for r in self._runs()]
        later = runs[runs.index(run) + 1 :]
        return next((r for r in later if self._ended(r) in ENDED), "")

    def _announced_by(self, run: str) -> list[str]:
        """The assets of the events that a run has caused."""
        events = self._airflow.call("GET", f"assets/events?source_run_id={quote(run)}")["asset_events"]
        return sorted(event["name"] for event in events)

    def _backfill(self) -> None:
        """Everything is read again by the DAG of backfills, beside scheduled runs; its task is killed once."""
        self._caught_up()
        dag = f"{PIPELINE}.backfill"
        last = self._commits()[-1].batch_id
        conf = {"mode": "do it", "from_time": "1970-01-01T00:00:00+00:00", "batch_records": 20, "why": "a trial"}
        run = self._airflow.call("POST", f"dags/{dag}/dagRuns", logical_date=None, conf=conf)["dag_run_id"]
        self._airflow.wait_for("a first batch of the backfill", lambda: self._kinds(last)[Kind.BACKFILL])
        killed = self._kill_who_backfills(f"airflow:{dag}/")
        for _ in range(8):
            self._feed()
            time.sleep(1)

        def ended() -> str:
            state = str(self._airflow.call("GET", f"dags/{dag}/dagRuns/{run}")["state"])
            return state if state in ("success", "failed") else ""

        state = self._airflow.wait_for("the end of the backfill", ended, seconds=480)
        self.story.backfilled = {"state": state, "killed": killed, "most in a row": self._most_in_a_row(last)} | {
            kind.value: count for kind, count in self._kinds(last).items()
        }

    def _kill_who_backfills(self, own: str) -> bool:
        for _ in range(100):
            batch = self._ledger.view().open_batch
            if batch is not None and batch.executor.identity.startswith(own):
                os.kill(batch.executor.pid, signal.SIGKILL)
                self.story.kills += 1
                return True
            time.sleep(0.05)
        return False

    def _kinds(self, after: int) -> Counter[Kind]:
        return Counter(c.kind for c in self._commits() if c.batch_id > after)

    def _most_in_a_row(self, after: int) -> int:
        """The most batches of a backfill without a live one between them, while there was something to read."""
        row = most = 0
        for commit in (c for c in self._commits() if c.batch_id > after):
            row = row + 1 if commit.kind is Kind.BACKFILL else 0
            most = max(most, row)
        return most

    def _start_on_records(self) -> None:
        """From now on, time starts a run once a day only, and records start one when they come."""
        declared = self._world.seats[0] / "pipelines" / "mixed.py"
        declared.write_text(declared.read_text().replace('every="3 seconds"', 'every="1 day"'))
        self._dags.write_text(self._dags.read_text().replace("ask_people=True", "start_on_records=True"))
        path, daily = f"dags/{PIPELINE}", "Asset or 0 0 * * *"
        self._airflow.wait_for("a schedule", lambda: self._airflow.call("GET", path)["timetable_summary"] == daily)
        # A run of the schedule before may be due still, or the first of the new one.
        self._airflow.wait_for("no run that is due", lambda: not self._is_due(path))
        self._quiet()
        before, began = {r["dag_run_id"] for r in self._runs()}, self._commits()[-1].batch_id
        sensor = (
            f"dags/waits/dagRuns/{self._airflow.call('POST', 'dags/waits/dagRuns', logical_date=None)['dag_run_id']}"
        )
        task = f"{sensor}/taskInstances/wait"
        self._airflow.wait_for("a sensor", lambda: self._airflow.call("GET", task)["state"] == "deferred")
        time.sleep(3)
        for _ in range(2):
            self._feed()
            self._quiet()
        time.sleep(10)
        runs = [r for r in self._runs() if r["dag_run_id"] not in before]
        self.story.started = {
            "types": {r["run_type"] for r in runs},
            "runs": len(runs),
            "batches": self._commits()[-1].batch_id - began,
            "sensor": self._airflow.call("GET", sensor)["state"],
        }

    def _is_due(self, path: str) -> bool:
        after = self._airflow.call("GET", path)["next_dagrun_run_after"]
        return after is not None and datetime.fromisoformat(after) < datetime.now(UTC)

    def _quiet(self) -> None:
        self._caught_up()
        self._airflow.wait_for("no run", lambda: all(r["state"] in ENDED for r in self._runs()))

    def _end(self) -> None:
        self._caught_up()
        self._airflow.call("PATCH", f"dags/{PIPELINE}", is_paused=True)
        self._airflow.wait_for("no task", lambda: not any(self._is_busy(r) for r in self._runs()))
        self.story.runs = Counter(r["state"] for r in self._runs())
        self.story.notes = {r["dag_run_id"]: r["note"] for r in self._runs() if r["state"] == "success"}
        while self._producer.left > 1:
            self._feed()
        self._producer.step()
        last = self._tidemill("run", PIPELINE, "--until-caught-up", "--drain")
        if last.wait(120):
            raise AssertionError((self._world.folder / "beside.log").read_text()[-2000:])
        self.story.judgement = judge(self._world, also=self._stricter)

    @contextmanager
    def _held(self) -> Iterator[OpenBatch]:
        """A batch of a scheduled task that waits before it publishes, as long as the block lasts."""
        self._caught_up()
        reached = self._gate.with_name(f"{self._gate.name}.reached")
        self._gate.unlink()
        try:
            reached.unlink(missing_ok=True)
            self._feed()
            self._airflow.wait_for("a batch that waits", reached.exists)
            batch = self._ledger.view().open_batch
            assert batch is not None
            assert batch.executor.identity.startswith(OWN)
            yield batch
        finally:
            self._gate.touch()

    def _committed(self, batch: OpenBatch) -> dict[str, Any]:
        """Who committed a batch, in which attempt, and in which run it was begun."""
        number = batch.plan.batch_id

        def commit() -> Committed | None:
            return next((c for c in self._commits() if c.batch_id == number), None)

        found = self._airflow.wait_for(f"the commit of batch {number}", commit)
        executors = {
            e.attempt: e.executor
            for e in self._events()
            if getattr(e, "batch_id", 0) == number and hasattr(e, "executor")
        }
        last = executors.get(found.attempt, batch.executor)
        return {
            "attempt": found.attempt,
            "same run": last.identity == batch.executor.identity,
            "same process": last.pid == batch.executor.pid,
            "commits": sum(c.batch_id == number for c in self._commits()),
        }

    def _feed(self) -> None:
        for _ in range(min(2, self._producer.left - 1)):
            self._producer.step()

    def _caught_up(self) -> None:
        self._airflow.wait_for(
            "a run that has caught up", lambda: self._ledger.view().open_batch is None and not self._behind()
        )

    def _behind(self) -> bool:
        """Whether the log has more than was committed."""
        topics = self._ledger.view().position.topics
        return {t: dict(at.offsets) for t, at in topics.items()} != self._ends()

    def _ends(self) -> dict[str, dict[int, int]]:
        log = self._world.log
        return {t.name: {p: b.until_offset for p, b in log.bounds(t.name).items()} for t in log.topics()}

    def _events(self) -> list[Event]:
        return [entry.event for entry in self._ledger.entries()]

    def _commits(self) -> list[Committed]:
        return [event for event in self._events() if isinstance(event, Committed)]

    def _executors(self) -> list[Executor]:
        return [event.executor for event in self._events() if isinstance(event, Planned)]

    def _batches_of(self, run: str) -> list[int]:
        mine = f"{OWN}{run}/{TASK}"
        return [e.plan.batch_id for e in self._events() if isinstance(e, Planned) and e.executor.identity == mine]

    def _has_dag(self) -> bool:
        return any(dag["dag_id"] == PIPELINE for dag in self._airflow.call("GET", "dags")["dags"])

    def _runs(self) -> list[dict[str, Any]]:
        path = f"dags/{PIPELINE}/dagRuns?limit=500&order_by=run_after"
        return list(self._airflow.call("GET", path)["dag_runs"])

    def _task(self, run: str) -> dict[str, Any]:
        return dict(self._airflow.call("GET", f"dags/{PIPELINE}/dagRuns/{run}/taskInstances/{TASK}"))

    def _state_of(self, run: str) -> str:
        return str(self._task(run)["state"])

    def _tries(self, run: str) -> int:
        return int(self._task(run)["try_number"])

    def _ended(self, run: str) -> str:
        state = self._state_of(run)
        return state if state in ("success", "failed", "skipped") else ""

    def _is_busy(self, run: dict[str, Any]) -> bool:
        """Whether its task runs, or will; Airflow looks no more at other runs of a DAG that is paused."""
        ended = run["state"] in ("success", "failed")
        return not ended and self._state_of(run["dag_run_id"]) in ("queued", "running", "restarting")

    def _clear(self, run: str) -> None:
        path = f"dags/{PIPELINE}/clearTaskInstances"
        self._airflow.call("POST", path, dry_run=False, dag_run_id=run, task_ids=[TASK], only_failed=False)

    def _tidemill(self, *words: str) -> subprocess.Popen[bytes]:
        """A process beside Airflow's, on a seat of its own."""
        command = [sys.executable, "-m", "tidemill.cli.main", "--project", str(self._world.seats[1]), *words]
        environ = {**os.environ, "PYTHONPATH": str(ROOT / "spark_jobs")}
        with (self._world.folder / "beside.log").open("ab") as said:
            return subprocess.Popen(command, env=environ, stdout=said, stderr=said)


def _run_of(executor: Executor) -> str:
    return executor.identity.removeprefix(OWN).rpartition("/")[0]
