"""`python -m tidemill.run.archiving FOLDER`: brings the jars that Spark needs, and archives the classes of its Java.

A process (`tidemill.run.class_loading`) runs the first batches of a new project, and its Java writes the classes that
it has loaded beside the jars (`tidemill.engine.spark.shared_classes`). This takes a minute and 200 MB, once for each
version of Java and Spark.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tidemill.core.errors import ConfigError, EngineError, TidemillError
from tidemill.engine.spark.jars import fetch_jars, jar_paths, locked_jars
from tidemill.engine.spark.shared_classes import archive_in
from tidemill.run.connect_server import spark_home

_PATIENCE = 900.0
_LAST_LINES = 5
_LOADER = "tidemill.run.class_loading"


def make_archive(folder: Path) -> bool:
    """Archive the classes of Spark beside the jars in `folder`, unless that was tried for this Java and Spark.

    Return whether there is something new.

    Raises:
        ConfigError: jars are missing.
        EngineError: the batches of the process that loads the classes failed, or Java wrote no archive.
    """
    archive = archive_in(folder.absolute())
    tried_for, now = archive.with_suffix(".txt"), _made_from(archive.parent)
    if tried_for.is_file() and tried_for.read_text(encoding="utf-8") == now:
        return False
    with TemporaryDirectory(prefix=".classes-", dir=archive.parent) as scratch:
        text, written = Path(scratch) / tried_for.name, Path(scratch) / archive.name
        text.write_text(now, encoding="utf-8")
        try:
            _record(archive.parent, Path(scratch), written)
            written.replace(archive)
        finally:
            text.replace(tried_for)
    return True


def _record(folder: Path, scratch: Path, archive: Path) -> None:
    command = [sys.executable, "-m", _LOADER, str(folder), str(scratch / "project"), str(archive)]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _not_made(str(error)) from error
    if done.returncode or not archive.is_file():
        lines = (done.stdout + done.stderr).decode(errors="replace").splitlines()
        raise _not_made(" / ".join(lines[-_LAST_LINES:]) or f"exit code {done.returncode}")


def _not_made(why: str) -> EngineError:
    return EngineError(
        f"no archive of Java's classes was made: {why}",
        fix="all works without it, but Spark starts more slowly; remove classes-*.txt beside the jars to try again",
    )


def _made_from(folder: Path) -> str:
    """What Java compares before it takes an archive: its own version, and names, sizes and times of the jars."""
    jars = [*map(Path, jar_paths(folder, locked_jars())), *sorted((spark_home() / "jars").glob("*.jar"))]
    stats = (f"{jar} {found.st_size} {found.st_mtime_ns}" for jar in jars for found in [jar.stat()])
    digest = hashlib.sha256("\n".join(stats).encode()).hexdigest()
    return f"{_java()}\n{digest}\n"


def _java() -> str:
    """The text by which a Java tells its version; empty if it cannot be found."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else Path(shutil.which("java") or "")
    with suppress(OSError):
        return (java.resolve().parents[1] / "release").read_text(encoding="utf-8", errors="replace")
    return ""


def main(arguments: Sequence[str]) -> int:
    """Bring the jars into the folder that is the only argument, and the archive; return the exit code.

    That no archive could be made is told, and is no failure.
    """
    if len(arguments) != 1:
        print("usage: python -m tidemill.run.archiving FOLDER", file=sys.stderr)
        return ConfigError.exit_code
    folder = Path(arguments[0])
    try:
        print(f"{len(fetch_jars(folder))} jars in {folder}")
    except TidemillError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    try:
        make_archive(folder)
    except TidemillError as error:
        print(error, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
