"""Pages that are made of the code: commands, exit codes and errors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from tidemill.cli.exit_codes import MEANINGS
from tidemill.cli.main import app
from tidemill.core import errors

_ERROR_COLUMNS = ("error", "exit code", "retryable", "what it means")
_ABOUT_ERRORS = (
    "What Tidemill raises on purpose says what failed, where, what was expected and found, and what to do. A command "
    "prints that text, without a stack trace, and ends with the exit code of the error. A scheduler tries again what "
    "is *retryable*: the same work may succeed without anybody's help."
)
MADE = "<!-- This page is made of the code, by docs/generated.py. -->\n\n"


def write(folder: Path) -> None:
    """Write the pages into this folder, each only where it has changed."""
    for name, text in {"commands": commands(), "errors": all_errors()}.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != MADE + text:
            path.write_text(MADE + text, encoding="utf-8")


def commands() -> str:
    """Every command with its arguments and options, as `--help` says them, and the exit codes."""
    root = typer.main.get_command(app)
    parts = [
        "# Commands",
        "Every command takes `--help`, and all take the options of `tidemill` itself before their name.",
        _parameters(root),
        *(text for name, command in _leaves(root, ("tidemill",)) for text in _command(name, command)),
        "## Exit codes",
        _table(("code", "meaning"), [(str(code.value), meaning) for code, meaning in MEANINGS.items()]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _leaves(command: Any, name: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for word, below in sorted(getattr(command, "commands", {}).items()):
        if hasattr(below, "commands"):
            yield from _leaves(below, (*name, word))
        else:
            yield (*name, word), below


def _command(name: tuple[str, ...], command: Any) -> list[str]:
    arguments = [_argument(p) for p in command.params if _is_argument(p)]
    usage = " ".join([*name, *arguments, "[OPTIONS]"])
    return [f"## `{' '.join(name)}`", inspect.cleandoc(command.help or ""), f"```\n{usage}\n```", _parameters(command)]


def _is_argument(parameter: Any) -> bool:
    return str(parameter.param_type_name) == "argument"


def _argument(parameter: Any) -> str:
    metavar = parameter.metavar or parameter.name.upper()
    return metavar if parameter.required else f"[{metavar}]"


def _parameters(command: Any) -> str:
    shown = [p for p in command.params if not getattr(p, "hidden", False) and p.name != "help"]
    rows = [(_names(p), re.sub(r"\s+", " ", p.help or "")) for p in shown]
    return _table(("argument or option", "what it means"), rows) if rows else ""


def _names(parameter: Any) -> str:
    if _is_argument(parameter):
        return f"`{_argument(parameter)}`"
    takes = "" if parameter.is_flag else f" {parameter.metavar or 'TEXT'}"
    return f"`{', '.join([*parameter.opts, *parameter.secondary_opts])}{takes}`"


def all_errors() -> str:
    """Every error that is raised on purpose, below what it is a kind of, with the exit code of a command."""
    head = inspect.getdoc(errors) or ""
    tree = head[head.index("    TidemillError") : head.index("Each error says")]
    rows = [
        (f"`{kind.__name__}`", str(kind.exit_code), "yes" if kind.retryable else "no", _first(kind))
        for kind in _kinds(errors.TidemillError)
    ]
    parts = ["# Errors", _ABOUT_ERRORS, f"```\n{inspect.cleandoc(tree)}\n```", _table(_ERROR_COLUMNS, rows)]
    return "\n\n".join(parts) + "\n"


def _kinds(kind: type[Any]) -> Iterator[type[Any]]:
    for below in kind.__subclasses__():
        if below.__module__ == errors.__name__:
            yield below
            yield from _kinds(below)


def _first(kind: type[Any]) -> str:
    text = (inspect.getdoc(kind) or "").split("\n\n")[0]
    return re.sub(r"\s+", " ", text)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
