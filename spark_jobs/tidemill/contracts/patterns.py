"""Regular expressions of contracts.

They are matched by RE2, whose time is linear in the text, whatever the pattern: no record can hold up a batch. A
pattern must also compile for Python, so that other readers of the contract can use it.
"""

from __future__ import annotations

import re
import warnings

from tidemill.core.contract.patterns import linear

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

_NOT_LINEAR = ("invalid perl operator", "bad repetition", "invalid repetition", "too large")
_FOREIGN = {
    "(?P": "a named group, which Java writes in another way: use a plain group",
    "{,": "a count without a lower bound: write {0,n}",
}

_FLAGS = re.compile(r"\(\?[a-zA-Z]+\)")
_ALIKE = re.compile(r"\(\?(?:i|s|is|si)\)")
"""Flags at the start that every engine knows: whatever the case of letters, and a dot that is also a line break."""

_OF_UNICODE = (
    *("L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Ps", "Pe"),
    *("Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp"),
)
"""Categories of characters that RE2 and Java call by the same name. Java counts more of `C`."""

_TOKEN = re.compile(r"\\[pP]\{\w+\}|\\.|\[\^?\]?|\]|.", re.DOTALL)


def complaint(pattern: str) -> str:
    """Say why a pattern cannot be used; empty if it can."""
    for sign, reason in _FOREIGN.items():
        if sign in pattern:
            return f"`{sign}` is {reason}"
    flags = _FLAGS.match(pattern)
    if flags and not _ALIKE.match(pattern):
        return (
            f"`{flags[0]}` sets flags for the whole pattern, which engines read in other ways: known are (?i) and (?s)"
        )
    if unknown := _unknown_category(pattern):
        return unknown
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rest = _without_categories(pattern[flags.end() if flags else 0 :])
            re.compile(rest, re.ASCII)
            re.compile(f"(?:{rest})", re.ASCII)
    except re.error as error:
        return f"{error.msg} at character {error.pos}" if error.pos is not None else error.msg
    except RecursionError:
        return "its groups are nested too deeply"
    except (Warning, OverflowError) as problem:
        return str(problem)
    return _refused_by_re2(linear(pattern)[0])


def _unknown_category(pattern: str) -> str:
    """What is wrong with a category of Unicode in a pattern; empty if nothing is."""
    for token in _TOKEN.findall(pattern):
        if token[:2] in ("\\p", "\\P") and token[3:-1] not in _OF_UNICODE:
            name = token[3:-1]
            said = (
                f"`{token}` is a category of Unicode that engines read in other ways"
                if name
                else (f"`{token}` has no name of a category in braces, as in \\p{{L}}")
            )
            return f"{said}; known are L, M, N, P, S, Z, and parts of them such as Lu"
    return ""


def _without_categories(pattern: str) -> str:
    """The pattern with a plain character for each category of Unicode, of which Python knows none."""
    inside, found = False, []
    for token in _TOKEN.findall(pattern):
        inside = token != "]" and (inside or token[0] == "[")
        known = token[:2] in ("\\p", "\\P") and token[3:-1] in _OF_UNICODE
        found.append(token if not known else "a" if inside else "[a]")
    return "".join(found)


def _refused_by_re2(regex: str) -> str:
    # Commands that look at no pattern start faster without Arrow.
    import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415
    import pyarrow.compute as pc  # type: ignore[import-untyped]  # noqa: PLC0415

    try:
        pc.match_substring_regex(pa.array([""]), regex)
    except pa.ArrowInvalid as error:
        said = str(error).removeprefix("Invalid regular expression: ")
        grows = any(words in said for words in _NOT_LINEAR)
        return f"{said}, which takes more than linear time or memory" if grows else f"{said}, which RE2 does not know"
    return ""
