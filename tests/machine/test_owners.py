"""A table belongs to one pipeline, whatever that is called; it changes hands only when somebody says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from deltalake import DeltaTable

from machine.conftest import WHO, ids
from machine.neighbours import beside, called
from support.commands import type_command
from support.projects import NO_SPARK, Mill, an_event
from tidemill.core.errors import ConfigError, ForeignTable, TidemillError
from tidemill.core.plan.amendments import Reason
from tidemill.core.protocol.failpoints import VARIABLE, Injected
from tidemill.ledger.process import this_process
from tidemill.maintain.maintenance import maintain
from tidemill.maintain.state_compaction import fold
from tidemill.project.names import Names
from tidemill.project.project import Project
from tidemill.repair.job import AmendmentJob
from tidemill.repair.rebuild import rebuild
from tidemill.repair.rewind import rewind
from tidemill.tables.create import ensure_table
from tidemill.tables.owner import OWNER

MINE = r"table sums \(.*\) belongs to pipeline sums, and not to other; nothing was written"


def run(mill: Mill) -> Any:
    return Mill(Project.load(mill.project.folder), mill.session, mill.name).run(executor=this_process(WHO))


def errand_of(mill: Mill) -> AmendmentJob:
    return AmendmentJob(
        project=Project.load(mill.project.folder),
        pipeline=mill.name,
        reason=Reason(by=WHO, why="a test"),
        identity=WHO,
        session=lambda: NO_SPARK,
    )


def owner(mill: Mill) -> str | None:
    return DeltaTable(mill.project.published_uri("sums")).metadata().configuration.get(OWNER)


def disown(uri: str) -> None:
    """Make a table what it was before tables had owners."""
    for file in sorted((Path(uri) / "_delta_log").glob("*.json")):
        text = file.read_text()
        for name in ("sums", "other"):
            text = text.replace(f'"{OWNER}":"{name}",', "").replace(f',"{OWNER}":"{name}"', "")
        file.write_text(text)
    assert OWNER not in DeltaTable(uri).metadata().configuration


def rows(mill: Mill) -> list[dict[str, Any]]:
    return mill.published("sums")


@pytest.fixture
def mill(a_mill: Callable[..., Mill]) -> Mill:
    """Two batches of a pipeline."""
    found = a_mill(trigger="on_update")
    for second in (1, 12):
        found.feed([an_event(second), an_event(second, "b")])
        run(found)
    return found


def test_a_table_names_its_owner_from_its_first_commit_on(mill: Mill) -> None:
    uri = mill.project.published_uri("sums")
    assert OWNER in DeltaTable(uri, version=0).metadata().configuration
    assert owner(mill) == "sums"


def test_another_project_on_the_lake_is_refused_before_anything_is_written(mill: Mill, tmp_path: Path) -> None:
    other = beside(mill, tmp_path / "second", "other")
    before = rows(mill)
    with pytest.raises(ForeignTable, match=MINE) as error:
        run(other)
    assert "`tidemill rename sums other`" in error.value.fix
    assert "`tidemill adopt other sums --why ...`" in error.value.fix
    assert not other.project.ledger("other").exists
    assert rows(mill) == before
    for words in (("plan", "other", "--dry-run"), ("run", "other")):
        said = type_command(other.project.folder, *words, session=lambda _: NO_SPARK)
        assert (said.code, "belongs to pipeline sums" in said.err) == (5, True)
    assert "belongs to pipeline sums" in " ".join(
        type_command(other.project.folder, "doctor", "--no-spark").out.split()
    )
    assert run(mill) is not None


def test_everybody_who_opens_the_table_looks_whose_it_is(mill: Mill, tmp_path: Path) -> None:
    other = beside(mill, tmp_path / "second", "other")
    uris = other.project.uris("other")
    spec = uris.published_table(other.project.pipeline("other").sinks[0])
    now = datetime.now(UTC)
    with pytest.raises(ForeignTable):
        ensure_table(spec)
    disown(spec.uri)
    with pytest.raises(ForeignTable):
        ensure_table(spec)
    assert type_command(other.project.folder, "adopt", "other", "sums", "--why", "moved").code == 0
    mill.feed([an_event(30)])
    for attempt in (
        lambda: run(mill),
        lambda: ids(rewind(errand_of(mill), 1)),
        lambda: list(maintain(Project.load(mill.project.folder), "sums", keep=timedelta(0), now=now)),
        lambda: ids(rebuild(errand_of(mill))),
    ):
        with pytest.raises(ForeignTable, match="belongs to pipeline other, and not to sums"):
            attempt()
    assert ids(fold(errand_of(mill))) == []


@pytest.mark.parametrize("disowned", [False, True])
def test_a_pipeline_that_is_called_otherwise_without_a_word_is_refused(mill: Mill, disowned: bool) -> None:
    if disowned:
        disown(mill.project.published_uri("sums"))
    with pytest.raises(ForeignTable, match=MINE):
        run(called(mill, "other"))
    assert len(rows(mill)) == 4


def test_the_owner_of_a_table_of_before_is_written_down_by_its_next_write(mill: Mill) -> None:
    for name in ("state/sums",):
        disown(mill.project.table_uri("sums", name))
    disown(mill.project.published_uri("sums"))
    mill.feed([an_event(25)])
    run(mill)
    assert owner(mill) == "sums"
    assert DeltaTable(mill.project.table_uri("sums", "state/sums")).metadata().configuration[OWNER] == "sums"
    assert len(rows(mill)) == 5


def test_a_renamed_pipeline_goes_on_with_all_it_has(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    mill.feed([an_event(13, "c")])
    monkeypatch.setenv(VARIABLE, "after:published:sums=raise")
    with pytest.raises(Injected):
        run(mill)
    monkeypatch.delenv(VARIABLE)
    folder = mill.project.folder
    assert type_command(folder, "rename", "sums", "other", "--by", "me", "--why", "clearer").code == 0
    other = called(mill, "other")
    commit = run(other)
    assert (commit.batch_id, commit.attempt) == (3, 2)
    other.feed([an_event(14, "c"), b"{cut"])
    run(other)
    assert {(r["user"], r["n"]) for r in other.published("sums")} == {("a", 1), ("b", 1), ("c", 2)}
    assert len(other.own("quarantine")) == 1
    assert ids(rewind(errand_of(other), 2))
    assert len(ids(rebuild(errand_of(other)))) > 1
    assert len(other.published("sums")) == 5
    assert type_command(folder, "status", "other", "--json").json["pipeline"] == "other"
    with pytest.raises(ConfigError, match="pipeline sums was renamed to other"):
        run(called(other, "sums"))
    assert type_command(folder, "rename", "other", "sums").code == 0
    assert run(Mill(other.project, NO_SPARK, "sums")) is not None


def test_a_rename_that_cannot_be_meant_is_refused(mill: Mill, tmp_path: Path) -> None:
    other = beside(mill, tmp_path / "second", "other")
    file = other.project.folder / "pipelines" / "pipeline.py"
    file.write_text(file.read_text().replace('.publish("sums"', '.publish("more"'))
    run(other)
    folder = mill.project.folder
    for old, new, said in (
        ("sums", "other", "two cannot become one"),
        ("nobody", "somebody", "the lake has no pipeline nobody"),
        ("sums", "sums", "is called so already"),
        ("sums", "Sums", "not a name"),
        ("", "x", "not a name"),
        ("..", "x", "not a name"),
        ("sums/../sums", "x", "not a name"),
    ):
        found = type_command(folder, "rename", old, new)
        assert (found.code, said in found.err) == (5, True), found.err
    assert type_command(folder, "rename", "sums", "new").code == 0
    found = type_command(folder, "rename", "other", "sums")
    assert (found.code, "is taken by another pipeline" in found.err) == (5, True)
    assert Names.read(mill.project.generations.store).key("new") == "sums"


@pytest.mark.parametrize("said", [b"{cut", b"[]", b'{"old": "sums"}', b'{"old": "sums", "new": 1}', b"\xff"])
def test_a_rename_that_cannot_be_read_is_named(mill: Mill, said: bytes) -> None:
    names = Path(mill.project.settings.lake) / "names"
    names.mkdir()
    (names / "00000001").write_bytes(said)
    found = type_command(mill.project.folder, "status", "sums")
    assert (found.code, "names/00000001 in the lake does not say" in found.err) == (5, True), found.err


def test_a_table_is_taken_over_on_purpose_and_its_history_keeps_who_and_why(mill: Mill, tmp_path: Path) -> None:
    other = beside(mill, tmp_path / "second", "other")
    said = type_command(other.project.folder, "adopt", "other", "sums", "--by", "me", "--why", "the team moved")
    assert (said.code, "belongs to other now, and to sums no more" in said.out) == (0, True), said.err
    [entry] = DeltaTable(mill.project.published_uri("sums")).history(1)
    assert '"before": "sums", "by": "me", "why": "the team moved"' in entry["userMetadata"]
    assert run(other) is not None
    mill.feed([an_event(40)])
    with pytest.raises(ForeignTable, match="belongs to pipeline other, and not to sums"):
        run(mill)
    assert type_command(other.project.folder, "adopt", "other", "sums").code == 5
    assert (
        "there is no published table `nothing`" in type_command(other.project.folder, "adopt", "other", "nothing").err
    )


def test_a_table_whose_owner_is_in_the_middle_of_a_batch_is_not_taken_over(
    mill: Mill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = beside(mill, tmp_path / "second", "other")
    mill.feed([an_event(40)])
    monkeypatch.setenv(VARIABLE, "after:published:sums=raise")
    with pytest.raises(Injected):
        run(mill)
    monkeypatch.delenv(VARIABLE)
    said = type_command(other.project.folder, "adopt", "other", "sums")
    assert (said.code, "belongs to sums, whose batch 3 is open" in said.err) == (5, True)
    run(mill)
    assert type_command(other.project.folder, "adopt", "other", "sums").code == 0


@pytest.mark.parametrize("number", range(3))
def test_of_two_that_make_a_new_table_at_the_same_moment_one_owns_it(
    a_mill: Callable[..., Mill], tmp_path: Path, number: int
) -> None:
    mill = a_mill()
    spec = mill.project.uris("sums").published_table(mill.project.pipeline("sums").sinks[0])
    uri, barrier = str(tmp_path / f"new{number}"), Barrier(2)
    found: dict[str, object] = {}

    def make(name: str) -> None:
        barrier.wait()
        try:
            found[name] = ensure_table(replace(spec, uri=uri, owner=name)).metadata().configuration[OWNER]
        except TidemillError as error:
            found[name] = type(error)

    threads = [Thread(target=make, args=(name,)) for name in ("sums", "other")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winner = DeltaTable(uri).metadata().configuration[OWNER]
    loser = ({"sums", "other"} - {winner}).pop()
    assert found == {winner: winner, loser: ForeignTable}


def test_a_lost_ledger_is_rebuilt_and_the_tables_are_still_its_own(mill: Mill) -> None:
    (Path(mill.project.table_uri("sums", "ledger"))).rename(mill.project.folder / "lost")
    assert len(ids(rebuild(errand_of(mill)))) > 1
    mill.feed([an_event(50)])
    run(mill)
    assert (owner(mill), len(rows(mill))) == ("sums", 5)


def test_status_names_a_ledger_that_nobody_declares_and_the_pipeline_that_its_tables_refuse(mill: Mill) -> None:
    other, folder = called(mill, "other"), mill.project.folder
    said = type_command(folder, "status")
    told = " ".join(said.out.split())
    assert "other: table sums (" in told
    assert "belongs to pipeline sums, and not to other; nothing was written; see `tidemill status other`" in told
    assert "sums: no file declares it, and the lake has its ledger, batch 2 of it committed" in told
    assert "`tidemill rename sums NEW-NAME`" in told
    here, there = type_command(folder, "status", "--json").lines
    assert "`tidemill rename sums other`" in here["refused"]["fix"]
    assert (here["declared"], there["declared"], there["pipeline"], there["batch_id"]) == (True, False, "sums", 2)
    assert "is refused: table sums" in type_command(folder, "status", "other").out
    for command in (["status", "sums"], ["run", "sums"]):
        lost = type_command(folder, *command)
        assert (lost.code, "its ledger is in the lake: if it has another name now" in lost.err) == (5, True)
    with pytest.raises(ForeignTable):
        run(other)
    assert type_command(folder, "rename", "sums", "other").code == 0
    (only,) = type_command(folder, "status", "--json").lines
    assert (only["pipeline"], only["refused"]) == ("other", None)


def test_a_file_that_cannot_be_loaded_may_declare_a_ledger_of_the_lake(mill: Mill) -> None:
    file = mill.project.folder / "pipelines" / "pipeline.py"
    file.write_text(f"{file.read_text()}\n1 / 0\n")
    said = type_command(mill.project.folder, "status")
    assert ("no file declares" in said.out, "ZeroDivisionError" in said.err) == (False, True)


def test_status_knows_that_somebody_adopted_a_table(mill: Mill) -> None:
    handle = DeltaTable(mill.project.published_uri("sums"))
    handle.alter.set_table_properties({OWNER: "other"}, raise_if_not_exists=False)
    (found,) = type_command(mill.project.folder, "status", "--json").lines
    assert "belongs to pipeline other" in found["refused"]["why"]
