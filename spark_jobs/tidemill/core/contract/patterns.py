"""Patterns of contracts as RE2 reads them, whose time is linear in the text: no record can hold up a batch."""

from __future__ import annotations

import re

_SHORTER = re.compile(r"\(\?!\.\{(?P<size>[0-9]{1,4})\}\)")
_SPACE = r"\t\n\x0b\f\r "
_TOKEN = re.compile(r"\\.|\[\^?\]?|\]|.", re.DOTALL)


def linear(pattern: str) -> tuple[str, int | None]:
    r"""Return the regular expression for RE2, for the whole text, and the most characters that the text may have.

    RE2 looks neither ahead nor back. Only `(?!.{n})` before a pattern without `|` is known: the text has fewer than
    `n` characters. `\d` and `\w` mean ASCII, and `\s` is one of the six blanks of ASCII, as in Java and Python.
    """
    shorter = _SHORTER.match(pattern) if "|" not in pattern else None
    rest = pattern[shorter.end() :] if shorter else pattern
    return rf"\A(?:{_with_blanks(rest)})\z", int(shorter["size"]) - 1 if shorter else None


def _with_blanks(pattern: str) -> str:
    r"""The pattern with `\s` written out, because RE2 takes the vertical tab for no blank."""
    inside, written = False, []
    for token in _TOKEN.findall(pattern):
        inside = token != "]" and (inside or token[0] == "[")
        blanks = {r"\s": _SPACE} if inside else {r"\s": f"[{_SPACE}]", r"\S": f"[^{_SPACE}]"}
        written.append(blanks.get(token, token))
    return "".join(written)
