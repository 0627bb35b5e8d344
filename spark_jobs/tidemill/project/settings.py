"""Reads and checks `tidemill.toml`."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from tidemill.core.errors import ConfigError, DeclarationError
from tidemill.core.identity.semantics import check_pinned
from tidemill.core.time.times import duration
from tidemill.project.settings_file import SettingsFile
from tidemill.project.spark_place import spark_place

FILE = "tidemill.toml"
LANDING = "kafka-connect"
"""The layout of files that Kafka Connect's S3 sink writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings in `tidemill.toml`. Paths are absolute.

    `driver_rows` is the most rows that a batch may carry through the driver (five times as many for light state);
    beyond it, Spark writes. Batches of up to `driver_records` records are aggregated without Spark. `writer` forces
    "delta-rs" or "spark"; None chooses by size. `aggregate` is "spark" if Spark SQL is to aggregate all records; with
    "auto", DuckDB does it where it gives the same. `batch_records` is the most that one batch reads,
    `partition_records` the most that it reads from one topic-partition. `remote` is the address of a Spark Connect
    server, `master` that of a cluster; both are empty for a session on this machine. `keep` is how far back one can go
    after maintenance, `state` how long windows that are closed for good can be repaired from state.
    `kafka` says how to reach the cluster that is the log instead of `log`; it holds no secrets. `lake` and `log` are
    folders or S3 addresses, `s3://BUCKET/FOLDER`, and `s3` says how to reach that store. `layout` says that another
    program writes the log's files, and `gaps` whether offsets may be missing between them. `kinesis` is for streams
    what `s3` is for stores. `load_timeout` is how long all pipeline files together may load: by default less than the
    30 s that Airflow gives a DAG file.
    """

    lake: str
    log: str
    pipelines: str
    contracts: str
    jars: str
    remote: str = ""
    master: str = ""
    cores: int | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    batch_records: int = 1_000_000
    partition_records: int | None = None
    driver_rows: int = 500_000
    driver_records: int = 1_000_000
    writer: str | None = None
    aggregate: str = "auto"
    keep: timedelta = timedelta(days=7)
    state: timedelta = timedelta(days=30)
    load_timeout: timedelta = timedelta(seconds=25)
    kafka: Mapping[str, str] | None = None
    layout: str = ""
    gaps: bool = False
    s3: Mapping[str, str | bool] = field(default_factory=dict)
    kinesis: Mapping[str, str | bool] = field(default_factory=dict)


_BUCKET = re.compile(r"s3://[a-z0-9][a-z0-9.-]+(/.*)?\Z")
_MOST_RECORDS = 2**63 - 1
_MOST_CORES = 1_024
_ESCAPED = re.compile("%[0-9A-Fa-f]{2}")
_TYPES = {
    str: ("text", "write it in quotes"),
    bool: ("true or false", "write it without quotes"),
    int: ("a whole number", "write it without quotes"),
    dict: ("a section", "write [spark.conf] on a line of its own, and the settings below it"),
}
_SECTIONS: Mapping[str, Mapping[str, type]] = {
    "lake": {"path": str},
    "log": {
        "path": str,
        "layout": str,
        "gaps": bool,
        "kafka": str,
        "security": str,
        "mechanism": str,
        "credentials": str,
        "ca": str,
    },
    "s3": {"endpoint": str, "region": str, "path_style": bool, "credentials": str, "role": str},
    "kinesis": {"endpoint": str, "region": str, "credentials": str, "role": str},
    "project": {"pipelines": str, "contracts": str, "load_timeout": str},
    "spark": {"remote": str, "master": str, "cores": int, "conf": dict, "jars": str, "writer": str, "aggregate": str},
    "limits": {"batch_records": int, "partition_records": int, "driver_rows": int, "driver_records": int},
    "maintenance": {"keep": str, "state": str},
}


def _place(file: SettingsFile, section: str, key: str, default: str) -> str:
    named, folder, where = file.get(section, key, default), file.path.parent, file.at(section, key)
    if "\0" in named:
        raise ConfigError(
            f"{where}: [{section}] {key}: a path cannot hold the character U+0000, found {named!r}", fix="remove it"
        )
    if "://" in named and not (section in ("lake", "log") and _BUCKET.match(named)):
        raise ConfigError(
            f"{where}: [{section}] {key}: expected a folder or s3://BUCKET/FOLDER, found {named}",
            fix="only lake and log may lie in a bucket, whose name has small letters, digits, dots and hyphens",
        )
    if section == "lake" and _ESCAPED.search(named if "://" in named else str((folder / named).resolve())):
        raise ConfigError(
            f"{where}: [lake] path: {(folder / named).resolve()} has a % before two digits, which tables read as "
            "one character",
            fix="move the lake to a folder without %, or name another one",
        )
    return named.rstrip("/") if is_remote(named) else str((folder / named).resolve())


def is_remote(place: str) -> bool:
    """Whether a lake or a log is in S3."""
    return place.startswith("s3://")


def read_settings(root: Path) -> Settings:
    """Read the settings of the project in this folder.

    Raises:
        ConfigError: something in its `tidemill.toml` is wrong or unknown.
    """
    file = SettingsFile.read(root / FILE)
    for section, values in file.data.items():
        _check_section(file, section, values)

    get, place = file.get, partial(_place, file)
    number, length = partial(_number, file), partial(_length, file)
    _check_apart(file, place("lake", "path", "lake"), place("log", "path", "log"))
    return Settings(
        lake=place("lake", "path", "lake"),
        log=place("log", "path", "log"),
        pipelines=place("project", "pipelines", "pipelines"),
        contracts=place("project", "contracts", "data_contracts"),
        jars=os.environ.get("TIDEMILL_JARS") or place("spark", "jars", ".tidemill/jars"),
        **spark_place(file),
        cores=number("spark", "cores", None, _MOST_CORES),
        writer=_writer(file, get("spark", "writer", "auto")),
        aggregate=_aggregate(file, get("spark", "aggregate", "auto")),
        spark_conf=_spark_conf(file, get("spark", "conf", {})),
        batch_records=number("limits", "batch_records", 1_000_000),
        partition_records=number("limits", "partition_records", None),
        driver_rows=number("limits", "driver_rows", 500_000),
        driver_records=number("limits", "driver_records", 1_000_000, least=0),
        keep=length("maintenance", "keep", "7 days"),
        state=length("maintenance", "state", "30 days"),
        load_timeout=length("project", "load_timeout", "25 seconds", least=1),
        **_log(root, file, file.data.get("log", {})),
        s3=file.data.get("s3", {}),
        kinesis=file.data.get("kinesis", {}),
    )


def _check_apart(file: SettingsFile, lake: str, log: str) -> None:
    """Refuse a lake inside the log and a log inside the lake: both create folders with any name."""
    if f"{lake}/".startswith(f"{log}/") or f"{log}/".startswith(f"{lake}/"):
        where = file.at("lake" if "lake" in file.data else "log", "path")
        raise ConfigError(
            f"{where}: the lake and the log lie in each other: {lake} and {log}",
            fix="give [lake] path and [log] path folders beside each other",
        )


def _log(root: Path, file: SettingsFile, log: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that say what kind of log it is."""
    return {"kafka": _kafka(root, file, log), "layout": _layout(file, log), "gaps": log.get("gaps", False)}


def _kafka(root: Path, file: SettingsFile, log: Mapping[str, str]) -> Mapping[str, str] | None:
    """How to reach Kafka, without secrets; None if the log is a folder."""
    settings = {name: value for name, value in log.items() if name not in ("path", "layout", "gaps")}
    if not settings:
        return None
    if "kafka" not in settings or len(settings) < len(log):
        raise ConfigError(
            f"{file.at('log')}: [log] is a folder, `path`, or a cluster of Kafka, `kafka`, with security and "
            "credentials",
            fix='for example kafka = "broker-1:9092,broker-2:9092"',
        )
    if not all(broker.strip() for broker in settings["kafka"].split(",")):
        raise ConfigError(
            f"{file.at('log', 'kafka')}: [log] kafka: expected HOST:PORT,..., found {settings['kafka']!r}",
            fix='for example kafka = "broker-1:9092,broker-2:9092"',
        )
    if "ca" in settings:
        settings["ca"] = str((root / settings["ca"]).resolve())
    return settings


def _layout(file: SettingsFile, log: Mapping[str, Any]) -> str:
    layout: str = log.get("layout", "")
    if layout not in ("", LANDING):
        raise ConfigError(
            f'{file.at("log", "layout")}: [log] layout: expected "{LANDING}", found "{layout}"',
            fix="leave it out for a log of ours",
        )
    if "gaps" in log and not layout:
        raise ConfigError(
            f"{file.at('log', 'gaps')}: [log] gaps: only files of others, which have a `layout`, may have some",
            fix="leave it out for a log of ours",
        )
    return layout


def _check_section(file: SettingsFile, section: str, values: object) -> None:
    known = _SECTIONS.get(section)
    if known is None:
        what = f"{file.at(section)}: there is no section [{section}]; known: {', '.join(_SECTIONS)}"
        raise ConfigError(what, fix=_near(section, _SECTIONS))
    if not isinstance(values, dict):
        fix = f"write [{section}] on a line of its own, and `{next(iter(known))} = ...` below it"
        raise ConfigError(f"{file.at(section)}: `{section}` is a section, found {values!r}", fix=fix)
    for key, value in values.items():
        where = file.at(section, key)
        if key not in known:
            raise ConfigError(f"{where}: [{section}] has no `{key}`; known: {', '.join(known)}", fix=_near(key, known))
        if type(value) is not known[key]:
            what, fix = _TYPES[known[key]]
            raise ConfigError(f"{where}: [{section}] {key}: expected {what}, found {value!r}", fix=fix)


def _near(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean `{close[0]}`?" if close else "write one of these"


def _number(  # noqa: PLR0913, PLR0917  where it is, and its bounds
    file: SettingsFile, section: str, key: str, default: int | None, most: int = _MOST_RECORDS, least: int = 1
) -> Any:
    value = file.get(section, key, default)
    if value is not None and not least <= value <= most:
        what = f"{file.at(section, key)}: [{section}] {key}: expected {least} to {most:,}, found {value}"
        raise ConfigError(what, fix="write a number within these bounds")
    return value


def _spark_conf(file: SettingsFile, conf: Mapping[str, Any]) -> Mapping[str, str]:
    for name, value in conf.items():
        if isinstance(value, (dict, list)):
            raise ConfigError(
                f"{file.at('spark.conf', name)}: [spark.conf] {name}: expected text or a number, found {value!r}",
                fix="write the name of a setting of Spark in quotes",
            )
    found = {name: str(value) for name, value in conf.items()}
    for name, text in found.items():
        check_pinned({name: text}, f"{file.at('spark.conf', name)}: [spark.conf]")
    return found


def _length(file: SettingsFile, section: str, key: str, default: str, *, least: int = 0) -> timedelta:
    """Parse a duration of at least `least` seconds."""
    text, where = file.get(section, key, default), f"{file.at(section, key)}: [{section}] {key}"
    try:
        found = duration(text)
    except DeclarationError as error:
        raise ConfigError(f"{where}: {error.message}", fix=error.fix) from None
    if found < timedelta(seconds=least):
        raise ConfigError(f"{where}: expected at least {least} s, found {text}", fix=f'for example "{default}"')
    return found


def _writer(file: SettingsFile, value: str) -> str | None:
    if value not in ("auto", "delta-rs", "spark"):
        raise ConfigError(
            f'{file.at("spark", "writer")}: [spark] writer: expected "auto", "delta-rs" or "spark", found {value!r}',
            fix="leave it out: the number of rows decides",
        )
    return None if value == "auto" else value


def _aggregate(file: SettingsFile, value: str) -> str:
    if value not in ("auto", "spark"):
        raise ConfigError(
            f'{file.at("spark", "aggregate")}: [spark] aggregate: expected "auto" or "spark", found {value!r}',
            fix="leave it out: DuckDB aggregates where it gives the same as Spark SQL",
        )
    return value
