"""The environment `.venv`: what it must hold, whether it does, and how it is made."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from host import Host
from uv import Uv


@dataclass(frozen=True, slots=True)
class Checkout:
    """Where things are in a checkout of Tidemill."""

    root: Path

    @property
    def venv(self) -> Path:
        """The environment that everything runs in."""
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        """The interpreter of the environment."""
        return self.venv / "bin" / "python"

    @property
    def stamp(self) -> Path:
        """Says what the environment was made from; there only when it was made to the end."""
        return self.venv / "tidemill-setup.json"

    @property
    def state(self) -> Path:
        """What set-up and Tidemill keep in the checkout besides the environment."""
        return self.root / ".tidemill"

    @property
    def packages_lock(self) -> Path:
        """The packages of the environment, with hashes."""
        return self.root / "infra" / "setup" / "requirements.lock"

    @property
    def uv_lock(self) -> Path:
        """The installer of the packages, with hashes."""
        return self.root / "infra" / "setup" / "bootstrap.lock"


class Freshness(Enum):
    """What is left to do for the environment."""

    NOTHING = auto()
    PROJECT = auto()
    EVERYTHING = auto()


def freshness(host: Host, checkout: Checkout) -> Freshness:
    """Compare the stamp with the checkout and with what is installed.

    An environment without a stamp was left half made, and one that has moved has wrong paths in its scripts:
    both are made anew.
    """
    try:
        stamp = json.loads(checkout.stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Freshness.EVERYTHING
    expected = _facts(checkout, _version(host, checkout))
    if any(stamp.get(name) != expected[name] for name in ("root", "python", "packages_lock")):
        return Freshness.EVERYTHING
    if not set(stamp.get("installed", ())) <= set(_installed(checkout)):
        return Freshness.EVERYTHING
    return Freshness.NOTHING if stamp.get("project") == expected["project"] else Freshness.PROJECT


def make_environment(host: Host, checkout: Checkout, uv: Uv) -> None:
    """Make `.venv` from nothing with the locked packages; it gets its stamp by `install_project`.

    Raises:
        SetupError: a package could not be fetched, built or installed, or has another hash.
    """
    shutil.rmtree(checkout.venv, ignore_errors=True)
    base = Path(sys.executable).resolve()
    uv.run(host, "venv", "--no-project", "--python", base, checkout.venv, what="uv venv")
    lock = checkout.packages_lock
    # pyspark comes as source only: what builds it is locked too.
    locked = ("--require-hashes", "--build-constraints", lock, "--require-build-hashes")
    # Compiled once here, not in every process of a machine that must not write bytecode: it halves each start.
    how = ("--python", checkout.python, "--compile-bytecode")
    uv.run(host, "pip", "sync", *how, *locked, lock, what="uv pip sync")


def install_project(host: Host, checkout: Checkout, uv: Uv) -> None:
    """Install the checkout itself into `.venv`, editable, and stamp the environment as complete.

    Raises:
        SetupError: the project could not be built.
    """
    checkout.stamp.unlink(missing_ok=True)
    how = ("--no-deps", "--no-build-isolation", "--editable", checkout.root)
    uv.run(host, "pip", "install", "--python", checkout.python, *how, what="uv pip install --editable .")
    stamp = {**_facts(checkout, _version(host, checkout)), "installed": _installed(checkout)}
    partial = checkout.stamp.with_suffix(".partial")
    partial.write_text(json.dumps(stamp, indent=1), encoding="utf-8")
    partial.replace(checkout.stamp)


def lock_packages(host: Host, checkout: Checkout, uv: Uv, options: Sequence[str]) -> None:
    """Resolve pyproject.toml with all its extras for every supported Python, keeping locked versions where possible.

    Raises:
        SetupError: the requirements contradict each other.
    """
    form = ("--universal", "--python-version", "3.11", "--generate-hashes", "--no-header")
    silent = ("--no-emit-index-url", "--no-emit-find-links", "--quiet")
    for source, extras, lock in (
        ("pyproject.toml", ("--all-extras",), checkout.packages_lock),
        (checkout.uv_lock.with_suffix(".in").relative_to(checkout.root), (), checkout.uv_lock),
    ):
        # The lock names its source as it was given: a path of this machine must not get into it.
        where = ("--directory", checkout.root, "--output-file", lock)
        uv.run(host, "pip", "compile", source, *extras, *form, *silent, *options, *where, what="uv pip compile")


def _version(host: Host, checkout: Checkout) -> str:
    # Asked of the interpreter itself: the Python that it was made from may be gone or replaced.
    return (host.ask(checkout.python, "-c", "import platform; print(platform.python_version())") or "").strip()


def _facts(checkout: Checkout, version: str) -> dict[str, str]:
    return {
        "root": str(checkout.root),
        "python": version,
        "packages_lock": _digest(checkout.packages_lock),
        "project": _digest(checkout.root / "pyproject.toml"),
    }


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _installed(checkout: Checkout) -> list[str]:
    return sorted(path.name for path in checkout.venv.glob("lib/python*/site-packages/*.dist-info"))
