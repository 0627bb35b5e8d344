"""uv, installed once into an environment of its own, and configured as pip is on this machine."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from host import Host, SetupError

# uv does not read pip's configuration, but a machine that needs a mirror or a certificate has its settings there.
SETTING_OF_OPTION = {"index-url": "UV_DEFAULT_INDEX", "cert": "SSL_CERT_FILE"}

DEBIAN_PYTHONS = Path("/usr/bin")
SETTINGS = {
    # Seconds. The defaults are too short for a slow network or a busy machine.
    "UV_HTTP_TIMEOUT": "120",
    "UV_COMPILE_BYTECODE_TIMEOUT": "600",
    "UV_NO_PROGRESS": "1",
    "UV_PYTHON_DOWNLOADS": "never",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Uv:
    """The version of uv that `lock` names, installed in `folder`. `settings` are environment variables for it."""

    folder: Path
    settings: Mapping[str, str]

    def run(self, host: Host, *arguments: str | Path, what: str) -> None:
        """Run `uv ARGUMENTS`.

        Raises:
            SetupError: it failed.
        """
        host.run(self.folder / "bin" / "uv", *arguments, what=what, **self.settings)


def ensure_uv(host: Host, folder: Path, lock: Path) -> Uv:
    """Return the locked version of uv, after installing it into `folder` if needed.

    Raises:
        SetupError: this Python cannot create environments, or pip could not fetch uv.
    """
    wanted = re.search(r"^uv==(\S+)", lock.read_text(encoding="utf-8"), re.MULTILINE)
    if wanted is None:
        raise SetupError(f"{lock}: expected a line uv==VERSION")
    python = folder / "bin" / "python"
    if f"uv {wanted[1]}" not in (host.ask(folder / "bin" / "uv", "--version") or ""):
        print(f"setup: uv {wanted[1]}", flush=True)
        base = Path(sys.executable).resolve()
        ensure_venv(host, base)
        shutil.rmtree(folder, ignore_errors=True)
        host.run(base, "-m", "venv", folder, what="python3 -m venv")
        pip = (python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input")
        host.run(*pip, "--require-hashes", "-r", lock, what="pip install uv")
    settings = settings_for_uv(host, host.ask(python, "-m", "pip", "config", "list") or "")
    cache = (host.ask(folder / "bin" / "uv", "cache", "dir") or "").strip()
    if not can_write(Path(cache)):
        settings["UV_CACHE_DIR"] = str(folder.parent / "uv-cache")
    return Uv(folder=folder, settings=settings)


def ensure_venv(host: Host, python: Path) -> None:
    """Make sure that `python` can create environments with pip. Debian has that in a separate package.

    Raises:
        SetupError: it cannot; the error says what to install.
    """
    probe = (python, "-c", "import ensurepip, venv")
    if host.ask(*probe) is not None:
        return
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    if host.can_install() and python.parent == DEBIAN_PYTHONS:
        print(f"setup: {package} (apt-get)", flush=True)
        host.install(package, "python3-venv")
        if host.ask(*probe) is not None:
            return
    raise SetupError(
        f"{python} cannot make environments (no venv or no ensurepip): install its venv package "
        f"(Debian, Ubuntu: sudo apt-get install {package}), then try again"
    )


def can_write(folder: Path) -> bool:
    """Whether `folder` is writable or can be created. The user of a service often has no home."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def settings_for_uv(host: Host, pip_configuration: str) -> dict[str, str]:
    """Return settings that make uv use the same index and certificates as pip, read from `pip config list`.

    Settings that the user made for uv take precedence.
    """
    settings = dict(SETTINGS)
    for section in ("global", "install", ":env:"):
        for option, name in SETTING_OF_OPTION.items():
            if value := re.search(rf"^{section}\.{option}='(.+)'$", pip_configuration, re.MULTILINE):
                settings[name] = value[1]
    return {name: value for name, value in settings.items() if name not in host.environ}
