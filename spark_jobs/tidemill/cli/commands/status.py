"""`tidemill status`: where pipelines stand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.output import (
    AsJson,
    ago,
    balance,
    console,
    end_with,
    grid,
    of_each,
    open_project,
    show_watermark,
    styled,
    whole,
)
from tidemill.cli.views.log import print_json
from tidemill.core.counts import many
from tidemill.core.plan.amendments import count
from tidemill.core.protocol.events import told
from tidemill.core.protocol.summary import account_of, broken_rules, steps_text
from tidemill.core.time.times import show_duration, show_moment
from tidemill.project.generations import to_do

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console
    from rich.text import Text

    from tidemill.core.protocol.view import OpenBatch, View
    from tidemill.inspect.partitions import PartitionStatus
    from tidemill.inspect.service_levels import MeasuredLevel
    from tidemill.inspect.state_size import StateSize
    from tidemill.inspect.status import PipelineStatus
    from tidemill.inspect.undeclared import Undeclared
    from tidemill.project.project import Project
    from tidemill.repair.unfinished import Unfinished


def status(
    ctx: typer.Context,
    pipeline: Annotated[
        str | None, typer.Argument(metavar="[PIPELINE]", help="Show only this pipeline, in detail.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show lag, watermark, last commit and open batch; then the pipelines of the lake that no file declares."""
    from tidemill.inspect.service_levels import level_json
    from tidemill.inspect.state_size import size_json
    from tidemill.inspect.status import status_json, status_of
    from tidemill.inspect.undeclared import undeclared, undeclared_json

    project = open_project(ctx)
    found: list[PipelineStatus] = []
    faults = of_each(project, pipeline, lambda name: found.append(status_of(project, name)))
    others = [] if pipeline else list(undeclared(project))
    if as_json:
        for each in found:
            levels = [level_json(level) for level in _levels(each)]
            state = [size_json(size) for size in _sizes(project, each)]
            print_json({**status_json(each), "state": state, "service_levels": levels})
        for other in others:
            print_json(undeclared_json(other))
    elif pipeline:
        _show_one(console(), found[0], _sizes(project, found[0]))
    elif found:
        _show_all(console(), found)
    elif not faults:
        typer.echo(f"{project.folder}: no pipelines in {project.settings.pipelines}")
    if not as_json:
        _show_undeclared(console(), others)
    end_with(faults)


def _show_all(out: Console, found: list[PipelineStatus]) -> None:
    table = grid("pipeline", "batch", "committed", "lag", "watermark", "open batch", numbers=("batch", "lag"))
    for each in found:
        commit, opened = each.view.last_commit, each.view.open_batch
        table.add_row(
            each.flow.name,
            str(each.view.position.batch_id or "-"),
            ago(commit.at) if commit else "never",
            "?" if each.problem else f"{each.lag:,}",
            show_watermark(each.view.position.watermark),
            f"{opened.plan.batch_id}, {_state(opened)}" if opened else "-",
        )
    out.print(table)
    for each in found:
        for level in _levels(each):
            if level.kept == "missed":
                out.print(f"{each.flow.name}: {level}", style="red")
        if each.problem:
            out.print(f"{each.flow.name}: {each.problem}")
        if each.refused is not None:
            first = each.refused.message.splitlines()[0].rstrip(":")
            named = first if first.startswith(f"{each.flow.name}: ") else f"{each.flow.name}: {first}"
            out.print(f"{named}; see `tidemill status {each.flow.name}`")
        if each.rebuild is not None and each.rebuild.is_blocked:
            out.print(f"{each.flow.name}: a rebuild is blocked by its audit; see `tidemill status {each.flow.name}`")


def _show_undeclared(out: Console, others: Sequence[Undeclared]) -> None:
    for each in others:
        commit = None if each.view is None else each.view.last_commit
        last = "" if commit is None else f", batch {commit.batch_id} of it committed {ago(commit.at)}"
        out.print(f"{each.name}: no file declares it, and the lake has its ledger{last}", soft_wrap=True)
        out.print(f"  {to_do(each.name)}", soft_wrap=True)


def _levels(found: PipelineStatus) -> Sequence[MeasuredLevel]:
    from tidemill.inspect.service_levels import service_levels

    return service_levels(found.flow, found.view, datetime.now(UTC))


def _sizes(project: Project, found: PipelineStatus) -> Sequence[StateSize]:
    from tidemill.inspect.state_size import state_sizes

    return state_sizes(project, found.flow, found.view.position)


def _show_one(out: Console, found: PipelineStatus, sizes: Sequence[StateSize]) -> None:
    view, spec = found.view, found.flow.spec
    out.print(styled((found.flow.name, "bold"), f"  every {show_duration(spec.every)}, owner {spec.owner}"))
    behind = [("", f"{show_watermark(at)} of {table}") for table, at in (view.position.lagging or {}).items()]
    lines = [("watermark", show_watermark(view.position.watermark)), *behind, *_batches(view)]
    if found.generation > 1:
        lines.append(("generation", f"{found.generation}, made by a rebuild"))
    if found.refused is not None:
        lines += [("next batch", f"is refused: {found.refused.message}"), ("", found.refused.fix)]
    for table, since in (view.position.since or {}).items():
        where = "" if since.event_time is None else f", in windows that start after {whole(since)}"
        lines.append(("meaning", f"of {table} since batch {since.batch_id}{where}, by {told(since.by, since.why)}"))
    if (job := view.position.backfill) is not None:
        left = many(count(job.left), "record")
        lines.append(("backfill", f"of {told(job.by, '')} since batch {job.since}: {left} left"))
    if view.superseded is not None:
        lines.append(("rebuild", f"generation {view.superseded.generation} takes over: `tidemill rebuild` goes on"))
    elif found.rebuild is not None:
        lines += _rebuild(found.flow.name, found.rebuild)
    lines += [("state", _size(size)) for size in sizes]
    lines += [("promised", str(level)) for level in _levels(found)]
    if (drift := found.flow.spec.max_drift) is not None and found.slowest is not None:
        place, mark = found.slowest
        lines.append(("max_drift", f"{show_duration(drift)} ahead of {place}, the slowest: {show_watermark(mark)}"))
    lines.append(("lag", f"not known: {found.problem}" if found.problem else many(found.lag, "record")))
    for name, text in lines:
        out.print(f"  {name:<12} {text}", soft_wrap=True)
    _show_partitions(out, found)


def _batches(view: View) -> Iterator[tuple[str, str]]:
    """The last batch and the open one."""
    commit, opened = view.last_commit, view.open_batch
    if commit is None:
        yield "last commit", "none yet"
    else:
        yield "last commit", f"batch {commit.batch_id}, attempt {commit.attempt}, {ago(commit.at)}"
        yield "", balance(account_of(commit))
        yield from (("", text) for text in (*broken_rules(commit), steps_text(commit)) if text)
    if opened is None:
        yield "open batch", "none"
    else:
        yield "open batch", f"{opened.plan.batch_id}, {many(opened.plan.records, 'record')}, {_state(opened)}"
        yield "", f"attempt {opened.attempt} since {ago(opened.claimed_at)}: {opened.executor.text}"


def _rebuild(pipeline: str, found: Unfinished) -> Iterator[tuple[str, str]]:
    """The generation that is being built."""
    if found.view is None:
        yield "rebuild", f"of generation {found.number}, whose ledger cannot be read"
    elif found.is_blocked:
        yield "rebuild", f"of generation {found.number}: batch {found.view.last_batch_id} is blocked by its audit"
    else:
        yield "rebuild", f"of generation {found.number}: {found.view.position.batch_id} batches committed"
    if found.outdated or found.view is None:
        goes_on = "the pipeline or a contract has changed since: `tidemill rebuild {0}` begins another one"
    elif found.is_blocked:
        goes_on = "`tidemill audit show {0}` shows why; after a decision `tidemill rebuild {0}` goes on"
    else:
        goes_on = "`tidemill rebuild {0}` goes on"
    yield "", f"{goes_on.format(pipeline)}; with --cancel it drops this one"


def _size(size: StateSize) -> str:
    open_since = "" if size.oldest_open is None else f"; oldest open window {show_watermark(size.oldest_open)}"
    kept = "" if size.kept_from is None else f"; kept from window {show_watermark(size.kept_from)} on"
    return f"{size.table}: {many(size.rows, 'row')}, {many(size.bytes, 'byte')}{open_since}{kept}"


def _show_partitions(out: Console, found: PipelineStatus) -> None:
    numbers = ("partition", "log from", "committed", "log until", "lag")
    table = grid("topic", *numbers, "newest event", "", numbers=numbers)
    for part in found.partitions:
        time = part.max_event_time
        table.add_row(
            part.topic,
            str(part.held.topic_partition.partition),
            f"{part.held.from_offset:,}",
            "-" if part.committed is None else f"{part.committed:,}",
            f"{part.held.until_offset:,}",
            f"{part.lag:,}",
            "-" if time is None else show_moment(time),
            _trouble(part),
        )
    if found.partitions:
        out.print(table)


def _trouble(part: PartitionStatus) -> str | Text:
    if part.missing:
        lacks = styled(("not in the log", "red"))
        return lacks if part.gone is None else f"gone, says {told(part.gone.by, part.gone.why)}"
    if part.lost:
        return styled((f"{many(part.lost, 'record')} lost", "red"))
    if part.cut:
        return styled((f"ends {part.cut:,} offsets before what was read", "red"))
    waiting = f"{part.waiting:,} offsets wait for an open transaction" if part.waiting else ""
    if not part.tells:
        return waiting
    mark = "no watermark told yet" if part.told is None else f"watermark told: {show_moment(part.told)}"
    return "; ".join(filter(None, [mark, waiting]))


def _state(opened: OpenBatch) -> str:
    from tidemill.inspect.open_batch import state_text

    return state_text(opened)
