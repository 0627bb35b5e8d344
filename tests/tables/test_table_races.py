"""Several processes write one table at once."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tables.table_writers import FIELDS, DeltaRsWriter, a_spec, seen

RACER = """
import sys, time
from pathlib import Path
from tables.table_writers import *
from tidemill.core.errors import TidemillError

kind, folder, name = sys.argv[1:]
writer, gate = DeltaRsWriter(), Path(folder, "go")
spec = TableSpec(uri=str(Path(folder, "views")), name="views", fields=FIELDS, pruned_by=("window_start",))
Path(folder, f"ready-{name}").touch()
while not gate.exists():
    time.sleep(0.001)
for number in range(ROUNDS):
    table, rows = writer.table(spec), [a_row(number, "/a", int(name))]
    try:
        if kind == "create":
            ensure_table(dataclasses.replace(spec, uri=f"{spec.uri}-{number}"))
            added = Field(name=f"from_{name}", type=Scalar.LONG)
            ensure_table(dataclasses.replace(spec, uri=f"{spec.uri}-{number}", fields=(*FIELDS, added)))
            outcome = "Made"
        elif kind == "append":
            outcome = type(append(table, writer, rows, number, f"plan-{name}")).__name__
        elif kind == "upsert":
            outcome = type(upsert(table, writer, rows, number, plan_hash=f"plan-{name}")).__name__
        else:
            transaction = batch(number, f"pipeline-{name}/views")
            one_key = [a_row(number, f"/{name}", number), a_row(0, f"/{name}/hot", number)]
            keys, within = ("window_start", "page"), minutes(0, 100)
            shaped = writer.rows(one_key)
            landed = table.upsert(shaped, keys=keys, within=within, transaction=transaction, plan_hash=PLAN)
            table.compact(minutes(None, None))
            outcome = type(landed).__name__
    except TidemillError as error:
        outcome = type(error).__name__
    print(number, outcome, flush=True)
"""
ROUNDS = 12


def race(kind: str, folder: Path, racers: int = 2) -> list[list[str]]:
    """What each of the processes that start together says of each round."""
    script = RACER.replace("ROUNDS", str(ROUNDS))
    script = script.replace("import sys, time", "import dataclasses, sys, time")
    command = [sys.executable, "-c", script, kind, str(folder)]
    tests = str(Path(__file__).parents[1])
    processes = [
        subprocess.Popen([*command, str(n)], stdout=subprocess.PIPE, text=True, cwd=tests) for n in range(racers)
    ]
    try:
        while any(not (folder / f"ready-{n}").exists() for n in range(racers)):
            assert all(p.poll() is None for p in processes)
            time.sleep(0.01)
        (folder / "go").touch()
        outputs = [p.communicate(timeout=120)[0] for p in processes]
    finally:
        for process in processes:
            process.kill()
            if process.stdout is not None and not process.stdout.closed:
                process.communicate()
    assert [p.returncode for p in processes] == [0] * racers
    return [[line.split()[1] for line in output.splitlines()] for output in outputs]


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_of_two_racers_with_one_batch_exactly_one_lands(tmp_path: Path, kind: str) -> None:
    spec = a_spec(tmp_path)
    first, second = race(kind, tmp_path)
    assert len(first) == len(second) == ROUNDS
    assert [sorted(outcomes) for outcomes in zip(first, second, strict=True)] == [["Fenced", "Landed"]] * ROUNDS
    rows = seen(DeltaRsWriter().table(spec), DeltaRsWriter())
    assert rows == [(n, "/a", 0 if first[n] == "Landed" else 1) for n in range(ROUNDS)]


def test_two_pipelines_and_their_compactions_share_a_table(tmp_path: Path) -> None:
    spec = a_spec(tmp_path)
    outcomes = race("share", tmp_path)
    rows = seen(DeltaRsWriter().table(spec), DeltaRsWriter())
    for name, said in enumerate(outcomes):
        landed = [n for n in range(ROUNDS) if said[n] == "Landed"]
        assert set(said) <= {"Landed", "CommitUnknown"}
        assert [views for _, page, views in rows if page == f"/{name}"] == landed
        assert [views for _, page, views in rows if page == f"/{name}/hot"] == landed[-1:]


def test_processes_that_make_and_widen_one_table_agree(tmp_path: Path) -> None:
    assert race("create", tmp_path) == [["Made"] * ROUNDS] * 2
    for number in range(ROUNDS):
        handle = DeltaTable(str(tmp_path / f"views-{number}"))
        assert {f.name for f in handle.schema().fields} == {f.name for f in FIELDS} | {"from_0", "from_1"}
        assert handle.version() == 2
