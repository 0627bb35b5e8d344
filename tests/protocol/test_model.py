"""The protocol holds wherever two writers, a crash and a lost answer can lead; each broken rule is caught."""

from __future__ import annotations

from dataclasses import fields

import pytest

from protocol import model
from protocol.model import BATCHES, Model, Rules, World
from protocol.search import search

PROMISES = {
    "newest_claim_wins": "owns the batch",
    "lost_plan_is_given_up": "two writers hold one claim",
    "publishes_before_commit": "are published",
    "publishes_once_per_batch": "are published",
    "slices_name_the_attempt": "state counts",
    "appends_look_again": "the ledger contradicts itself",
    "retries_keep_the_plan": "are published",
    "unknown_appends_are_not_repeated": "state counts",
    "lost_answers_look_at_all_events": "beside the ledger",
}
"""The promise that is not kept when a rule is broken."""


@pytest.mark.parametrize(
    ("batches", "worlds", "done"), [(2, 5_000, 20), pytest.param(3, 50_000, 100, marks=pytest.mark.long)]
)
def test_no_schedule_breaks_a_promise(monkeypatch: pytest.MonkeyPatch, batches: int, worlds: int, done: int) -> None:
    monkeypatch.setattr(model, "BATCHES", batches)
    found = search(Model())
    assert str(found.breach or "") == ""
    assert found.worlds > worlds
    assert found.done > done


def test_every_rule_is_broken_by_some_variant() -> None:
    assert {f.name for f in fields(Rules)} == set(PROMISES)


@pytest.mark.parametrize("rule", PROMISES)
def test_a_broken_rule_is_caught(rule: str) -> None:
    found = search(Model(Rules(**{rule: False})))
    assert found.breach is not None
    assert PROMISES[rule] in found.breach.promise
    if rule in ("lost_answers_look_at_all_events", "unknown_appends_are_not_repeated"):
        assert any("answer is lost" in step for step in found.breach.schedule)
    print(f"without {rule}: {found.breach}")


def test_the_shortest_schedule_is_found_and_can_be_followed() -> None:
    model = Model(Rules(slices_name_the_attempt=False))
    breach = search(model).breach
    assert breach is not None
    world = World()
    for step in breach.schedule:
        world = dict(model.steps(world))[step]
    assert sorted(s[:2] for s in world.slices) == [(1, 1), (1, 2)]


def test_a_search_without_faults_commits_everything() -> None:
    quiet = search(Model(), World(end=BATCHES, crashes=0, losses=0))
    assert quiet.breach is None
    assert quiet.done > 0
