"""Contracts as they are in a revision of git."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tidemill.core.errors import InputError


@contextmanager
def at_revision(place: Path, revision: str) -> Iterator[Path | None]:
    """Give a copy of a file or folder as it is in a revision of git; None if it is not there.

    Raises:
        InputError: the place is in no repository of git, there is no such revision, or git is missing.
    """
    folder = place if place.is_dir() else place.parent
    inside = _git(folder, "rev-parse", "--is-inside-work-tree")
    if inside.returncode:
        raise InputError(f"{place}: is in no repository of git", fix="name two files or folders: contract diff OLD NEW")
    if _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}").returncode:
        raise InputError(f"--base {revision}: git knows no such revision", fix="fetch it: git fetch origin BRANCH")
    name = "." if place.is_dir() else place.name
    archived = _git(folder, "archive", "--format=tar", revision, name)
    if archived.returncode:
        yield None
        return
    with TemporaryDirectory(prefix="tidemill-base-") as copy:
        with tarfile.open(fileobj=io.BytesIO(archived.stdout)) as tar:
            # Python has this filter since 3.11.4; before, the attribute means nothing.
            tar.extraction_filter = getattr(tarfile, "data_filter", None)
            tar.extractall(copy)
        yield Path(copy) / name


def _git(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=False)
    except FileNotFoundError:
        raise InputError("--base needs git, which is not installed", fix="install git") from None
