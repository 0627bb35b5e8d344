"""The folder of a demonstration: a project with the reference pipeline and a new log."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]

import tidemill
from tidemill.core.errors import ConfigError
from tidemill.demo.traffic import Line
from tidemill.log.append_formats.chunks import ChunkSize
from tidemill.log.append_formats.lines import Lines
from tidemill.log.file import FileLog
from tidemill.log.loading import load
from tidemill.log.producer import Producer
from tidemill.project.project import Project
from tidemill.project.settings import FILE

PIPELINE = "page_views"
TABLE = "page_views_by_minute"
TOPIC = "web.access"
PARTITIONS = 4

_MARK = "# Written by `tidemill demo`, which empties this folder each time."
_CHUNK = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the reference pipeline, its contracts and the jars are, and the Spark settings."""

    pipelines: str
    contracts: str
    jars: str
    spark_conf: Mapping[str, str] = field(default_factory=dict)


def source_of(folder: str | None) -> Source:
    """Find the project in `folder`, or around the working directory, or in the checkout of this package.

    Raises:
        ConfigError: none of them has the reference pipeline.
    """
    project = _project(folder)
    if PIPELINE not in project.pipeline_names():
        raise _missing(str(project.folder))
    settings = project.settings
    return Source(
        pipelines=settings.pipelines,
        contracts=settings.contracts,
        jars=settings.jars,
        spark_conf=settings.spark_conf,
    )


def _project(folder: str | None) -> Project:
    if folder:
        return Project.load(folder)
    try:
        return Project.load()
    except ConfigError:
        checkout = Path(tidemill.__file__).parents[2]
        if not (checkout / FILE).is_file():
            raise _missing(str(Path.cwd())) from None
        return Project.load(checkout)


def _missing(where: str) -> ConfigError:
    return ConfigError(
        f"{where} has no pipeline `{PIPELINE}`, the reference pipeline that the demo runs",
        fix="run it in a checkout of Tidemill, or name one with --project",
    )


def make_site(folder: Path, source: Source) -> Project:
    """Create an empty project in `folder`. Files of an earlier demonstration are deleted.

    Raises:
        ConfigError: the folder holds something else.
    """
    file = folder / FILE
    ours = file.is_file() and file.read_text().startswith(_MARK)
    if folder.exists() and any(folder.iterdir()) and not ours:
        raise ConfigError(f"{folder} is not empty, and no demo made it", fix="give another --folder")
    for name in ("log", "lake"):
        shutil.rmtree(folder / name, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    # A JSON string is also a TOML string.
    places = {name: json.dumps(getattr(source, name)) for name in ("pipelines", "contracts", "jars")}
    conf = "".join(f"{json.dumps(name)} = {json.dumps(value)}\n" for name, value in source.spark_conf.items())
    file.write_text(
        f'{_MARK}\n[lake]\npath = "lake"\n\n[log]\npath = "log"\n\n'
        f"[project]\npipelines = {places['pipelines']}\ncontracts = {places['contracts']}\n\n"
        f"[spark]\njars = {places['jars']}\n\n[spark.conf]\n{conf}"
    )
    return Project.load(folder)


def write_lines(project: Project, lines: Iterable[Line], *, written: Callable[[int], None]) -> int:
    """Append generated lines, keyed by client, chunk by chunk, and return how many there were.

    `written` is called after each chunk with the number of lines so far.
    """
    log = FileLog(project.settings.log)
    log.create_topic(TOPIC, PARTITIONS)
    producer, rest, count = Producer(log, TOPIC), iter(lines), 0
    while chunk := list(islice(rest, _CHUNK)):
        keys, values = [line.key for line in chunk], [line.value for line in chunk]
        producer.append(pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}))
        count += len(chunk)
        written(count)
    return count


def write_file(project: Project, path: Path) -> int:
    """Append the lines of a file unchanged and in order, and therefore to one partition.

    Raises:
        LogInputError: the file cannot be read.
    """
    log = FileLog(project.settings.log)
    log.create_topic(TOPIC, 1)
    loaded = load(Producer(log, TOPIC, producer_id=path.name), [str(path)], Lines(), ChunkSize(records=_CHUNK))
    return loaded.records
