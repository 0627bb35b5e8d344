"""Questions that are asked once."""

from __future__ import annotations

from tidemill.core.once import once


def test_an_answer_is_remembered_by_its_name() -> None:
    asked: list[str] = []

    def ask(name: str) -> str:
        asked.append(name)
        return name.upper()

    answers: dict[str, str] = {}
    assert [once(answers, name, ask) for name in ("a", "b", "a")] == ["A", "B", "A"]
    assert asked == ["a", "b"]
    assert [once(None, name, ask) for name in ("a", "a")] == ["A", "A"]
    assert asked == ["a", "b", "a", "a"]


def test_what_is_not_there_is_asked_for_again() -> None:
    answers: dict[str, str | None] = {}
    assert once(answers, "a", lambda _: None) is None
    assert once(answers, "a", lambda name: name) == "a"
    assert once(answers, "a", lambda _: None) == "a"
