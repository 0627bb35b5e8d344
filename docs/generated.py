"""What pages say that is made of the code, or of other pages.

Some pages are made as a whole. In others, a part between two comments is made; the first comment says of what:

    <!-- made of: class tidemill.Pipeline read -->
    ...
    <!-- end -->
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from command_pages import commands
from docstrings import markdown, table

from tidemill.contracts.changes.change import KINDS
from tidemill.core import errors
from tidemill.core.sql.function_groups import AGGREGATE_GROUPS, ROW_GROUPS
from tidemill.core.sql.functions import REFUSED_FUNCTIONS, refusal
from tidemill.core.sql.reserved_words import WRITTEN_AS

DOCS = Path(__file__).parent
MADE = "<!-- This page is made of the code, by docs/generated.py: type `make docs`. -->\n\n"
_PART = re.compile(r"(?<=<!-- made of: )([^\n]+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)
_ERROR_COLUMNS = ("error", "exit code", "retryable", "what it means")
_ABOUT_ERRORS = (
    "What Tidemill raises on purpose says what failed, where, what was expected and found, and what to do. A command "
    "prints that text, without a stack trace, and ends with the exit code of the error. A scheduler tries again what "
    "is *retryable*: the same work may succeed without anybody's help."
)
_STANDARD_COLUMNS = ("in", "keys", "records of a topic", "rows of a table")
_ABOUT_STANDARD = (
    "This is what becomes of everything that the Open Data Contract Standard 3.0 to 3.2 knows. *Enforced* means that "
    "it changes what Tidemill reads or checks. *Information* is for people and for other tools, or says what holds "
    "anyway: Tidemill accepts it, "
    "and `tidemill contract lint --verbose` lists where it may seem to promise more. What promises something about "
    "values that Tidemill cannot enforce is *refused*, in its line. A word in brackets is the type that a place has; "
    "`a: b` is a key and a value that other keys depend on. What tags, custom properties and the like have inside is "
    "listed at their first place."
)
_SHOWN_COLUMNS = ("number", "capability", "the case", "shown on", "test")
_MISSING_COLUMNS = ("number", "capability", "what there is")
_ABOUT_SHOWN = (
    "What a stream processor is expected to do, and the test that shows it. Tidemill was planned with a numbered list "
    "of such capabilities; the numbers are from it. The tests under [guarantees](concepts/guarantees.md) show others "
    "of that list. A test on *the engine* runs whole batches, or the log that they read. One on *the tiny engine* runs "
    "whole batches, too, whose rows a small engine of the tests computes in plain Python. A test on *the rules* runs "
    "the plain Python that decides, in `core`. Tests *in a long form* are not among those that every run tries."
)
_TITLES = {"agg": "aggregates", "lambda": "higher-order", "st": "geospatial", "datetime": "date and time"}


def write(docs: Path = DOCS) -> None:
    """Write what is made into the pages of this folder, each only where it has changed."""
    for name, text in pages().items():
        path = docs / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """Every page that is made, as a whole or in parts, by its path in `docs`."""
    made = {"commands": commands(), "errors": all_errors(), "contract-standard": standard()}
    found = {f"reference/{name}.md": MADE + text for name, text in made.items()}
    found["semantics-shown.md"] = MADE + shown()
    for path in sorted(DOCS.rglob("*.md")):
        name, text = path.relative_to(DOCS).as_posix(), path.read_text(encoding="utf-8")
        if name not in found and _PART.search(text):
            found[name] = _PART.sub(lambda match: f"{match[1]}{match[2]}\n{_part(match[1])}\n\n", text)
    return found


def _part(wanted: str) -> str:
    kind, *words = wanted.split()
    return _PARTS[kind](*words)


def class_and_methods(name: str, *methods: str) -> str:
    """A class and some of its methods."""
    return markdown(name, list(methods))


def first_pipeline() -> str:
    """The first pipeline of the README, up to its results."""
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    start, end = text.index("## Your first pipeline"), text.index("The rows are in `lake/published")
    return text[start:end].strip().replace("](docs/", "](")


def decisions() -> str:
    """The records of decisions, each with its title."""
    titles = [(path, path.read_text(encoding="utf-8").partition("\n")[0]) for path in sorted(DOCS.glob("adr/*.md"))]
    return "\n".join(f"- [{title.removeprefix('# ')}](adr/{path.name})" for path, title in titles)


def allowed(which: str) -> str:
    """The functions of one row, or of a group of rows, in Spark's groups."""
    groups = {"rows": ROW_GROUPS, "aggregates": AGGREGATE_GROUPS}[which]
    return table(
        ("group", "functions"),
        [(_title(group), _names(n for n in names if n not in WRITTEN_AS)) for group, names in groups.items()],
    )


def _title(group: str) -> str:
    name = group.removesuffix("_funcs")
    return _TITLES.get(name, name)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def refused() -> str:
    """The functions that no expression may call, by the reason, and what to use instead."""
    rows = []
    for reason in dict.fromkeys(REFUSED_FUNCTIONS.values()):
        names = sorted(name for name, why in REFUSED_FUNCTIONS.items() if why == reason)
        hints: dict[str, list[str]] = {}
        for name in names:
            hint = (refusal(name) or ("", ""))[1]
            hints.setdefault(hint, []).append(name)
        rows += [(reason, _names(each), hint) for hint, each in hints.items()]
    return table(("it ...", "functions", "instead"), rows)


def standard() -> str:
    """What Tidemill makes of every construct of the standard of contracts."""
    sys.path.append(str(DOCS.parent / "tests"))
    try:
        from support.odcs_outcomes import outcomes  # noqa: PLC0415
    finally:
        sys.path.pop()
    rows: dict[tuple[str, str, str], list[str]] = {}
    for of_records, of_rows in zip(outcomes(is_input=True), outcomes(is_input=False), strict=True):
        place = re.sub(r"servers\[\] \(\w+\)", "servers[]", of_records.construct.place)
        keys = rows.setdefault((place, of_records.said, of_rows.said), [])
        if f"`{of_records.construct.key}`" not in keys:
            keys.append(f"`{of_records.construct.key}`")
    listed = [(f"`{p}`" if p else "", ", ".join(k), a, "the same" if a == b else b) for (p, a, b), k in rows.items()]
    return "\n\n".join(["# Contracts of the standard", _ABOUT_STANDARD, table(_STANDARD_COLUMNS, listed)]) + "\n"


def shown() -> str:
    """The capabilities of stream processors, each with the test that shows it."""
    rows = tomllib.loads((DOCS / "semantics_shown.toml").read_text(encoding="utf-8"))
    listed = [(str(each["number"]), each["capability"], each["case"], *_test(each["test"])) for each in rows["shown"]]
    missing = [(str(each["number"]), each["capability"], each["why"]) for each in rows["missing"]]
    parts = ["# Which test shows what", _ABOUT_SHOWN, table(_SHOWN_COLUMNS, listed)]
    return "\n\n".join([*parts, "## Not there", table(_MISSING_COLUMNS, missing)]) + "\n"


def _test(name: str) -> tuple[str, str]:
    """Where a test shows something, and the test."""
    path, _, function = name.partition("::")
    text = (DOCS.parent / path).read_text(encoding="utf-8")
    [found] = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == function]
    # `a_mill` is a fixture of pipelines on the tiny engine.
    tiny = "TinyAttempt" in text or 'usefixtures("tiny"' in text or "a_mill" in {each.arg for each in found.args.args}
    place = "the tiny engine" if tiny else "the engine"
    place = "the rules" if path.startswith("tests/core/") else place
    # `make test` leaves out what has the mark as a whole.
    is_long = "pytest.mark.long" in map(ast.unparse, found.decorator_list)
    return f"{place}, in a long form" if is_long else place, f"`{name}`"


def contract_changes() -> str:
    """The kinds of changes of contracts, their names in waivers and reports, and what each breaks."""
    rows = [(kind.told, f"`{name}`", _broken(kind.records), _broken(kind.table)) for name, kind in KINDS.items()]
    return table(("change", "its name", "breaks, for records of a topic", "breaks, for rows of a table"), rows)


def _broken(breaks: Iterable[str]) -> str:
    return ", ".join(sorted(breaks)) or "nothing"


_PARTS: dict[str, Callable[..., str]] = {
    "contract-changes": contract_changes,
    "class": class_and_methods,
    "first-pipeline": first_pipeline,
    "decisions": decisions,
    "functions": allowed,
    "refused-functions": refused,
}


def all_errors() -> str:
    """Every error that is raised on purpose, below what it is a kind of, with the exit code of a command."""
    rows = [
        (f"`{kind.__name__}`", str(kind.exit_code), "yes" if kind.retryable else "no", _first(kind))
        for kind in _kinds(errors.TidemillError)
    ]
    parts = ["# Errors", _ABOUT_ERRORS, f"```\n{_tree()}\n```", table(_ERROR_COLUMNS, rows)]
    return "\n\n".join(parts) + "\n"


def _tree() -> str:
    """Which error is a kind of which, as the classes say."""
    return "\n".join([errors.TidemillError.__name__, *_branches(errors.TidemillError)])


def _branches(kind: type[Any]) -> Iterator[str]:
    below = [each for each in kind.__subclasses__() if each.__module__ == errors.__name__]
    for each in below:
        first, rest = ("└── ", "    ") if each is below[-1] else ("├── ", "│   ")
        yield first + each.__name__
        yield from (rest + line for line in _branches(each))


def _kinds(kind: type[Any]) -> Iterator[type[Any]]:
    for below in kind.__subclasses__():
        if below.__module__ == errors.__name__:
            yield below
            yield from _kinds(below)


def _first(kind: type[Any]) -> str:
    text = (inspect.getdoc(kind) or "").split("\n\n")[0]
    return re.sub(r"\s+", " ", text)
