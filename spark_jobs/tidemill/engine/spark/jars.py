"""The jars that Spark needs besides its own: locked by checksum, fetched once, then used offline."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory

from tidemill.core.errors import ConfigError, EngineError


@dataclass(frozen=True, slots=True, kw_only=True)
class Jar:
    """One jar: its Maven coordinates, and the SHA-256 of its bytes in lower-case hexadecimal."""

    group: str
    name: str
    version: str
    sha256: str

    @property
    def coordinates(self) -> str:
        """`group:name:version`, as Ivy and Maven write it."""
        return f"{self.group}:{self.name}:{self.version}"

    @property
    def file_name(self) -> str:
        """The name of its file, in a Maven repository and in a folder of jars."""
        return f"{self.name}-{self.version}.jar"


Resolver = Callable[[Sequence[Jar], Path], None]
"""A function that fetches jars, without their dependencies, to any place below an empty folder."""


def locked_jars(*, kafka: bool = False, s3: bool = False) -> tuple[Jar, ...]:
    """The jars that this version of Tidemill needs, in the order of `jars.lock`; if asked, also Kafka's and S3's."""
    names = ("jars.lock", *(["kafka.lock"] if kafka else ()), *(["s3.lock"] if s3 else ()))
    files = (resources.files("tidemill.engine.spark").joinpath(name) for name in names)
    return tuple(jar for file in files for jar in read_lock(file.read_text(encoding="utf-8")))


def read_lock(text: str) -> tuple[Jar, ...]:
    """The jars of a lock file, one per line: `group:name:version sha256:CHECKSUM`."""
    return tuple(_parse(line) for line in text.splitlines() if line and not line.startswith("#"))


_SHOWN = 3
"""How many missing jars a text names."""


def jar_folder(project: Path, environ: Mapping[str, str]) -> Path:
    """Where a project's jars are: the folder named by TIDEMILL_JARS, else `.tidemill/jars` in the project."""
    named = environ.get("TIDEMILL_JARS")
    return Path(named) if named else project / ".tidemill" / "jars"


def jar_paths(folder: Path, jars: Sequence[Jar] | None = None) -> tuple[str, ...]:
    """The absolute paths of `jars` in `folder`; joined by commas, they fit `spark.jars`. Default: all of `jars.lock`.

    It only checks that the files exist: their bytes were checked when they were fetched.

    Raises:
        ConfigError: some are missing; the text names them and the command that fetches them.
    """
    jars = locked_jars() if jars is None else jars
    absent = [jar.file_name for jar in jars if not (folder / jar.file_name).is_file()]
    if absent:
        more = f" and {len(absent) - _SHOWN} more" if len(absent) > _SHOWN else ""
        raise ConfigError(
            f"{folder}: {len(absent)} of the {len(jars)} jars that Spark needs are missing: "
            f"{', '.join(absent[:_SHOWN])}{more}",
            fix="type `tidemill jars fetch`; or set the environment variable TIDEMILL_JARS to a folder that has them: "
            "in a checkout of Tidemill, that is .tidemill/jars after `make setup`",
        )
    return tuple(str((folder / jar.file_name).resolve()) for jar in jars)


def fetch_jars(folder: Path, *, jars: Sequence[Jar] | None = None, resolve: Resolver | None = None) -> tuple[str, ...]:
    """Fetch `jars` into `folder` and return their paths as `jar_paths` does. Default: all jars, with Kafka's and S3's.

    Jars with the right bytes are left alone; if all have them, nothing is started and no network is needed. A jar
    appears under its name only when it is complete and its checksum is right. `resolve` is called at most twice; by
    default it is Spark's own resolver, which needs a process without a Spark session.

    Raises:
        EngineError: a jar could not be fetched, or has another checksum.
    """
    jars = locked_jars(kafka=True, s3=True) if jars is None else jars
    # Ivy needs an absolute path.
    folder = folder.absolute()
    missing = [jar for jar in jars if not _is_whole(folder / jar.file_name, jar)]
    if missing:
        folder.mkdir(parents=True, exist_ok=True)
        # Beside the target, so that a rename from there is atomic.
        with TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
            _resolve_with_retry(resolve or resolve_with_spark, missing, Path(scratch))
            for jar in missing:
                _install(jar, Path(scratch), folder)
    return jar_paths(folder, jars)


def resolve_with_spark(jars: Sequence[Jar], scratch: Path) -> None:
    """Fetch `jars` to `scratch` with Spark's Ivy, from the repositories that Spark is configured for."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").appName("tidemill-jars")
    spark = builder.config("spark.ui.enabled", "false").config("spark.jars.ivy", str(scratch / "ivy")).getOrCreate()
    try:
        for jar in jars:
            spark.sql(f"ADD JAR ivy://{jar.coordinates}?transitive=false")
    finally:
        spark.stop()


def _parse(line: str) -> Jar:
    coordinates, _, checksum = line.partition(" sha256:")
    group, name, version = coordinates.split(":")
    return Jar(group=group, name=name, version=version, sha256=checksum.strip())


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_whole(path: Path, jar: Jar) -> bool:
    return path.is_file() and _checksum(path) == jar.sha256


def _resolve_with_retry(resolve: Resolver, jars: Sequence[Jar], scratch: Path) -> None:
    last: Exception | None = None
    for attempt in ("first", "second"):
        try:
            resolve(jars, scratch / attempt)
            return
        # A resolver may fail in Java, in py4j or in Python: the user needs the same message each time.
        except Exception as error:
            last = error
    raise EngineError(
        f"could not fetch {', '.join(jar.coordinates for jar in jars)}: {last}",
        fix="check that this machine reaches a Maven repository and has Java 17 or newer, then try again",
    ) from last


def _install(jar: Jar, scratch: Path, folder: Path) -> None:
    # Ivy puts the group before the name, and another jar's name may end with this jar's name.
    names = (jar.file_name, f"{jar.group}_{jar.file_name}")
    found = next((p for p in sorted(scratch.rglob(f"*{jar.file_name}")) if p.name in names and p.is_file()), None)
    if found is None:
        raise EngineError(
            f"the resolver did not bring {jar.coordinates}",
            fix=f"put {jar.file_name} into {folder} by hand, then try again",
        )
    checksum = _checksum(found)
    if checksum != jar.sha256:
        raise EngineError(
            f"{jar.coordinates}: expected SHA-256 {jar.sha256}, found {checksum}",
            fix="the repository serves other bytes than were locked: find out why before you trust them",
        )
    partial = scratch / f"{jar.file_name}.whole"
    shutil.copyfile(found, partial)
    partial.replace(folder / jar.file_name)
