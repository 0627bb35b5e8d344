"""Announces commits to other DAGs: one event for each table that changed, and one for the batches of a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from airflow.sdk import Asset

from tidemill.core.errors import TidemillError
from tidemill.project.project import Project
from tidemill_airflow.assets import batch_asset, table_of
from tidemill_airflow.tasks.facts import Facts

if TYPE_CHECKING:
    from airflow.sdk import Context


class Announces(Protocol):
    """The task that announces."""

    pipeline: str
    outlets: list[Any]

    @property
    def log(self) -> Any:
        """The log of the task."""
        ...


_MOST = 5_000
"""How many events after a commit are looked through for those of the same run."""


def announce(
    task: Announces, context: Context, project: Project, batches: Sequence[Facts], *, since: datetime
) -> Sequence[Facts]:
    """Add the batches to the events of a task's outlets, and take away the outlets of which there is nothing to say.

    An outlet without an event of its own would get one from Airflow when the task succeeds. A batch is announced once:
    if the task ran before, Airflow knows what it has announced. All batches have committed after `since`.

    Returns:
        The batches that were announced now.
    """
    new = _new(task, context, batches, since)
    events, tables = context["outlet_events"], _tables(project, task.pipeline)
    silent = []
    for outlet in (o for o in task.outlets if isinstance(o, Asset)):
        if outlet == batch_asset(task.pipeline):
            if not new:
                silent.append(outlet)
                continue
            # All partitions of one event share its extra, so a consumer looks its batch up by the partition's key.
            by_key: dict[str, Any] = {str(batch["batch_id"]): batch for batch in new}
            events[outlet].add_partitions(list(by_key))
            events[outlet].extra = {"pipeline": task.pipeline, "batches": by_key}
        elif (table := table_of(outlet)) is not None:
            writes = [batch for batch in new if table in batch["versions"]]
            if writes:
                events[outlet].extra = {**table_facts(task.pipeline, table, writes), **tables.get(table, {})}
            else:
                silent.append(outlet)
    task.outlets = [outlet for outlet in task.outlets if outlet not in silent]
    return new


def table_facts(pipeline: str, table: str, writes: Sequence[Facts]) -> dict[str, Any]:
    """What happened to a table: its newest version, and what `writes`, the batches that wrote it, published."""
    last = writes[-1]
    return {
        "pipeline": pipeline,
        "table": table,
        "version": last["versions"][table],
        "rows": sum(batch["rows"].get(table, 0) for batch in writes),
        "batch_id": last["batch_id"],
        "batches": [batch["batch_id"] for batch in writes],
        "kind": last["kind"],
        "watermark": last["watermark"],
    }


def _tables(project: Project, pipeline: str) -> Mapping[str, dict[str, str]]:
    """Path and contract of each published table. Empty if the declaration was changed and is wrong now."""
    with suppress(TidemillError):
        uris = project.uris(pipeline)
        return {
            sink.table: {
                "path": uris.published_table(sink).uri,
                "contract": sink.contract.name,
                "contract_version": sink.contract.version,
            }
            for sink in project.pipeline(pipeline).sinks
        }
    return {}


def _new(task: Announces, context: Context, batches: Sequence[Facts], since: datetime) -> Sequence[Facts]:
    """The batches that no earlier try has announced. Only a task that was cleared after it succeeded has some."""
    if context["ti"].try_number <= 1:
        return batches
    known = announced(task.pipeline, context["ti"].run_id, since, task.log)
    return [batch for batch in batches if str(batch["batch_id"]) not in known]


def announced(pipeline: str, run_id: str, since: datetime, log: Any) -> set[str]:
    """The ids of the batches that a run has announced after `since`.

    If Airflow does not say, none: announced twice is better than never.
    """
    from airflow.sdk.execution_time.context import InletEventsAccessor

    try:
        events = InletEventsAccessor(asset_name=batch_asset(pipeline).name)
        events = events.after(since.isoformat()).ascending(True).limit(_MOST)
        return {e.partition_key for e in events if e.source_run_id == run_id and e.partition_key}
    except Exception as error:
        log.warning("what this run has announced before is not known: %s", error)
        return set()
