"""Reads the files that contracts are imported from, and picks one of several things in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml  # type: ignore[import-untyped]

from tidemill.core.contract.long_number import number_of
from tidemill.core.errors import InputError

Found = TypeVar("Found")
_MOST = 10_000_000
_MOST_TYPES, _DEEPEST = 5_000, 20
_NOT_NAMED = re.compile(r"[^\w-]+", re.ASCII)


def text_of(path: Path) -> str:
    """The text of a file.

    Raises:
        InputError: it cannot be read, is not UTF-8, or is too large for what it should be.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", fix="give a file") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}", fix="save the file as UTF-8") from error
    if len(text) > _MOST:
        raise InputError(f"{path} has {len(text):,} characters, expected a schema of at most {_MOST:,}")
    return text


def json_of(path: Path) -> Any:
    """The JSON value of a file.

    Raises:
        InputError: the file cannot be read, or is not JSON.
    """
    try:
        return json.loads(text_of(path), parse_float=_number)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}:{error.lineno}: not JSON: {error.msg}", fix="give the schema as a file of JSON"
        ) from error
    except RecursionError:
        raise InputError(f"{path}: nested too deep") from None


def _number(text: str) -> float:
    """A number with all its digits. One that is beyond all floats is infinite, which no contract can have."""
    found = number_of(text)
    return float(text) if found is None else found


def yaml_of(path: Path) -> Any:
    """The YAML value of a file.

    Raises:
        InputError: the file cannot be read, or is not YAML.
    """
    text = text_of(path)
    try:
        # A few aliases of aliases would stand for billions of values.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            raise InputError(f"{path}: has aliases", fix="write the values out")
        return yaml.load(text, Loader=yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        said = str(getattr(error, "problem", None) or error).splitlines()[0]
        raise InputError(f"{path}:{mark.line + 1 if mark else 1}: not YAML: {said}") from error
    except RecursionError:
        raise InputError(f"{path}: nested too deep") from None


def pick(path: Path, what: str, found: Mapping[str, Found], picked: str) -> tuple[str, Found]:
    """The one thing of a file, or the one that is picked.

    Raises:
        InputError: there is none, or several and none is picked.
    """
    if picked in found:
        return picked, found[picked]
    if len(found) == 1 and not picked:
        return next(iter(found.items()))
    known = ", ".join(list(found)[:20])
    if not found:
        raise InputError(f"{path}: there is no {what} in it", fix=f"give a file with a {what}")
    said = f"no {what} called `{picked}`" if picked else f"{len(found)} times a {what}"
    raise InputError(f"{path}: {said}; there are {known}", fix=f"write {path}#{next(iter(found))}")


@dataclass(slots=True)
class Nesting:
    """What a reader is inside of, so that types that contain themselves end, and so does what grows without bound."""

    above: list[int] = field(default_factory=list)
    seen: int = 0

    def goes_on(self, inside: object) -> bool:
        """Whether a type with these parts inside can be entered: it is not inside of itself, and not too deep.

        Raises:
            InputError: there are more types than any contract needs.
        """
        self.seen += 1
        if self.seen > _MOST_TYPES:
            raise InputError(f"it describes more than {_MOST_TYPES:,} fields", fix="give a smaller part of it")
        return (inside is None or id(inside) not in self.above) and len(self.above) < _DEEPEST

    @contextmanager
    def entered(self, inside: object) -> Iterator[None]:
        """Be inside of these parts meanwhile."""
        self.above.append(id(inside))
        yield
        self.above.pop()


def name_for(wanted: str, path: Path) -> str:
    """A name that a contract can have: the wanted one, else that of the file."""
    return _NOT_NAMED.sub("_", wanted or path.name.split(".")[0]).strip("_") or "contract"


def as_list(value: object) -> Sequence[Any]:
    """The value if it is a list; otherwise an empty one."""
    return value if isinstance(value, list) else []


def as_mapping(value: object) -> Mapping[str, Any]:
    """The value if it has keys; otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def as_text(value: object) -> str:
    """The value if it is text, in one line; otherwise empty."""
    return " ".join(value.split()) if isinstance(value, str) else ""
