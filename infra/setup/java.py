"""Finds a Java that Spark runs on, or installs one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from host import Host, SetupError

OLDEST = 17
USUAL_FOLDERS = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/*jdk*",
    "/opt/*jre*",
    "/opt/homebrew/opt/openjdk*",
)
# Spark is tested most on 17. A Debian release without 17 has a newer default.
DEBIAN_PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "default-jre-headless")
BY_HAND = {
    "apt-get": "sudo apt-get install openjdk-17-jre-headless",
    "dnf": "sudo dnf install java-21-openjdk-headless",
    "zypper": "sudo zypper install java-17-openjdk-headless",
    "pacman": "sudo pacman -S jre17-openjdk-headless",
    "brew": "brew install openjdk@17",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java runtime: the folder that holds `bin/java`, and its feature version (17, 21, ...)."""

    home: Path
    version: int


def find_java(host: Host, folders: Sequence[str] = USUAL_FOLDERS) -> Java | None:
    """Return the first Java of version 17 or newer: from JAVA_HOME, PATH, or the usual folders (oldest first there)."""
    for command in _named(host):
        if (java := _inspect(host, command)) and java.version >= OLDEST:
            return java
    found = [_inspect(host, f"{home}/bin/java") for pattern in folders for home in sorted(glob(pattern))]
    fit = [java for java in found if java and java.version >= OLDEST]
    return min(fit, key=lambda java: java.version, default=None)


def ensure_java(host: Host, folders: Sequence[str] = USUAL_FOLDERS) -> Java:
    """Return a Java for Spark, after installing one if there is none and packages can be installed.

    Raises:
        SetupError: there is none; the error says how to install it.
    """
    if java := find_java(host, folders):
        return java
    if host.can_install():
        print(f"setup: Java {OLDEST} (apt-get)", flush=True)
        host.install(*DEBIAN_PACKAGES)
        if java := find_java(host, folders):
            return java
    known = next((line for name, line in BY_HAND.items() if host.find(name)), f"install a Java {OLDEST} runtime")
    raise SetupError(
        f"Spark needs Java {OLDEST} or newer and none was found: {known}, or set JAVA_HOME; then try again"
    )


def _named(host: Host) -> Iterator[str]:
    if home := host.environ.get("JAVA_HOME"):
        yield f"{home}/bin/java"
    if command := host.find("java"):
        yield command


def _inspect(host: Host, command: str) -> Java | None:
    # Ask Java itself: the path of `java` may be a wrapper or a link.
    answer = host.ask(command, "-XshowSettings:properties", "-version") or ""
    home = re.search(r"^ *java\.home = (.+)$", answer, re.MULTILINE)
    version = re.search(r"^ *java\.specification\.version = (\d+)", answer, re.MULTILINE)
    if home is None or version is None:
        return None
    return Java(home=Path(home[1]), version=int(version[1]))
