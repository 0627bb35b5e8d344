"""The environment `.venv`: what it must contain, whether it does, and how it is created."""

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
    """The locations of files in a checkout of Tidemill."""

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
        """The file that says what the environment was made from. It exists only if the environment is complete."""
        return self.venv / "tidemill-setup.json"

    @property
    def state(self) -> Path:
        """The folder in which set-up and Tidemill keep everything else in the checkout."""
        return self.root / ".tidemill"

    @property
    def packages_lock(self) -> Path:
        """The lock file of the environment's packages, with hashes."""
        return self.root / "infra" / "setup" / "requirements.lock"

    @property
    def uv_lock(self) -> Path:
        """The lock file of the installer, with hashes."""
        return self.root / "infra" / "setup" / "bootstrap.lock"


class Freshness(Enum):
    """What is left to do for the environment."""

    NOTHING = auto()
    PROJECT = auto()
    EVERYTHING = auto()


def freshness(host: Host, checkout: Checkout) -> Freshness:
    """Compare the stamp with the checkout and with what is installed.

    An environment without a stamp is incomplete, and one that was moved has wrong paths in its scripts: both are
    created again.
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
    """Create `.venv` from nothing with the locked packages. `install_project` adds its stamp.

    Raises:
        SetupError: a package could not be fetched, built or installed, or its hash is wrong.
    """
    # In a shell that has read env.sh, this is the Python of the environment itself: its own base outlives it.
    base = Path(sys.executable).resolve()
    shutil.rmtree(checkout.venv, ignore_errors=True)
    uv.run(host, "venv", "--no-project", "--python", base, checkout.venv, what="uv venv")
    lock = checkout.packages_lock
    # pyspark comes only as source, so the packages that build it are locked too.
    locked = ("--require-hashes", "--build-constraints", lock, "--require-build-hashes")
    # Compile here once. A machine that must not write bytecode would compile in every process and double each start.
    how = ("--python", checkout.python, "--compile-bytecode")
    uv.run(host, "pip", "sync", *how, *locked, lock, what="uv pip sync")


def install_project(host: Host, checkout: Checkout, uv: Uv) -> None:
    """Install the checkout into `.venv` as editable, and stamp the environment as complete.

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
        # The lock names its source as it was given, and a path of this machine must not get into it.
        where = ("--directory", checkout.root, "--output-file", lock)
        uv.run(host, "pip", "compile", source, *extras, *form, *silent, *options, *where, what="uv pip compile")


def _version(host: Host, checkout: Checkout) -> str:
    # Ask the environment's interpreter: the Python it was made from may be gone or replaced.
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
