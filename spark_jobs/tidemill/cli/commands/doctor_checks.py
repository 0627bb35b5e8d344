"""The checks of `tidemill doctor`. Each one returns what it found and what to do about it, and never raises."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.cli.commands.doctor_tables import check_changes, check_levels, check_tables
from tidemill.cli.views.checked import Checked, State, check
from tidemill.core.counts import many
from tidemill.core.errors import LogError, TidemillError
from tidemill.core.plan.position import Position
from tidemill.log.pipeline_topics import check_sends, to_be_read
from tidemill.project.settings import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemill.project.project import Project

_OLDEST_JAVA = 17


def check_machine() -> Iterator[Checked]:
    """Check Python and Java."""
    version = ".".join(map(str, sys.version_info[:3]))
    fits = (3, 11) <= sys.version_info[:2] < (3, 14)
    fix = "" if fits else "use Python 3.11, 3.12 or 3.13"
    yield Checked(name="python", state=_state(fits), found=f"{version} at {sys.executable}", fix=fix)
    yield check("java", _java)


def check_project(project: Project, *, spark: bool) -> Iterator[Checked]:
    """Check everything that a project needs. With `spark` a session is started, which takes seconds."""
    settings = project.settings
    yield Checked(name="project", state=State.OK, found=str(project.folder / "tidemill.toml"))
    if not settings.remote:
        yield check("jars", lambda: _jars(Path(settings.jars)))
    yield check("lake", lambda: _lake(project))
    yield check("log", lambda: _log(project))
    yield check("contracts", lambda: _contracts(Path(settings.contracts)))
    names: list[str] = []
    damaged: list[str] = []
    faults: list[Checked] = []
    yield check("pipelines", lambda: _pipelines(project, names, faults))
    yield from faults
    for name in names:
        yield check(f"topics of {name}", lambda name=name: _topics(project, name))  # type: ignore[misc]
        yield check(f"ledger of {name}", lambda name=name: _ledger(project, name))  # type: ignore[misc]
        tables = list(check_tables(project, name))
        yield from tables
        if any(each.state is State.PROBLEM for each in tables):
            damaged.append(name)
        else:
            yield from check_changes(project, name)
        yield from check_levels(project, name)
    if spark:
        yield from _with_spark(project, [name for name in names if name not in damaged])


def _state(fine: bool) -> State:
    return State.OK if fine else State.PROBLEM


def _java() -> tuple[State, str, str]:
    home = os.environ.get("JAVA_HOME")
    command = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    fix = f"install Java {_OLDEST_JAVA} or newer, and set JAVA_HOME to it"
    if command is None:
        return State.PROBLEM, f"no java in JAVA_HOME={home}" if home else "no java on PATH", fix
    done = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=30, check=False)
    match = re.search(r'version "(\d+)[^"]*"', done.stderr)
    if match is None:
        return State.PROBLEM, f"{command} does not say its version: {done.stderr.strip()[:100]!r}", fix
    fits = int(match[1]) >= _OLDEST_JAVA
    return _state(fits), f"{match[0].split(chr(34))[1]} at {command}", "" if fits else fix


def _jars(folder: Path) -> tuple[State, str, str]:
    from tidemill.engine.spark.jars import jar_paths, locked_jars
    from tidemill.engine.spark.shared_classes import archive_in

    jars = locked_jars(kafka=True, s3=True)
    paths = jar_paths(folder, jars)
    bad = [jar.file_name for jar in jars if _sha256(folder / jar.file_name) != jar.sha256]
    if bad:
        return State.PROBLEM, f"{folder}: other bytes than were locked: {', '.join(bad)}", "tidemill jars fetch"
    starts = "" if archive_in(folder.absolute()).is_file() else "; no archive of Java's classes, so Spark starts slowly"
    return State.OK, f"{len(paths)} in {folder}, checksums as locked{starts}", "tidemill jars fetch" if starts else ""


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _lake(project: Project) -> tuple[State, str, str]:
    place = project.settings.lake
    return _store(project, place) if is_remote(place) else _writable(Path(place))


def _log(project: Project) -> tuple[State, str, str]:
    if project.settings.kafka is not None:
        return State.OK, f"Kafka at {project.settings.kafka['kafka']}, {len(project.log().topics())} topics", ""
    place = project.settings.log
    if project.settings.layout:
        return State.OK, f"{place}, files of others, {len(project.log().topics())} topics", ""
    return _store(project, place) if is_remote(place) else _writable(Path(place))


def _store(project: Project, place: str) -> tuple[State, str, str]:
    """Check the store by reading only. The first write checks that the store refuses a name that is taken."""
    from tidemill.stores.opened import store_at

    written = "taken" in store_at(place, project.access).list(".tidemill")
    return State.OK, f"{place}, readable, {'with conditional writes' if written else 'never written to'}", ""


def _writable(folder: Path) -> tuple[State, str, str]:
    place = folder
    while not place.exists():
        place = place.parent
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".tidemill-doctor-"):
            pass
    except OSError as error:
        return State.PROBLEM, f"{place} cannot be written to: {error.strerror}", "change its owner, or tidemill.toml"
    return State.OK, f"{folder}, writable" if place == folder else f"{folder}, not there yet; can be made", ""


def _contracts(folder: Path) -> tuple[State, str, str]:
    from tidemill.contracts.findings import Level
    from tidemill.contracts.lint import lint

    findings = lint(folder)
    errors = [f for f in findings if f.severity is Level.ERROR]
    if errors:
        return State.PROBLEM, f"{len(errors)} errors, the first: {errors[0]}", f"tidemill contract lint {folder}"
    if findings:
        return State.NOTE, f"{len(findings)} warnings in {folder}", f"tidemill contract lint {folder}"
    return State.OK, f"no findings in {folder}", ""


def _pipelines(project: Project, fit: list[str], faults: list[Checked]) -> tuple[State, str, str]:
    """Append the names of usable pipelines to `fit`, and the faults of the other pipelines and files to `faults`."""
    names = project.pipeline_names()
    for name in names:
        try:
            project.declared(name)
            fit.append(name)
        except TidemillError as error:
            faults.append(_fault(f"pipeline {name}", error))
    faults += [_fault("pipeline file", error) for error in project.faults]
    if faults:
        return State.NOTE, f"fit to run: {', '.join(fit) or 'none'}; {many(len(faults), 'fault')}", "see below"
    if not names:
        return State.NOTE, f"none in {project.settings.pipelines}", "declare one"
    return State.OK, f"{', '.join(names)}: each fits its contracts", ""


def _fault(name: str, error: TidemillError) -> Checked:
    return Checked(name=name, state=State.PROBLEM, found=error.message, fix=error.fix)


def _topics(project: Project, name: str) -> tuple[State, str, str]:
    log, found = project.log(), []
    flow = project.pipeline(name)
    try:
        flow = to_be_read(flow, log, Position())
        check_sends(flow, log)
    except LogError as error:
        return State.NOTE, error.message, error.fix or ""
    for topic in [i.topic for i in flow.inputs]:
        try:
            bounds = log.bounds(topic)
        except LogError as error:
            own = not project.settings.layout
            return State.NOTE, error.message, f"tidemill log create {topic}" if own else ""
        found.append(f"{topic}: {sum(len(held) for held in bounds.values()):,} records")
    return State.OK, ", ".join(found), ""


def _ledger(project: Project, name: str) -> tuple[State, str, str]:
    from tidemill.run.claiming import change_of

    view = project.ledger(name).view()
    change_of(project.pipeline(name), view)
    if view.open_batch is not None:
        return State.OK, f"batch {view.open_batch.plan.batch_id} is open", ""
    return State.OK, f"batch {view.position.batch_id} is committed" if view.last_commit else "nothing committed yet", ""


def _with_spark(project: Project, fit: Sequence[str]) -> Iterator[Checked]:
    """Start Spark, then let it check the types of the pipelines that are `fit` for it."""
    from tidemill.engine.aggregate.types import check_types

    def types(name: str) -> tuple[State, str, str]:
        check_types(sessions[0], project.pipeline(name), project.uris(name))
        return State.OK, "fit its contracts and tables", ""

    sessions: list[SparkSession] = []
    started = check("spark", lambda: _spark(project, sessions))
    yield started
    try:
        for name in fit if started.state is State.OK else ():
            yield check(f"types of {name}", lambda name=name: types(name))  # type: ignore[misc]
    finally:
        for session in sessions:
            session.stop()


def _spark(project: Project, sessions: list[SparkSession]) -> tuple[State, str, str]:
    """Start a session, and append it to `sessions`: the caller stops it."""
    from tidemill.cli.spark import start_spark
    from tidemill.cli.views.physical import place
    from tidemill.engine.spark.failures import explained
    from tidemill.engine.spark.workers import look

    session = start_spark(project).session
    sessions.append(session)
    with explained("a job that asks the workers"):
        workers = "; ".join(str(worker) for worker in look(session))
    return State.OK, f"{place(project.settings)}: Spark {session.version} answers, its workers have {workers}", ""
