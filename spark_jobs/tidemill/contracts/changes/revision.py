"""Contracts as they are in a revision of git."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tidemill.contracts.changes.waivers import FILE
from tidemill.contracts.files import files_below
from tidemill.core.errors import InputError


@contextmanager
def at_revision(place: Path, revision: str) -> Iterator[Path | None]:
    """Give a copy of a file or folder as it was where the work on HEAD left a revision of git; None if it was nowhere.

    What the revision got since is not compared: to lack it takes nothing away. A shallow clone may not know where that
    was; then it is as the revision has it. What was moved since is found by the names of its files.

    Raises:
        InputError: the place is in no repository of git, there is no such revision, or git is missing or fails.
    """
    folder = place if place.is_dir() else place.parent
    if _git(folder, "rev-parse", "--is-inside-work-tree").returncode:
        raise InputError(f"{place}: is in no repository of git", fix="name two files or folders: contract diff OLD NEW")
    found = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if found.returncode:
        raise InputError(f"--base {revision}: git knows no such revision", fix="fetch it: git fetch origin BRANCH")
    left = _git(folder, "merge-base", _text(found), "HEAD")
    old = _Old(folder, _text(found if left.returncode else left))
    name = "." if place.is_dir() else place.name
    with TemporaryDirectory(prefix="tidemill-base-") as copy:
        if not _git(folder, "cat-file", "-e", f"{old.commit}:./{name}").returncode:
            beside = (
                [] if place.is_dir() or _git(folder, "cat-file", "-e", f"{old.commit}:./{FILE}").returncode else [FILE]
            )
            old.copy(folder, [name, *beside], Path(copy))
            yield Path(copy) / name
        elif moved := old.moved(place):
            old.copy(old.top, list(moved.values()), Path(copy))
            yield Path(copy) if place.is_dir() else Path(copy) / moved[place]
        else:
            yield None


@dataclass(frozen=True, slots=True)
class _Old:
    folder: Path
    commit: str

    @property
    def top(self) -> Path:
        return Path(_text(_git(self.folder, "rev-parse", "--show-toplevel")))

    def copy(self, folder: Path, names: Sequence[str], to: Path) -> None:
        archived = _git(folder, "archive", "--format=tar", self.commit, *names)
        if archived.returncode:
            said = archived.stderr.decode(errors="replace").strip()
            raise InputError(f"git archive {self.commit[:12]} in {folder}: {said}", fix="run `git fsck`")
        with tarfile.open(fileobj=io.BytesIO(archived.stdout)) as tar:
            # Python has this filter since 3.11.4; before, the attribute means nothing.
            tar.extraction_filter = getattr(tarfile, "data_filter", None)
            tar.extractall(to)

    def moved(self, place: Path) -> dict[Path, str]:
        """For each file of the place, the path that it had: one of its name that is not there any more."""
        top, files = self.top, list(files_below(place)) if place.is_dir() else [place] if place.exists() else []
        tree = _git(top, "ls-tree", "-r", "-z", "--full-tree", "--name-only", self.commit).stdout
        gone: dict[str, list[str]] = {}
        for path in filter(None, tree.decode(errors="surrogateescape").split("\0")):
            if path.lower().endswith((".yaml", ".yml", ".odcs.json")) and not (top / path).exists():
                gone.setdefault(path.rpartition("/")[2], []).append(path)
        return {file: max(gone[file.name], key=lambda path: _alike(path, file)) for file in files if file.name in gone}


def _alike(path: str, file: Path) -> int:
    """How many of the last folders of two paths have the same names."""
    pairs = zip(reversed(path.split("/")), reversed(file.parts), strict=False)
    return next((number for number, (one, other) in enumerate(pairs) if one != other), len(file.parts))


def _text(done: subprocess.CompletedProcess[bytes]) -> str:
    return done.stdout.decode(errors="surrogateescape").strip()


def _git(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=False)
    except FileNotFoundError:
        raise InputError("--base needs git, which is not installed", fix="install git") from None
