"""What is wrong with a pipeline file that raised something: the place, what happened, and what to do."""

from __future__ import annotations

import difflib
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tidemill.core.declare import builder
from tidemill.core.errors import DeclarationError

_SHOWN_LINES = 8
_TIDEMILL = sys.modules["tidemill"]
_OTHER_NAMES = {
    "Avg": "Average",
    "Mean": "Average",
    "Std": "StdDev",
    "CountDistinct": "Distinct",
    "Hopping": "Sliding",
    "Percentiles": "Quantiles",
    "TopK": "HeavyHitters",
}
"""What others call the parts of a declaration."""

_IMPORT = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")
_KEYWORD = re.compile(r"([\w.<>]+)\(\) got an unexpected keyword argument '(\w+)'")
_ARGUMENTS = re.compile(r"([\w.<>]+)\(\) (?:missing \d+|takes )")


def fault(path: Path, error: BaseException) -> DeclarationError:
    """The error for what a file raised while it was loaded. It names the line of the file, if one is known."""
    line = _line(path, error)
    where = str(path) if line is None else f"{path}:{line}"
    match error:
        case DeclarationError():
            return DeclarationError(f"{where}: {error.message}", fix=error.fix)
        case SystemExit():
            return DeclarationError(
                f"{where}: leaves the process (SystemExit: {_said(error) or 0}) while it is loaded",
                fix='put what shall run only as a program below `if __name__ == "__main__":`',
            )
        case SyntaxError() if error.filename == str(path):
            fix = "correct the file, and try again" if line is None else f"correct line {line}, or the one before it"
            return DeclarationError(f"{where}: {type(error).__name__}: {_said(error)}", fix=fix)
        case OSError(filename=name) if str(name) == str(path):
            return DeclarationError(f"{path}: cannot be read: {error.strerror}", fix="change its rights")
        case _:
            said = _said(error)
            # The place of a module says nothing that its name does not.
            said = re.sub(r"(cannot import name .*) \([^()]*\)$", r"\1", said)
            message = f"{where}: {type(error).__name__}{': ' if said else ''}{said}{_raised_in(path, error)}"
            return DeclarationError(message, fix=_fix(path, error, said) or _look_at(line))


def _fix(path: Path, error: BaseException, said: str) -> str:
    match error:
        case ModuleNotFoundError(name=name) if name and name.startswith("tidemill."):
            return "all parts of a declaration are in `tidemill` itself: from tidemill import Pipeline, Tumbling, Count"
        case ModuleNotFoundError():
            return "install the package, or add its folder to PYTHONPATH: files beside a pipeline are no modules"
        case ImportError() if found := _IMPORT.match(said):
            known = [name for name in dir(sys.modules.get(found[2])) if not name.startswith("_")]
            return _near(found[1], known) or f"`{found[2]}` has: {', '.join(known[:30])}"
        case NameError(name=str(name)):
            return _for_name(name, path)
        case TypeError() if found := _KEYWORD.match(said):
            taken = _parameters(found[1])
            return _near(found[2], taken) or (f"{found[1]} takes: {', '.join(taken)}" if taken else "")
        case TypeError() if found := _ARGUMENTS.match(said):
            taken = _parameters(found[1])
            return f"{found[1]} takes: {', '.join(taken)}" if taken else ""
        case RecursionError():
            return "a function calls itself without an end: give it one"
        case _:
            return ""


def _look_at(line: int | None) -> str:
    at = "the file" if line is None else f"line {line}"
    return f"correct {at}: Tidemill runs the file to read the declaration; TIDEMILL_DEBUG=1 shows all calls"


def _for_name(name: str, path: Path) -> str:
    if name in dir(_TIDEMILL):
        return f"add the line: from tidemill import {name}"
    module = next((m for m in list(sys.modules.values()) if getattr(m, "__file__", None) == str(path)), None)
    return _near(name, [*dir(module), *dir(_TIDEMILL)])


def _near(name: str, known: Iterable[str]) -> str:
    """A question for the known name that is meant, if there is one."""
    known = list(known)
    other = _OTHER_NAMES.get(name)
    parts = [each for each in known if name in each.split("_")]
    close = [other] if other in known else parts or difflib.get_close_matches(name, known, n=1)
    return f"did you mean `{close[0]}`?" if close else ""


def _parameters(called: str) -> list[str]:
    """The parameters of a part of a declaration, by the name that Python gives it in an error."""
    function = _function(called)
    if function is None:
        return []
    parameters = list(inspect.signature(function).parameters.values())
    return [p.name for p in parameters if p.name != "self" and p.kind is not p.VAR_KEYWORD]


def _function(called: str) -> Callable[..., Any] | None:
    owner, _, name = called.rpartition(".")
    found = getattr(builder, owner, None) or vars(_TIDEMILL).get(owner)
    method = getattr(found, name, None)
    return method if callable(method) else None


def _raised_in(path: Path, error: BaseException) -> str:
    """Where the error was raised, if that is in another file of the user's; Tidemill's own files are left out."""
    frames = [(f.f_code.co_filename, line) for f, line in traceback.walk_tb(error.__traceback__)]
    own = str(Path(__file__).parents[1])
    if not frames or not any(file == str(path) for file, _ in frames):
        return ""
    file, line = frames[-1]
    return "" if file == str(path) or file.startswith((own, "<")) else f" (raised in {file}:{line})"


def _line(path: Path, error: BaseException) -> int | None:
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    lines = [line for f, line in traceback.walk_tb(error.__traceback__) if f.f_code.co_filename == str(path)]
    return lines[-1] if lines else None


def _said(error: BaseException) -> str:
    """The first lines of an error's text. The file may define the text, so producing it may fail."""
    said = ""
    with suppress(Exception):
        said = error.msg if isinstance(error, SyntaxError) else str(error)
    return "\n".join(said.strip().splitlines()[:_SHOWN_LINES])
