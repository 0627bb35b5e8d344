"""Some seeds of the chaos; `make chaos` runs many."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from chaos.crew import Crew
from chaos.oracle import judge
from chaos.storm import AT_ONCE, Outcome, run_seed
from chaos.world import World
from support.connect import ConnectServer

pytestmark = [pytest.mark.spark, pytest.mark.long]

KILLS = 5


def test_workers_killed_at_random_moments_lose_and_double_nothing_and_the_oracle_would_see_it(tmp_path: Path) -> None:
    with ConnectServer(tmp_path) as server, Crew(tmp_path, lambda: server.is_running) as crew:
        remotes = [f"{server.remote}/;session_id={uuid.uuid4()}" for _ in range(AT_ONCE)]
        outcome = run_seed(7, crew, tmp_path, remotes=remotes, kills=KILLS)
    assert outcome.judgement.reasons == []
    assert outcome.kills >= KILLS
    assert outcome.judgement.batches > 1
    world = World(outcome.folder)
    uri = world.load().published_uri("large")
    table = DeltaTable(uri)
    first = table.to_pyarrow_table().slice(0, 1)
    write_deltalake(table, first, mode="append")
    assert judge(world).doubled.total() == 1
    same = " AND ".join(f"{name} = {first[name][0].as_py()!r}" for name in ("id", "user", "amount"))
    gone = DeltaTable(uri).delete(same)["num_deleted_rows"]
    assert judge(world).lost.total() == gone - 1


@pytest.fixture(scope="module")
def storms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[int], Outcome]]:
    """Seeds of ten kills, one after the other on one server."""
    folder = tmp_path_factory.mktemp("storms")
    with ConnectServer(folder) as server, Crew(folder, lambda: server.is_running) as crew:
        remotes = [f"{server.remote}/;session_id={uuid.uuid4()}" for _ in range(AT_ONCE)]
        yield partial(run_seed, crew=crew, folder=folder, remotes=remotes, kills=10)


@pytest.mark.parametrize("seed", [2, 3])
def test_a_seed_of_ten_kills_loses_and_doubles_nothing(storms: Callable[[int], Outcome], seed: int) -> None:
    outcome = storms(seed)
    assert outcome.judgement.reasons == []
    assert outcome.kills >= 10
