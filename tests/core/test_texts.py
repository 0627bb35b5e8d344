"""Texts of people in texts of Tidemill."""

from __future__ import annotations

import pytest

from tidemill.core.errors import printable, shown
from tidemill.core.protocol.events import told


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("fine\nin lines: ä, 東, 👍", "fine\nin lines: ä, 東, 👍"),
        ("\u202eexe.txt\u2066", r"\u202eexe.txt\u2066"),
        ("a\u200e\u200f\u061c\u2028b", r"a\u200e\u200f\u061c\u2028b"),
        ("\x1b[2Ja\tb\r", r"\x1b[2Ja\tb\r"),
    ],
)
def test_text_that_would_turn_or_hide_other_text_is_escaped(text: str, safe: str) -> None:
    assert printable(text) == safe
    assert told("ana", text) == f"ana: {safe}"
    assert told(text, "") == safe


def test_a_long_value_is_cut_and_says_how_long_it_is() -> None:
    assert shown("a\u202eb") == r"'a\u202eb'"
    assert shown("x" * 98) == repr("x" * 98)
    assert shown("x" * 10**6) == f"'{'x' * 99}… (1,000,002 characters)"
