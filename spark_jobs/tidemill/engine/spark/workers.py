"""Checks the Python workers of a Spark: they need the code of the process that asks them to decode."""

from __future__ import annotations

import atexit
import hashlib
import json
import shutil
import tempfile
import threading
import uuid
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import is_remote

from tidemill.core.errors import ConfigError, EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES = ("pyarrow", "msgspec", "polars", "duckdb", "datasketches")
"""The packages that workers import besides Tidemill: to decode, and to aggregate."""

DAEMON: Mapping[str, str] = {"spark.python.daemon.module": "tidemill.engine.spark.worker_daemon"}
"""The setting of a Spark whose workers can import Tidemill from the start, and then start faster."""

_ROOT = Path(__file__).parents[2]
_KNOWN = "tidemill.workers"
_TASKS = 8
_PATIENCE = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A Python (major and minor version), and the versions of packages; None for a package that cannot be imported."""

    python: str
    tidemill: str | None
    packages: Mapping[str, str | None]

    def __str__(self) -> str:
        found = {"tidemill": self.tidemill, **self.packages}
        return ", ".join(
            (f"Python {self.python}", *(f"{name} {version or 'missing'}" for name, version in found.items()))
        )


def equip(session: SparkSession, *, where: str) -> tuple[Worker, ...]:
    """Make sure that the workers of a session can decode for this process; each session is checked once.

    If Tidemill is missing there, its code is sent to them. The result is the workers found; empty if known before.

    Raises:
        ConfigError: workers have another version of Python or Tidemill, or lack a package; the text names both sides.
    """
    here = f"{this_python()}, code {code_hash()}"
    if session.conf.get(_KNOWN, "") == here:
        return ()
    found = look(session)
    if any(worker.tidemill is None for worker in found):
        session.addArtifacts(str(archive()), pyfile=True)
        found = look(session)
    for worker in found:
        _check(worker, this_python(), where)
    session.conf.set(_KNOWN, here)
    return found


def look(session: SparkSession) -> tuple[Worker, ...]:
    """The different workers that eight tasks find.

    Raises:
        EngineError: no worker within three minutes: the cluster gave no executor, or none could call the driver back.
    """
    frame = session.range(0, _TASKS, 1, _TASKS).mapInArrow(_probe(), "found string")
    with _patience(session):
        texts = sorted({row["found"] for row in frame.collect()})
    return tuple(Worker(**json.loads(text)) for text in texts)


@contextmanager
def _patience(session: SparkSession) -> Iterator[None]:
    """Interrupt jobs in this block that take too long; Spark itself would wait for ever."""
    tag, is_late = f"tidemill-{uuid.uuid4()}", threading.Event()

    def give_up() -> None:
        is_late.set()
        # Without a server, only the thread that set a tag knows it; but nobody else uses that session.
        if is_remote():
            session.interruptTag(tag)
        else:
            session.interruptAll()

    timer = threading.Timer(_PATIENCE, give_up)
    session.addTag(tag)
    timer.start()
    try:
        yield
    except Exception as error:
        if not is_late.is_set():
            raise
        raise EngineError(
            f"Spark gave no worker in {_PATIENCE:.0f} s: the cluster is full, or executors cannot reach the driver",
            fix="look at the cluster's own pages; spark.driver.host in [spark.conf] is the address that executors call",
        ) from error
    finally:
        timer.cancel()
        session.removeTag(tag)


@cache
def this_python() -> Worker:
    """The Python and packages of this process."""
    import pyarrow as pa  # type: ignore[import-untyped]

    [batch] = _probe()([pa.record_batch({"id": [0]})])
    return Worker(**json.loads(batch["found"][0].as_py()))


@cache
def code_hash() -> str:
    """A hash that identifies the Tidemill code of this process."""
    found = hashlib.sha256()
    for path in _modules():
        found.update(f"{path.relative_to(_ROOT)} {path.stat().st_size} ".encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


@cache
def archive() -> Path:
    """A zip file of Tidemill's code that Python can import; it is removed when this process ends."""
    folder = tempfile.mkdtemp(prefix="tidemill-code-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = Path(folder) / f"tidemill-{code_hash()}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for path in _modules():
            file.write(path, path.relative_to(_ROOT.parent).as_posix())
    return target


def _modules() -> list[Path]:
    return sorted(_ROOT.rglob("*.py"))


def _check(worker: Worker, here: Worker, where: str) -> None:
    pairs = [("Python", here.python, worker.python), ("tidemill", here.tidemill, worker.tidemill)]
    lacking = [name for name, version in worker.packages.items() if version is None]
    different = [f"{name} {theirs or 'missing'}, here {ours}" for name, ours, theirs in pairs if ours != theirs]
    if different or lacking:
        raise ConfigError(
            f"{where}: its Python workers do not fit: {'; '.join([*different, *(f'no {name}' for name in lacking)])}",
            fix=f"install tidemill {here.tidemill} with its requirements, for Python {here.python}, where workers run",
        )


def _probe() -> Callable[[Iterable[Any]], Iterator[Any]]:
    """A function for workers that cannot import this module: everything that it needs is inside."""
    packages = PACKAGES

    def probe(batches: Iterable[Any]) -> Iterator[Any]:
        import importlib
        import importlib.metadata
        import importlib.util
        import json
        import sys

        import pyarrow as pa

        def version(name: str) -> str | None:
            try:
                return str(importlib.import_module(name).__version__)
            # For Python, a folder of that name without code is a package, too.
            except (ImportError, AttributeError):
                return None

        def installed(name: str) -> str | None:
            # DuckDB must not be imported where a process may be forked, and some packages do not tell their version.
            spec = importlib.util.find_spec(name)
            if spec is None or spec.origin is None:
                return None
            try:
                return importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                return "of an unknown version"

        for _ in batches:
            found = {
                "python": "{}.{}".format(*sys.version_info[:2]),
                "tidemill": version("tidemill"),
                "packages": {name: installed(name) for name in packages},
            }
            yield pa.record_batch({"found": [json.dumps(found, sort_keys=True)]})

    return probe
