"""The recomputation from the raw log: it agrees with the pipeline, and sees what is done to its tables."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from deltalake import DeltaTable, write_deltalake

from demo.oracle import Contents, busiest, damaged_values, published, recompute, total
from demo.oracle_comparison import Differences, compare
from support.projects import ROOT, Mill
from tidemill.core.protocol.account import Account
from tidemill.demo.proof import Proof, prove
from tidemill.demo.proof import busiest as proven_busiest
from tidemill.demo.site import PIPELINE, TABLE, TOPIC, make_site, source_of, write_file, write_lines
from tidemill.demo.traffic import Traffic, lines
from tidemill.log.records import NewRecord
from tidemill.project.project import Project

pytestmark = pytest.mark.spark

RECORDS = 3_000


@dataclass(frozen=True)
class Played:
    """A project whose batches have run, what they should have left, and what the account says."""

    project: Project
    expected: Contents
    account: Account
    appended: int

    def differences(self, project: Project | None = None) -> Differences:
        return compare(published(project or self.project), self.expected, appended=self.appended)

    def copy(self, folder: Path) -> Project:
        """The same tables in another folder, to be tampered with."""
        shutil.copytree(self.project.folder, folder)
        return Project.load(folder)


def play(folder: Path, spark: Any, fill: Callable[[Project], int], *, batches: int) -> Played:
    project = make_site(folder, source_of(str(ROOT)))
    appended = fill(project)
    commits = Mill(project, spark, PIPELINE).catch_up(limit=-(-appended // batches))
    account = sum((a for c in commits for a in c.accounts.values()), Account())
    return Played(project, recompute(spark, project), account, appended)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Played:
    def fill(project: Project) -> int:
        return write_lines(project, lines(Traffic(records=RECORDS)), written=lambda _: None)

    return play(tmp_path_factory.mktemp("played") / "demo", spark, fill, batches=6)


def test_tables_of_an_unbroken_run_are_what_the_log_gives(played):
    assert played.differences().none, played.differences()
    assert damaged_values(played.project) == 0


def test_account_says_what_the_recomputation_found(played):
    expected, account = played.expected, played.account
    assert account.read == RECORDS
    assert account.aggregated == expected.requests
    assert account.rejected == total(expected, "rejected") > 0
    assert account.late == total(expected, "late") > 0
    assert account.filtered == account.shed == 0


def test_the_proof_of_the_demonstration_agrees_with_it(played, spark):
    proof = prove(played.project, spark, played.account, RECORDS)
    assert proof == Proof(rows=len(played.expected.rows))
    assert dict(proven_busiest(played.project, 5)) == dict(busiest(played.expected, 5))


def test_the_proof_sees_what_is_done_to_the_tables(played, tmp_path, spark):
    project = played.copy(tmp_path / "demo")
    uri = project.published_uri(TABLE)
    table = DeltaTable(uri)
    [first, second] = table.to_pyarrow_table().slice(0, 2).to_pylist()
    write_deltalake(uri, table.to_pyarrow_table().slice(1, 1), mode="append")
    start = first["window_start"].astimezone(UTC).isoformat()
    DeltaTable(uri).delete(f"page = '{first['page']}' AND window_start = '{start}'")
    late = project.table_uri(PIPELINE, "late")
    write_deltalake(late, DeltaTable(late).to_pyarrow_table().slice(1), mode="overwrite")
    found = prove(project, spark, played.account, RECORDS + 2)
    # The record that is missing among the late ones should count in its window, as far as anybody can know.
    assert (found.lost, found.doubled, found.different) == (1 + 1 + 2, 1, 1)
    assert not found.holds
    assert f"records that batches read: {RECORDS:,}, expected {RECORDS + 2:,}" in found.examples
    assert second["page"] in str(found.examples)


def test_row_that_is_removed_is_lost(played, tmp_path):
    project = played.copy(tmp_path / "demo")
    table = DeltaTable(project.published_uri(TABLE))
    row = table.to_pyarrow_table().slice(0, 1).to_pylist()[0]
    start = row["window_start"].astimezone(UTC).isoformat()
    table.delete(f"page = '{row['page']}' AND window_start = '{start}'")
    found = played.differences(project)
    assert (found.lost, found.doubled, found.different) == (row["requests"], 0, 0)


def test_row_that_is_written_again_is_doubled(played, tmp_path):
    project = played.copy(tmp_path / "demo")
    uri = project.published_uri(TABLE)
    row = DeltaTable(uri).to_pyarrow_table().slice(0, 1)
    write_deltalake(uri, row, mode="append")
    found = played.differences(project)
    assert (found.lost, found.doubled) == (0, row["requests"][0].as_py())


def test_bytes_that_are_changed_are_a_difference(played, tmp_path):
    project = played.copy(tmp_path / "demo")
    table = DeltaTable(project.published_uri(TABLE))
    table.update(updates={"bytes": "bytes + 1"}, predicate="page = '/' AND bytes IS NOT NULL")
    found = played.differences(project)
    assert (found.lost, found.doubled) == (0, 0)
    assert found.different > 0
    assert "bytes is" in found.examples[0]


@pytest.mark.parametrize("table", ["quarantine", "late"])
def test_kept_record_that_is_removed_is_lost_and_written_again_is_doubled(played, tmp_path, table):
    project = played.copy(tmp_path / "demo")
    uri = project.table_uri(PIPELINE, table)
    rows = DeltaTable(uri).to_pyarrow_table()
    write_deltalake(uri, pa.concat_tables([rows.slice(1), rows.slice(1, 1)]), mode="overwrite")
    found = played.differences(project)
    assert (found.lost, found.doubled, found.different) == (1, 1, 0)


def test_raw_bytes_that_are_changed_in_quarantine_are_found(played, tmp_path):
    project = played.copy(tmp_path / "demo")
    DeltaTable(project.table_uri(PIPELINE, "quarantine")).update(updates={"value": "'x'"}, predicate="partition = 0")
    assert damaged_values(project) > 0


def test_records_that_no_batch_read_are_lost(played, tmp_path, spark):
    project = played.copy(tmp_path / "demo")
    extra = [NewRecord(value=b'192.0.2.1 - - [06/Oct/2025:12:00:00 +0200] "GET / HTTP/1.1" 200 1')] * 2
    Mill(project, spark, PIPELINE).log.append(TOPIC, 0, extra)
    found = compare(published(project), recompute(spark, project), appended=RECORDS + 2)
    assert (found.lost, found.doubled) == (2, 0)


GOOD = '192.0.2.1 - ada [06/Oct/2025:12:00:00 +0200] "GET /a?b=1 HTTP/1.1" 200 7 "-" "agent"'
HOSTILE = [
    GOOD,
    GOOD + "  \r",
    GOOD.replace(' "-" "agent"', ""),
    GOOD.replace(' 7 "-" "agent"', ""),
    GOOD.replace(' "agent"', ""),
    GOOD.replace('"agent"', '"agent cut'),
    GOOD.replace('"-" "agent"', '"http://cut'),
    GOOD.replace('"agent"', '"agent" more'),
    GOOD.replace(" 7 ", " - "),
    GOOD.replace(" 7 ", " 007 "),
    GOOD.replace(" 7 ", " -7 "),
    GOOD.replace(" 7 ", " 9223372036854775807 "),
    GOOD.replace(" 7 ", " 9223372036854775808 "),
    GOOD.replace(" 7 ", " x "),
    GOOD.replace(" 200 ", " 99 "),
    GOOD.replace(" 200 ", " 099 "),
    GOOD.replace(" 200 ", " 600 "),
    GOOD.replace(" 200 ", " 599 "),
    GOOD.replace("/a?b=1", "/caf\\xc3\\xa9"),
    GOOD.replace("/a?b=1", "/caf\\xe9"),
    GOOD.replace("/a?b=1", '/quo\\"ted\\\\?x'),
    GOOD.replace("/a?b=1", "/other\\q\\x4"),
    GOOD.replace("/a?b=1", "/with blanks in it"),
    GOOD.replace("/a?b=1", "?only=query"),
    GOOD.replace("/a?b=1", "/" + "x" * 8191),
    GOOD.replace("/a?b=1", "/" + "x" * 8192),
    GOOD.replace("/a?b=1", "/grüße/\N{WATER WAVE}"),
    GOOD.replace("GET", "M" * 32),
    GOOD.replace("GET", "M" * 33),
    GOOD.replace(" HTTP/1.1", ""),
    GOOD.replace(" HTTP/1.1", " HTTP/x"),
    GOOD.replace("GET /a?b=1 HTTP/1.1", "GET"),
    GOOD.replace("GET /a?b=1 HTTP/1.1", "-"),
    GOOD.replace("GET /a?b=1 HTTP/1.1", ""),
    GOOD.replace("06/Oct", "31/Feb"),
    GOOD.replace("06/Oct", "29/Feb"),
    GOOD.replace("06/Oct", "06/Okt"),
    GOOD.replace("06/Oct/2025", "06/Oct/2225"),
    GOOD.replace("12:00:00", "24:00:00"),
    GOOD.replace("12:00:00", "12:00:60"),
    GOOD.replace("+0200", "-0930"),
    GOOD.replace("+0200", "+02:00"),
    GOOD.replace("+0200", "UTC"),
    GOOD.replace("[", ""),
    GOOD.replace(" - ada", " ada"),
    " " + GOOD,
    GOOD.replace("192.0.2.1 - ada", "::1 - -"),
    GOOD + GOOD,
    "",
    "\t",
    "not a line",
]


def test_lines_of_every_shape_end_where_the_pipeline_puts_them(tmp_path, spark):
    def fill(project: Project) -> int:
        file = tmp_path / "hostile.log"
        file.write_bytes(b"\n".join([*(line.encode() for line in HOSTILE), b"\xff\xfe", GOOD.encode() + b"\xe9"]))
        return write_file(project, file)

    played = play(tmp_path / "demo", spark, fill, batches=1)
    assert played.differences().none, "\n".join(played.differences().examples)
    assert played.account.aggregated > 20
    assert played.account.rejected > 20
    assert played.account.late == 0


def test_lines_cut_before_their_bytes_are_requests_of_unknown_size(tmp_path, spark, shared_data):
    log = shared_data / "access_20.log"
    played = play(tmp_path / "demo", spark, lambda project: write_file(project, log), batches=1)
    assert played.account == Account(read=20, aggregated=20)
    assert played.differences().none, "\n".join(played.differences().examples)
    cut = [line for line in log.read_text().splitlines() if line.endswith(("200", "304"))]
    assert [line.split()[6] for line in cut] == ["/images/log_cleaner_anatomy.png"] * 2
    found = published(played.project).rows
    (first,), (second,) = (found[window] for window in sorted(found) if window[1] == "/images/log_cleaner_anatomy.png")
    assert (first["requests"], first["status_2xx"], first["bytes"]) == (1, 1, None)
    assert (second["requests"], second["status_3xx"], second["bytes"]) == (1, 1, None)


def test_many_visitors_of_one_minute_are_nearly_as_many(tmp_path, spark):
    def fill(project: Project) -> int:
        made = (GOOD.replace("192.0.2.1", f"2001:db8::{n:x}") for n in range(2_000))
        (tmp_path / "many.log").write_text("\n".join(made))
        return write_file(project, tmp_path / "many.log")

    played = play(tmp_path / "demo", spark, fill, batches=3)
    ((row,),) = played.expected.rows.values()
    assert 1_900 < row["visitors"] < 2_100
    assert played.differences().none, played.differences()


def test_records_of_the_future_are_rejected_and_do_not_move_the_watermark(tmp_path, spark):
    def fill(project: Project) -> int:
        now = datetime.now(UTC)
        times: Iterable[str] = ("06/Oct/2025:12:00:00 +0200", f"{now:%d/%b}/{now.year + 1}:00:00:00 +0000")
        made = [GOOD.replace("06/Oct/2025:12:00:00 +0200", time) for time in (*times, *times)]
        (tmp_path / "future.log").write_text("\n".join(made))
        return write_file(project, tmp_path / "future.log")

    played = play(tmp_path / "demo", spark, fill, batches=2)
    assert (played.account.aggregated, played.account.rejected, played.account.late) == (2, 2, 0)
    assert played.differences().none, played.differences()
