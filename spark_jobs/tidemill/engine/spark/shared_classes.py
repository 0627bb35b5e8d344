"""Java's archive of classes. With it, a Spark on this machine starts in half the time.

Until the first batch has committed, Java finds, checks and links 20,000 classes in 300 jars. An archive keeps them in
the form that they have in memory ("class data sharing"). Java takes it only if its own version, and the jars from which
it was made, are the same; otherwise it loads its classes as if there was none. `tidemill.run.archiving` makes it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tidemill.engine.spark.jars import locked_jars

JARS, CLASS_PATH, OPTIONS = "spark.jars", "spark.driver.extraClassPath", "spark.driver.extraJavaOptions"

# Java tells on standard output why it does not take an archive: that would be in the output of a command.
_SILENT = "-Xlog:cds*=off"
_UNFIT = frozenset(':"\\')


def sharing(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings of a Spark that starts on this machine, changed so that it takes the archive beside its jars.

    Without an archive the settings are returned as they are. Options and a class path of `conf` stay: they come last,
    so that options of the same name win.
    """
    first = archived(_jars(conf))
    if not first or _UNFIT & set("".join(first)):
        return dict(conf)
    archive = archive_in(Path(first[0]).parent)
    if not archive.is_file():
        return dict(conf)
    taken = f'"-XX:SharedArchiveFile={archive}"'
    return {**_on_class_path(conf, first), OPTIONS: _joined(" ", taken, _SILENT, conf.get(OPTIONS))}


def recording(conf: Mapping[str, str], archive: Path) -> dict[str, str]:
    """The settings of a Spark that writes the classes which it has loaded into `archive` when its Java ends."""
    first = archived(_jars(conf))
    written = f'"-XX:ArchiveClassesAtExit={archive}"'
    return {**_on_class_path(conf, first), OPTIONS: _joined(" ", written, _SILENT, conf.get(OPTIONS))}


def archive_in(folder: Path) -> Path:
    """The archive of this environment's Spark in a folder of jars, which others may use, too."""
    return folder / f"classes-{hashlib.sha256(__file__.encode()).hexdigest()[:8]}.jsa"


def archived(jars: Sequence[str]) -> list[str]:
    """Those of `jars` that are on Java's class path: Delta's, which all batches need. Their order is that of the path.

    The jars of `spark.jars` are loaded by a class loader of Spark, whose classes no archive can have.
    """
    names = {jar.file_name for jar in locked_jars()}
    return [jar for jar in jars if Path(jar).name in names]


def _jars(conf: Mapping[str, str]) -> list[str]:
    return [jar for jar in conf.get(JARS, "").split(",") if jar]


def _on_class_path(conf: Mapping[str, str], first: Sequence[str]) -> dict[str, str]:
    left = ",".join(jar for jar in _jars(conf) if jar not in first)
    kept = {key: value for key, value in conf.items() if key != JARS}
    path = _joined(os.pathsep, *first, conf.get(CLASS_PATH))
    return {**kept, CLASS_PATH: path, **({JARS: left} if left else {})}


def _joined(between: str, *parts: str | None) -> str:
    return between.join(part for part in parts if part)
