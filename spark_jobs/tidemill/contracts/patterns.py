"""Regular expressions of contracts.

They are matched by RE2, whose time is linear in the text, whatever the pattern: no record can hold up a batch. A
pattern must also compile for Python, so that other readers of the contract can use it.
"""

from __future__ import annotations

import re
import warnings

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"

TEXT_FORMATS = {
    "uuid": r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}",
    "ipv4": rf"(?:{_OCTET}\.){{3}}{_OCTET}",
    "hostname": rf"(?!.{{254}}){_LABEL}(?:\.{_LABEL})*",
    "email": r"[^@\s]+@[^@\s.]+(?:\.[^@\s.]+)+",
    "uri": r"[A-Za-z][A-Za-z0-9+.-]*:\S+",
}
"""For each `logicalTypeOptions.format`, the pattern that the whole text must match."""

_FOREIGN = {
    "(?P": "a named group, which Java writes in another way: use a plain group",
    "{,": "a count without a lower bound: write {0,n}",
}


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


def complaint(pattern: str) -> str:
    """Say why a pattern cannot be used; empty if it can."""
    for sign, reason in _FOREIGN.items():
        if sign in pattern:
            return f"`{sign}` is {reason}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(pattern, re.ASCII)
            re.compile(f"(?:{pattern})", re.ASCII)
    except re.error as error:
        return f"{error.msg} at character {error.pos}" if error.pos is not None else error.msg
    except RecursionError:
        return "its groups are nested too deeply"
    except (Warning, OverflowError) as problem:
        return str(problem)
    try:
        pc.match_substring_regex(pa.array([""]), linear(pattern)[0])
    except pa.ArrowInvalid as error:
        return f"{str(error).removeprefix('Invalid regular expression: ')}, which takes more than linear time or memory"
    return ""
