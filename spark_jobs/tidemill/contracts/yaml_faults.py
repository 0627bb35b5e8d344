"""Says where a text stops being YAML, and what its writer most likely meant."""

from __future__ import annotations

import codecs

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

_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def encoding_of(data: bytes) -> str:
    """The name of the encoding in which a text begins, if it certainly is UTF-16 or UTF-32; otherwise empty."""
    marked = next((name for mark, name in _MARKS if data.startswith(mark)), "")
    if marked or b"\0" not in data:
        return marked
    # A text of ASCII has a byte of each character at the same place, and zeros at the others.
    for size, name in ((4, "UTF-32"), (2, "UTF-16")):
        for place, end in ((0, "LE"), (size - 1, "BE")):
            others = [data[number::size] for number in range(size) if number != place]
            if len(data) >= size and 0 not in data[place::size] and not any(any(other) for other in others):
                return name + end
    return ""


def as_utf_8(encoding: str) -> str:
    """How to save a file of this encoding as UTF-8."""
    return f"save it as UTF-8: iconv -f {encoding} -t UTF-8 FILE > NEW" if encoding else "save the file as UTF-8"


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
