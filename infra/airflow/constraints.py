"""Takes out of Airflow's constraints what Tidemill cannot be installed with.

    python constraints.py constraints-3.3.2.txt > constraints.txt

Airflow publishes a file of exact versions for each of its releases and each version of Python. Some of them are older
or newer than Tidemill, or a package that it needs, allows. This program reads what the packages that are installed in
its own environment require of each other, beginning with `tidemill[airflow]`, and prints the file without the lines
that contradict it. What it left out, and for whom, goes to standard error. Hashes are left out, too: pip asks for one
of each package then, and a wheel of one's own has none.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = "tidemill[airflow]"
_PINNED = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;#]+)")

Wishes = Mapping[str, tuple[tuple[str, Requirement], ...]]
"""What is required of each package, with the package that requires it."""


def wishes(root: str = ROOT) -> Wishes:
    """Return what the installed packages require, from `root` on. A package that is not installed requires nothing."""
    found: dict[str, list[tuple[str, Requirement]]] = {}
    seen: set[tuple[str, str]] = set()
    ahead = [Requirement(root)]
    while ahead:
        wanted = ahead.pop()
        for extra in ("", *sorted(wanted.extras)):
            if (wanted.name, extra) in seen:
                continue
            seen.add((wanted.name, extra))
            for each in _required_by(wanted.name, extra):
                found.setdefault(canonicalize_name(each.name), []).append((wanted.name, each))
                ahead.append(each)
    return {name: tuple(each) for name, each in found.items()}


def _required_by(package: str, extra: str) -> Iterator[Requirement]:
    try:
        lines = requires(package) or []
    except PackageNotFoundError:
        return
    for each in map(Requirement, lines):
        if each.marker is None:
            applies = not extra
        else:
            applies = each.marker.evaluate({"extra": extra}) and (not extra or "extra" in str(each.marker))
        if applies:
            yield each


def fitting(lines: list[str], wanted: Wishes) -> tuple[list[str], list[str]]:
    """The lines that can stay, and for each other one a text that says which package does not allow it."""
    kept, left_out = [], []
    for line in lines:
        against = _against(line, wanted)
        if against:
            left_out.append(f"{line.strip()}: {'; '.join(dict.fromkeys(against))}")
        else:
            kept.append(line)
    return kept, left_out


def _without_hashes(lines: list[str]) -> list[str]:
    return [line.removesuffix("\\").rstrip() for line in lines if not line.lstrip().startswith("--hash=")]


def _against(line: str, wanted: Wishes) -> list[str]:
    found = _PINNED.match(line)
    if found is None:
        return []
    asks = wanted.get(canonicalize_name(found["name"]), ())
    return [f"{who} needs {each}" for who, each in asks if not each.specifier.contains(found["version"])]


def main(path: str) -> int:
    """Print the constraints that fit."""
    lines = _without_hashes(Path(path).read_text(encoding="utf-8").splitlines())
    kept, left_out = fitting(lines, wishes())
    print("\n".join(kept))
    print("\n".join(["left out:", *left_out] if left_out else ["nothing was left out"]), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 2 else __doc__)
