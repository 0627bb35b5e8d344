"""The index of a ledger: readers of old batches get the same answers from it, damaged or not, and open few events."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from ledger.test_ledger import a_ledger, batches
from support.builders import tp
from tidemill.core.errors import LedgerDamaged
from tidemill.core.history.past import Past
from tidemill.core.log.offsets import OffsetRange
from tidemill.core.plan.slices import BatchRange
from tidemill.core.protocol.codec import to_json
from tidemill.core.protocol.events import Committed
from tidemill.ledger import archive, index, rows
from tidemill.ledger.ledger import Ledger


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger of 60 batches, of which the first 49 are indexed in blocks of 20."""
    folder = tmp_path_factory.mktemp("old")
    ledger = a_ledger(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "BLOCK", 20)
        for after in range(0, 60, 20):
            batches(ledger, 20, after=after)
            ledger.keep_short(keep=10)
    return folder


@pytest.fixture
def folder(old: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(old, tmp_path, dirs_exist_ok=True)
    return tmp_path


def objects(folder: Path, pattern: str = "*") -> list[Path]:
    return sorted(file for file in (folder / "ledger" / "_index").rglob(pattern) if file.is_file())


def without_index(folder: Path) -> Past:
    """What the events alone say."""
    shutil.copytree(folder, folder / "bare", ignore=shutil.ignore_patterns("_index", "bare"))
    return a_ledger(folder / "bare").past()


def opened(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, look: Callable[[Past], Any]) -> int:
    """How many events a look at the past decodes."""
    seen = []
    original = rows.entry_of
    with monkeypatch.context() as patch:
        patch.setattr(archive, "entry_of", lambda row, uri: seen.append(row) or original(row, uri))
        look(ledger.past())
    return len(seen)


def test_old_batches_are_known_from_the_index_and_the_newest_from_their_events(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    past, plain = a_ledger(folder).past(), without_index(folder)
    assert [z.batches for z in past.zones] == [(1, 20), (21, 40), (41, 49)]
    assert [(z.first, z.last) for z in past.zones] == [(1, 60), (61, 120), (121, 147)]
    assert list(past.batches()) == list(plain.batches())
    slices = a_ledger(folder).view().position.slices
    wanted = {"t": (OffsetRange(tp(), 205, 215),)}
    assert past.covers_of(wanted, slices) == plain.covers_of(wanted, slices)
    assert opened(a_ledger(folder), monkeypatch, lambda p: p.covers_of(wanted, slices)) == 33, "those behind the index"


def test_an_index_is_made_of_all_that_is_old_however_long_ago_the_last_one_was(folder: Path) -> None:
    for file in objects(folder):
        file.unlink()
    ledger = a_ledger(folder)
    assert ledger.past().zones == ()
    assert ledger.index_old(most=30) == 30, "a bounded part at a time"
    ledger.keep_short(keep=10)
    assert [z.last for z in ledger.past().zones] == [147]
    assert list(ledger.past().batches()) == list(without_index(folder).batches())
    assert len(objects(folder)) == 2, "what was replaced is deleted"


@pytest.mark.parametrize("pattern", ["batches-*", "zones-*"])
@pytest.mark.parametrize(
    "damage", [Path.unlink, lambda f: f.write_bytes(f.read_bytes()[:-9]), lambda f: f.write_bytes(gzip.compress(b"[]"))]
)
def test_without_an_index_that_can_be_read_the_events_answer(
    folder: Path, pattern: str, damage: Callable[[Path], Any]
) -> None:
    plain = without_index(folder)
    for file in objects(folder, pattern):
        damage(file)
    assert list(a_ledger(folder).past().batches()) == list(plain.batches())
    ledger = a_ledger(folder)
    batches(ledger, 1, after=60)
    ledger.keep_short(keep=10)
    assert list(a_ledger(folder).past().batches())[:60] == list(plain.batches())


@pytest.fixture
def tall(old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same ledger, indexed in blocks of 2, of which 3 make a block of blocks, and 3 of those another."""
    monkeypatch.setattr(index, "BLOCK", 2)
    monkeypatch.setattr(index, "FANOUT", 3)
    shutil.copytree(old, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("_index"))
    for most in (50, 50, 50):
        a_ledger(tmp_path).index_old(most=most)
    return tmp_path


def test_a_long_ledger_has_a_short_list_and_a_look_at_a_few_batches_opens_few_objects(
    tall: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    past, plain = a_ledger(tall).past(), without_index(tall)
    assert len(past.zones) <= 3 * 3 < len(list(past.blocks()))
    assert list(past.batches()) == list(plain.batches())
    assert list(past.backwards()) == list(plain.backwards())
    read: list[str] = []
    original = index.LedgerIndex._content
    monkeypatch.setattr(index.LedgerIndex, "_content", lambda self, name: read.append(name) or original(self, name))
    slices = a_ledger(tall).view().position.slices
    wanted = {"t": (OffsetRange(tp(), 205, 215),)}
    found = a_ledger(tall).past()
    assert found.covers_of(wanted, slices) == plain.covers_of(wanted, slices)
    kinds = [name.partition("-")[0] for name in read]
    assert kinds == ["zones", "blocks/blocks", "blocks/blocks", "batches/batches"], read
    assert [e.sequence for part in a_ledger(tall).every() for e in part] == list(range(1, 181))


def test_without_an_object_that_names_blocks_the_events_answer(tall: Path) -> None:
    plain = without_index(tall)
    for file in objects(tall, "blocks-*"):
        file.write_bytes(gzip.compress(b"[]"))
    assert list(a_ledger(tall).past().batches()) == list(plain.batches())
    assert [e.sequence for part in a_ledger(tall).every() for e in part] == list(range(1, 181))
    DeltaTable(str(tall / "ledger")).update({"body": "replace(body, '\"me\"', '\"you\"')"}, predicate="sequence = 4")
    with pytest.raises(LedgerDamaged, match=r"ledger of p .*events 1 to \d+ are not what they were when"):
        list(a_ledger(tall).every())


def test_an_index_of_the_first_version_goes_on(tall: Path) -> None:
    """It had blocks of batches only, all of them in the list and beside it."""
    before = a_ledger(tall)
    table = str(DeltaTable(str(tall / "ledger")).metadata().id)
    own = index.LedgerIndex(str(tall / "ledger"), None)
    leaves = flat(own, own.read(table).blocks)
    there = tall / "ledger" / "_index"
    for block in leaves:
        (there / block.name).rename(there / Path(block.name).name)
    shutil.rmtree(there / "blocks")
    named = tuple(replace(block, name=Path(block.name).name) for block in leaves)
    [listed] = objects(tall, "zones-*")
    old = index.Blocks(version=1, table=table, through=before.past().zones[-1].last, blocks=named)
    listed.write_bytes(gzip.compress(to_json(old).encode()))
    plain = without_index(tall)
    assert a_ledger(tall).past().zones == tuple(block.zone for block in leaves)
    assert list(a_ledger(tall).past().batches()) == list(plain.batches())
    batches(before, 20, after=60)
    before.keep_short(keep=10)
    assert len(a_ledger(tall).past().zones) <= 3 * 3
    assert list(a_ledger(tall).past().batches())[:60] == list(plain.batches())


def flat(own: index.LedgerIndex, blocks: Sequence[index.Block]) -> list[index.Block]:
    """The blocks of batches."""
    return [leaf for b in blocks for leaf in (flat(own, own.parts(b) or ()) if b.height else [b])]


def test_the_index_of_another_ledger_is_not_believed(folder: Path) -> None:
    other = a_ledger(folder / "other")
    batches(other, 2)
    shutil.copytree(folder / "ledger" / "_index", folder / "other" / "ledger" / "_index")
    assert [b.batch_id for b in other.past().batches()] == [1, 2]
    assert other.past().zones == ()


def test_a_ledger_that_ends_before_its_index_is_refused_by_name(folder: Path) -> None:
    shutil.copytree(folder / "ledger", folder / "copy" / "ledger", ignore=shutil.ignore_patterns("_index"))
    ledger = a_ledger(folder)
    batches(ledger, 25, after=60)
    ledger.keep_short(keep=10)
    shutil.copytree(folder / "ledger" / "_index", folder / "copy" / "ledger" / "_index")
    with pytest.raises(LedgerDamaged, match=r"ledger of p .*ends at event 180, but its index goes to event 222[\s\S]*"):
        a_ledger(folder / "copy").past()


def test_an_archived_event_that_is_gone_is_refused_by_who_needs_it_and_nobody_else(folder: Path) -> None:
    DeltaTable(str(folder / "ledger")).delete("sequence = 5")
    ledger = a_ledger(folder)
    with pytest.raises(LedgerDamaged, match=r"ledger of p .*expected events 1 to 60, but event 5 is missing"):
        list(ledger.every())
    assert len(list(ledger.past().batches())) == 60
    assert ledger.view().position.batch_id == 60
    first = ledger.past().batch(1)
    assert first is not None
    assert ledger.commit(first.sequence).batch_id == 1


def test_an_archived_event_that_was_changed_is_refused_when_all_are_read(folder: Path) -> None:
    DeltaTable(str(folder / "ledger")).update({"body": "replace(body, '\"me\"', '\"you\"')"}, predicate="sequence = 4")
    with pytest.raises(LedgerDamaged, match=r"ledger of p .*events 1 to 60 are not what they were when"):
        list(a_ledger(folder).every())
    DeltaTable(str(folder / "ledger")).delete("sequence = 3")
    with pytest.raises(LedgerDamaged, match=r"event 3 is no commit|event 3 is missing"):
        a_ledger(folder).commit(3)


def test_all_events_one_batch_and_those_since_are_read_by_their_numbers(folder: Path) -> None:
    ledger = a_ledger(folder)
    assert [e.sequence for part in ledger.every() for e in part] == list(range(1, 181))
    assert [e.sequence for e in ledger.of_batches(BatchRange(7, 9))] == list(range(19, 25))
    assert [e.sequence for e in ledger.since(100, Committed)] == list(range(102, 181, 3))
    newest = ledger.backwards()
    assert [next(newest).sequence for _ in range(60)] == list(range(180, 120, -1))


def test_folded_events_are_found_by_their_batch_without_opening_every_file(folder: Path) -> None:
    table = DeltaTable(str(folder / "ledger"))
    files = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    bounds = [(file["min.batch_id"], file["max.batch_id"]) for file in files]
    assert max(file["num_records"] for file in files) > 1
    assert all(low is not None and high is not None for low, high in bounds), bounds


def test_an_object_of_the_index_may_be_large(folder: Path) -> None:
    content = os.urandom(3_000_000)
    found = index.LedgerIndex(str(folder / "ledger"), None)
    found._put("large", content)
    assert found._content("large") == content


def test_a_sweep_leaves_the_index(folder: Path) -> None:
    before = objects(folder)
    for file in (folder / "ledger").rglob("*"):
        if file.is_file():
            os.utime(file, (0, 0))
    assert a_ledger(folder).sweep(timedelta(hours=1)) > 0
    assert objects(folder) == before
