"""The folder of a local Airflow: who runs in it, its secrets, and what its processes say."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from tidemill.core.errors import ConfigError
from tidemill_airflow.local.processes import Mark, end_session

USER = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """What runs in a home: the supervisor, the leaders of all parts by name, and the address once it is ready."""

    supervisor: Mark
    parts: Mapping[str, Mark] = field(default_factory=dict)
    address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """Made once for a home, so that a login stays the same from start to start."""

    password: str = field(repr=False)
    jwt: str = field(repr=False)
    fernet: str = field(repr=False)


class Home:
    """A folder that only its owner may read. One supervisor at a time holds it; the kernel frees it when that ends."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._held: IO[str] | None = None

    @property
    def passwords(self) -> Path:
        """The file from which Airflow's simple auth manager reads passwords."""
        return self.folder / "passwords.json"

    @property
    def is_made(self) -> bool:
        """Whether `tidemill up` has ever used it."""
        return self._lock.exists()

    def make(self) -> None:
        """Make the folder.

        Raises:
            ConfigError: another Airflow lives there, something else has its name, or it cannot be written to.
        """
        theirs = [name for name in ("airflow.cfg", "airflow.db") if (self.folder / name).exists()]
        if theirs and not self.is_made:
            raise ConfigError(
                f"{self.folder} is the home of another Airflow: it has {theirs[0]}",
                fix="give another folder with --home, or prepare that Airflow: tidemill airflow install",
            )
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self.folder / "parts").mkdir(exist_ok=True)
            self._lock.touch()
        except OSError as error:
            raise ConfigError(
                f"{self.folder}: cannot be used: {error.strerror}", fix="give another folder with --home"
            ) from None

    def said(self, part: str) -> Path:
        """The file with the output of a part."""
        return self.folder / "parts" / f"{part}.log"

    def hold(self) -> bool:
        """Become the supervisor of this home. False if another process is."""
        held = self._lock.open("a")
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.close()
            return False
        self._held = held
        return True

    def free(self) -> None:
        """Let others hold it."""
        if self._held is not None:
            self._held.close()
            self._held = None

    def running(self) -> Running | None:
        """What was noted last; None if nothing is noted, or the file is damaged."""
        try:
            found = json.loads(self._file.read_text())
            return Running(
                supervisor=Mark(**found["supervisor"]),
                parts={name: Mark(**mark) for name, mark in found["parts"].items()},
                address=str(found["address"]),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def note(self, running: Running) -> None:
        """Note what runs, at once and as a whole."""
        parts = {name: asdict(mark) for name, mark in running.parts.items()}
        found = {"supervisor": asdict(running.supervisor), "parts": parts, "address": running.address}
        _write(self._file, json.dumps(found, indent=2) + "\n")

    def forget(self) -> None:
        """Note that nothing runs."""
        self._file.unlink(missing_ok=True)

    def clean(self) -> int:
        """End what a supervisor that was killed left running, and return how many processes there were.

        The caller holds the home.
        """
        left = self.running()
        ended = sum(end_session(mark) for mark in left.parts.values()) if left is not None else 0
        self.forget()
        return ended

    def secrets(self) -> Secrets:
        """The secrets of this home, which are made by the first caller. Readable by the owner alone."""
        file = self.folder / "secrets.json"
        with suppress(OSError, ValueError, TypeError):
            known = Secrets(**json.loads(file.read_text()))
            _write(self.passwords, json.dumps({USER: known.password}) + "\n")
            return known
        made = Secrets(
            password=secrets.token_urlsafe(12),
            jwt=secrets.token_hex(32),
            fernet=urlsafe_b64encode(os.urandom(32)).decode(),
        )
        _write(file, json.dumps(asdict(made), indent=2) + "\n")
        _write(self.passwords, json.dumps({USER: made.password}) + "\n")
        return made

    @property
    def _lock(self) -> Path:
        return self.folder / "up.lock"

    @property
    def _file(self) -> Path:
        return self.folder / "up.json"


def _write(path: Path, text: str) -> None:
    """Replace a file as a whole; nobody but the owner may ever read it."""
    partial = path.with_name(f"{path.name}.new")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    partial.replace(path)
