"""Every command with its arguments and options, as Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import typer
from docstrings import table

from tidemill.cli.exit_codes import MEANINGS
from tidemill.cli.main import app
from tidemill.cli.output import MOST

_DEFAULT = re.compile(r"\s*Default: (.+)\.$")
_TYPES = {int: "INTEGER", float: "FLOAT", Path: "PATH"}
_ABOUT = (
    "Every command takes `--help`, and all take the options of `tidemill` itself before their name. The column "
    "*default* says what holds without the argument or option. *Needed* means that the command does not run without "
    "it, and *off* that the option is a switch. Another page says [what `--json` prints](json.md)."
)


def commands() -> str:
    """Every command with its arguments and options, as `--help` says them, and the exit codes."""
    root = typer.main.get_command(app)
    parts = [
        "# Commands",
        _ABOUT,
        _parameters(root),
        *(text for name, command in _leaves(root, ("tidemill",)) for text in _command(name, command)),
        "## Exit codes",
        table(("code", "meaning"), [(str(code.value), meaning) for code, meaning in MEANINGS.items()]),
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
    return metavar if parameter.required or metavar.startswith("[") else f"[{metavar}]"


def _parameters(command: Any) -> str:
    shown = [p for p in command.params if not getattr(p, "hidden", False) and p.name != "help"]
    rows = [(_names(p), *_default_and_meaning(p)) for p in shown]
    return table(("argument or option", "default", "what it means"), rows) if rows else ""


def _names(parameter: Any) -> str:
    if _is_argument(parameter):
        return f"`{_argument(parameter)}`"
    metavar = "CHOICE" if _choices(parameter) else parameter.metavar or _TYPES.get(_type(parameter), "TEXT")
    takes = "" if parameter.is_flag else f" {metavar}"
    return f"`{', '.join([*parameter.opts, *parameter.secondary_opts])}{takes}`"


def _default_and_meaning(parameter: Any) -> tuple[str, str]:
    said = re.sub(r"\s+", " ", parameter.help or "")
    default = _DEFAULT.search(said)
    means = [_DEFAULT.sub("", said), _choices(parameter), _bounds(parameter), _variable(parameter)]
    text = " ".join(part for part in means if part)
    return (default[1] if default else _default(parameter)), text


def _default(parameter: Any) -> str:
    match parameter.default:
        case _ if parameter.required:
            return "needed"
        case bool():
            return "on" if parameter.default else "off"
        case None | "" | [] | ():
            return "none"
        case Enum():
            return f"`{parameter.default.value}`"
        case _:
            return f"`{parameter.default}`"


def _type(parameter: Any) -> Any:
    return parameter.type_descriptor.annotation


def _choices(parameter: Any) -> str:
    kind = _type(parameter)
    values = [f"`{each.value}`" for each in kind] if isinstance(kind, type) and issubclass(kind, Enum) else []
    return f"One of {', '.join(values)}." if values else ""


def _bounds(parameter: Any) -> str:
    least, most = parameter.min, parameter.max if parameter.max != MOST else None
    match least, most:
        case None, None:
            return ""
        case _, None:
            return f"At least {least:,}."
        case None, _:
            return f"At most {most:,}."
        case _:
            return f"{least:,} to {most:,}."


def _variable(parameter: Any) -> str:
    return f"Also read from the environment variable `{parameter.envvar}`." if parameter.envvar else ""
