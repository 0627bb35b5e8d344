"""Ledger and tables that do not fit: a batch is refused by name, nothing moves, and damage that is undone goes on."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from support.damage import (
    Change,
    Folder,
    clone,
    create_again,
    cut_files,
    ledger,
    lose,
    lose_entries,
    lose_files,
    overwrite_files,
    published,
    put_back,
    quarantine,
    restore,
    spoil_pages,
    state,
    tree,
)
from support.projects import Mill, an_event, rows_of, sums
from tidemill.core.errors import LedgerDamaged, TableDamaged, TidemillError
from tidemill.ledger.ledger import Ledger
from tidemill.project.project import Project
from tidemill.tables import handles

pytestmark = pytest.mark.spark

LONG = pytest.mark.crash
MORE = [an_event(53, "c"), an_event(62), b"{cut again", an_event(5), an_event(90)]
"""Records of every fate for batch 3; one is late for a window that is published already."""


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory, begun: Callable[..., Mill]) -> Callable[..., Mill]:
    """Gives a copy of a pipeline whose two batches wrote every table, and whose log has more."""
    made: dict[str, Path] = {}

    def copy(folder: Path, writer: str = "delta-rs") -> Mill:
        if writer not in made:
            made[writer] = tmp_path_factory.mktemp("two")
            mill = begun(made[writer], writer)
            mill.run()
            mill.feed(MORE)
        shutil.copytree(made[writer], folder, dirs_exist_ok=True)
        return Mill(Project.load(folder), begun(tmp_path_factory.mktemp("any"), writer).session, "sums")

    return copy


@pytest.fixture(scope="module")
def after(tmp_path_factory: pytest.TempPathFactory, two: Callable[..., Mill]) -> dict[str, list[dict[str, Any]]]:
    """Every table after a run that meets no damage."""
    mill = two(tmp_path_factory.mktemp("after"))
    mill.catch_up()
    return mill.everything()


def give_to_another_pipeline(folder: Path) -> None:
    """The ledger of another pipeline, which went through the same events."""
    events = [e.event for e in Ledger(str(folder), "sums").entries()]
    shutil.rmtree(folder)
    other = Ledger(str(folder), "other")
    for event in events:
        other.append(lambda _, event=event: event)


def lose_the_newest_row(folder: Path) -> None:
    DeltaTable(str(folder)).delete("sequence = 6")


LEDGER = {
    "its last batch gone": (
        lose_entries(-1, -2, -3),
        r"table \w.* holds batch 2.* last that the ledger knows there is",
    ),
    "its last verdict gone": (lose_entries(-1, -2), r"holds batch 2 of sums/\w+, and the last.*ledger lost its end"),
    "an older copy": (put_back, r"table state of sums .* holds batch 2 attempt 1.* older copy was put back"),
    "gone": (lose, r"table state of sums .* holds batch 2 attempt 1.* the ledger knows there is none"),
    "a hole in its log": (lose_entries(-2), r"ledger of sums \(/.*its log is damaged"),
    "its newest row gone": (lose_the_newest_row, r"ledger of sums \(/.*events 1 to 6, but event 6 is missing"),
    "its files gone": (lose_files, r"ledger of sums \(/.*file part-\S+ is missing"),
    "its files cut": (cut_files, r"ledger of sums \(/.*file part-\S+ is damaged: expected \d+ bytes, found \d+"),
    "of another pipeline": (give_to_another_pipeline, r"ledger of sums \(/.*no event of this pipeline"),
}
TABLE = {
    "gone": (lose, r"it is gone; its last commit left it at version \d"),
    "an older copy": (put_back, r"it is older than its last commit: expected version \d, found 0"),
    "restored": (restore, "it was restored to version 1; its last commit left it at 2"),
    "created again": (create_again, r"it is another table: expected id [\w-]{36}, found [\w-]{36}"),
    "a clone": (clone(), r"it is another table: expected id [\w-]{36}, found [\w-]{36}"),
    "of another pipeline": (clone(app_id="sums/sums", version=2), r"it is another table: expected id"),
}
PLACES: dict[str, tuple[Folder, str]] = {
    "state": (state, "state of sums"),
    "published": (published, "sums"),
    "quarantine": (quarantine, "quarantine"),
}
CASES = [
    *(pytest.param(ledger, change, LedgerDamaged, text, id=f"ledger: {how}") for how, (change, text) in LEDGER.items()),
    *(
        pytest.param(folder, change, TableDamaged, rf"table {name} \(/.*/{place}.*\): {text}", id=f"{place}: {how}")
        for place, (folder, name) in PLACES.items()
        for how, (change, text) in TABLE.items()
        # The quarantine has nothing to be restored to.
        if (place, how) != ("quarantine", "restored")
    ),
]


def refused(mill: Mill, error: type[TidemillError], text: str) -> TidemillError:
    """Two runs that end the same way; gives the error of the second."""
    for _ in range(2):
        with pytest.raises(error, match=text) as caught:
            mill.run(drain=True)
        assert "`tidemill rebuild sums`" in caught.value.fix
        assert not caught.value.retryable
        assert caught.value.exit_code == 5
    return caught.value


@pytest.mark.parametrize(("folder", "change", "error", "text"), CASES)
def test_what_does_not_fit_is_refused_before_anything_is_written(  # noqa: PLR0917
    tmp_path: Path, two: Any, folder: Folder, change: Change, error: type[TidemillError], text: str
) -> None:
    mill = two(tmp_path)
    change(folder(mill))
    lake = Path(mill.project.settings.lake)
    before = tree(lake)
    refused(mill, error, text)
    assert tree(lake) == before


@pytest.mark.parametrize(
    ("folder", "change"),
    [
        pytest.param(ledger, put_back, id="ledger: an older copy"),
        pytest.param(state, lose, id="state: gone"),
        *(pytest.param(p.values[0], p.values[1], id=p.id, marks=LONG) for p in CASES),
    ],
)
def test_damage_that_is_undone_leaves_no_trace(
    tmp_path: Path, two: Any, after: Any, folder: Folder, change: Change
) -> None:
    mill = two(tmp_path / "project")
    place, copy = folder(mill), tmp_path / "copy"
    shutil.copytree(place, copy)
    change(place)
    with pytest.raises((LedgerDamaged, TableDamaged)):
        mill.run(drain=True)
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(copy, place)
    mill.catch_up()
    assert mill.everything() == after


FILES = {
    "cut": (cut_files, r"file \S+\.parquet is damaged: expected \d+ bytes, found \d+"),
    "gone": (lose_files, r"file \S+\.parquet is missing"),
    "pages": (spoil_pages, r"file \S+\.parquet is damaged: "),
    "overwritten": (overwrite_files, r"file \S+\.parquet is damaged: "),
}
HOLE = (lose_entries(-2), "its log is damaged")


@pytest.mark.parametrize(
    ("place", "how", "writer"),
    [
        ("state", "cut", "delta-rs"),
        ("published", "gone", "delta-rs"),
        ("state", "a hole", "delta-rs"),
        ("state", "pages", "delta-rs"),
        *(
            pytest.param(place, how, writer, marks=LONG)
            for place in ("state", "published")
            for how in (*FILES, "a hole")
            for writer in ("delta-rs", "spark")
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_by_name(  # noqa: PLR0917
    tmp_path: Path, two: Any, after: Any, place: str, how: str, writer: str
) -> None:
    mill, (folder, name), (change, text) = two(tmp_path, writer), PLACES[place], {**FILES, "a hole": HOLE}[how]
    position = mill.project.ledger("sums").view().position
    files, version = tree(folder(mill)), DeltaTable(str(published(mill))).version()
    change(folder(mill))
    refused(mill, TableDamaged, rf"table {name} \(/.*{text}")
    assert mill.project.ledger("sums").view().position == position
    for path, content in files.items():
        (folder(mill) / path).write_bytes(content)
    assert DeltaTable(str(published(mill))).version() == version
    mill.catch_up()
    assert mill.everything() == after


def test_a_commit_that_the_ledger_lost_is_made_again(tmp_path: Path, two: Any, after: Any) -> None:
    """Nothing tells it from a batch that was killed before its commit; and what that wrote is found again."""
    mill = two(tmp_path)
    before = mill.everything()
    lose_entries(-1)(ledger(mill))
    commit = mill.run()
    assert (commit.batch_id, commit.attempt) == (2, 2)
    assert mill.everything() == before
    mill.catch_up()
    assert mill.everything() == after


def test_a_batch_whose_verdict_the_ledger_lost_is_not_given_up(tmp_path: Path, two: Any) -> None:
    mill = two(tmp_path)
    lose_entries(-1, -2)(ledger(mill))
    pipeline = tmp_path / "pipelines" / "pipeline.py"
    pipeline.write_text(pipeline.read_text().replace("!= 'nobody'", "<> 'nobody'"))
    refused(Mill(Project.load(tmp_path), mill.session, "sums"), LedgerDamaged, "holds batch 2 of sums")


def test_a_restore_that_was_taken_back_is_no_damage(tmp_path: Path, two: Any, after: Any) -> None:
    mill = two(tmp_path)
    for folder in (state, published):
        DeltaTable(str(folder(mill))).restore(1)
        DeltaTable(str(folder(mill))).restore(2)
    mill.catch_up()
    assert mill.everything() == after


def test_state_of_somebody_else_is_refused_before_the_first_batch(tmp_path: Path, spark: Any, two: Any) -> None:
    mill = sums(tmp_path / "new", spark)
    mill.feed([an_event(1)])
    shutil.copytree(state(two(tmp_path / "other")), state(mill))
    clone()(state(mill))
    refused(mill, TableDamaged, r"state of sums .*it has rows, but none of sums/state/sums")
    assert not ledger(mill).exists()


def test_a_batch_opens_each_of_its_tables_once(tmp_path: Path, two: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mill, opened, real = two(tmp_path), Counter[str](), handles._open

    def count(spec: Any, *more: Any) -> Any:
        opened[spec.name] += 1
        return real(spec, *more)

    monkeypatch.setattr(handles, "_open", count)
    assert mill.run().tables.keys() == opened.keys() == {"state of sums", "sums", "quarantine", "late"}
    assert set(opened.values()) == {1}


@pytest.mark.parametrize("writer", ["delta-rs", pytest.param("spark", marks=LONG)])
def test_a_batch_that_is_planned_again_cannot_double_its_state(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, writer: str
) -> None:
    """Also where nobody looks before the plan."""
    monkeypatch.setattr("tidemill.run.batch.check_tables", lambda *_: None)
    mill = sums(tmp_path, spark, writer=writer)
    mill.feed([an_event(1), an_event(2)])
    mill.run()
    lose(ledger(mill))
    with pytest.raises(LedgerDamaged, match=r"state of sums .* holds batch 1 attempt 1|another plan"):
        mill.run()
    assert [r["attempt"] for r in rows_of(str(state(mill)))] == [1]
