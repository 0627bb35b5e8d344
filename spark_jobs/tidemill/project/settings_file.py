"""`tidemill.toml` as it is written: its values, and the line of each, for errors."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tidemill.core.errors import ConfigError

_HEADER = re.compile(r"\s*\[\[?([^\]]+)\]")
_KEY = re.compile(r"""\s*("[^"]*"|'[^']*'|[A-Za-z0-9_-]+)\s*(?:([.])\s*("[^"]*"|'[^']*'|[A-Za-z0-9_-]+)[^=]*)?=""")
_AT = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)\Z")
_FIXES = {
    "Cannot declare": "a section stands in the file once: join the two",
    "Cannot overwrite": "a key stands in its section once: remove one of them",
    "Invalid value": 'write texts in quotes, as in path = "lake"; numbers, true and false stand without quotes',
    "Unterminated string": "end the text with a quote in the same line",
    "Illegal character": "end the text with a quote in the same line, and write \\\\ for a backslash",
    "Unescaped": "write \\\\ for a backslash, or the text in single quotes",
}
_LARGEST, _MOST_PARTS = 1_000_000, 20
_MULTILINE = r'"""(?:\\.|[^\\])*?"""|' + r"'''.*?'''"
_NO_KEY = re.compile(_MULTILINE + r'|"(?:\\.|[^"\\\n])*"|' + r"'[^'\n]*'|#[^\n]*", re.DOTALL)
_LONG_KEY = re.compile(rf"[\w-]+(?:[ \t]*\.[ \t]*[\w-]+){{{_MOST_PARTS}}}")
_USUAL = 'write [section] on a line of its own, and below it lines such as path = "lake"'


@dataclass(frozen=True)
class SettingsFile:
    """The file, its text and its values by section."""

    path: Path
    text: str
    data: Mapping[str, Any]

    @staticmethod
    def read(path: Path) -> SettingsFile:
        """Read a file.

        Raises:
            ConfigError: it is not TOML, or larger than settings are; the error names the line.
        """
        try:
            size = path.stat().st_size
            if size > _LARGEST:
                raise ConfigError(
                    f"{path}: {size:,} bytes, but settings have at most {_LARGEST:,}", fix="keep the settings only"
                )
            found = path.read_bytes()
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror}", fix="change its rights") from None
        try:
            text = found.decode("utf-8-sig")
            _check_keys(path, text)
            return SettingsFile(path, text, tomllib.loads(text))
        except UnicodeDecodeError as error:
            line = found[: error.start].count(b"\n") + 1
            raise ConfigError(f"{path}:{line}: not UTF-8: {error.reason}", fix="save the file as UTF-8") from None
        except tomllib.TOMLDecodeError as error:
            raise _not_toml(path, text, str(error)) from None
        except RecursionError:
            raise ConfigError(f"{path}: lists or tables are nested too deeply", fix="write it flatter") from None

    def get(self, section: str, key: str, default: Any) -> Any:
        """The value of a key; `default` if the file has none."""
        return self.data.get(section, {}).get(key, default)

    def at(self, section: str, key: str = "") -> str:
        """The file and the line of a key, or else of its section; the file alone if it has neither."""
        line = self._lines.get((section, key), self._lines.get((section, "")))
        return str(self.path) if line is None else f"{self.path}:{line}"

    @cached_property
    def _lines(self) -> Mapping[tuple[str, str], int]:
        """The first line of each section and key. Of a text over several lines, the lines may look like keys, too."""
        found: dict[tuple[str, str], int] = {}
        section = ""
        for number, line in enumerate(self.text.splitlines(), start=1):
            if header := _HEADER.match(line):
                section = ".".join(_plain(part) for part in header[1].split("."))
                found.setdefault((section, ""), number)
            elif key := _KEY.match(line):
                name, inner = _plain(key[1]), _plain(key[3] or "")
                found.setdefault((section, name) if section else (name, inner), number)
                found.setdefault((f"{section}.{name}" if section else name, ""), number)
        return found


def _plain(name: str) -> str:
    return name.strip().strip("\"'")


def _check_keys(path: Path, text: str) -> None:
    """Refuse keys of many parts: Python's parser takes seconds for 10,000 of them, and four times as long for twice."""
    bare = _NO_KEY.sub(lambda found: ("" if found[0][0] == "#" else "s") + "\n" * found[0].count("\n"), text)
    found = _LONG_KEY.search(bare)
    if found is not None:
        line = bare.count("\n", 0, found.start()) + 1
        raise ConfigError(
            f"{path}:{line}: a key has at most {_MOST_PARTS} parts with dots between them, found {found[0][:30]}...",
            fix=_USUAL,
        )


def _not_toml(path: Path, text: str, said: str) -> ConfigError:
    """The error for a file that is not TOML, with the line that Python's parser names."""
    place = _AT.search(said)
    lines = text.splitlines() or [""]
    line = int(place[1]) if place and place[1] else len(lines)
    what = _AT.sub("", said)
    fix = next((fix for start, fix in _FIXES.items() if what.startswith(start)), _USUAL)
    found = lines[min(line, len(lines)) - 1].strip()[:80]
    return ConfigError(f"{path}:{line}: not TOML: {what}, found `{found}`", fix=fix)
