"""Failpoints: which batch they are meant for."""

from __future__ import annotations

import pytest

from tidemill.core.failpoints import VARIABLE, Injected, reach


@pytest.mark.parametrize(
    ("wanted", "reached"),
    [("here", [1, 2, 3, 12]), ("here@2", [2]), ("here@2+", [2, 3, 12]), ("there", []), ("her", []), ("", [])],
)
def test_a_failpoint_fails_where_and_when_it_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, wanted: str, reached: list[int]
) -> None:
    monkeypatch.setenv(VARIABLE, f"{wanted}=raise" if wanted else "")
    failed = []
    for batch_id in (1, 2, 3, 12):
        try:
            reach("here", batch_id)
        except Injected:
            failed.append(batch_id)
    assert failed == reached


def test_an_unset_variable_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    reach("here", 1)
