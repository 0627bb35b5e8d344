"""Says where a text stops being YAML, and what its writer most likely meant."""

from __future__ import annotations

import yaml  # type: ignore[import-untyped]

_HINTS = (
    ("'\\t'", "indent with blanks, not with tabs"),
    ("mapping values are not allowed", "put a text that has a colon in quotes, or check the indentation"),
    ("undefined alias", "`*` begins an alias: put the text in quotes, or write the value out"),
    ("alphabetic or numeric", "`*` and `&` begin an alias: put the text in quotes"),
    ("cannot start any token", "put the text in quotes"),
    ("expected ',' or", "close the bracket that is open, or put a comma between its items"),
    ("expected the node content", "close the bracket that is open, or remove a comma"),
    ("could not find expected ':'", "write a colon and a blank after the key"),
    ("another document", "a file has one contract: remove the line `---`, or put the other into a file of its own"),
    ("unexpected end of stream", "close the quotes"),
    ("expected <block end>", "give the keys of one mapping, and the dashes of one list, the same indentation"),
)


def place_and_hint(text: str, error: yaml.MarkedYAMLError) -> tuple[int, str, str]:
    """The line of the fault, counted from 0, what is wrong there, and what to do; the hint may be empty."""
    mark = error.problem_mark or error.context_mark
    line, problem = mark.line if mark else 0, str(error.problem or error.context)
    opened = _open_quotes(text, line)
    if opened is not None:
        return opened, "the quotes of this line end in a later one", "close the quotes"
    if "unexpected end of stream" in problem and error.context_mark:
        line = error.context_mark.line
    return line, problem, next((hint for words, hint in _HINTS if words in problem), "")


def _open_quotes(text: str, fault: int) -> int | None:
    """The line of quotes that go on over several lines and end where the fault is found."""
    found = None
    try:
        for token in yaml.scan(text, Loader=yaml.SafeLoader):
            start, end = token.start_mark.line, token.end_mark.line
            if (
                isinstance(token, yaml.ScalarToken)
                and not token.plain
                and token.style in "'\""
                and start < end == fault
            ):
                found = start
    except yaml.YAMLError:
        return found
    return found
