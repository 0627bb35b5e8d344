"""Reads and checks `tidemill.toml`."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from tidemill.core.errors import ConfigError, DeclarationError
from tidemill.core.identity.semantics import check_pinned
from tidemill.core.time.times import duration

FILE = "tidemill.toml"
LANDING = "kafka-connect"
"""The layout of files that Kafka Connect's S3 sink writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings in `tidemill.toml`. Paths are absolute.

    `driver_rows` is the most rows that a batch may carry through the driver (five times as many for light state);
    beyond it, Spark writes. `writer` forces "delta-rs" or "spark"; None chooses by size. `batch_records` is the most
    that one batch reads, `partition_records` the most that it reads from one topic-partition. `remote` is the address
    of a Spark Connect server, `master` that of a cluster; both are empty for a session on this machine. `keep` is how
    far back one can go after maintenance, `state` how long windows that are closed for good can be repaired from state.
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
    writer: str | None = None
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
    "spark": {"remote": str, "master": str, "cores": int, "conf": dict, "jars": str, "writer": str},
    "limits": {"batch_records": int, "partition_records": int, "driver_rows": int},
    "maintenance": {"keep": str, "state": str},
}


def _get(data: Mapping[str, Any], section: str, key: str, default: Any) -> Any:
    return data.get(section, {}).get(key, default)


def _place(path: Path, data: Mapping[str, Any], section: str, key: str, default: str) -> str:
    named = _get(data, section, key, default)
    if "\0" in named:
        raise ConfigError(f"{path}: [{section}] {key}: a path cannot hold the character U+0000, found {named!r}")
    if "://" in named and not (section in ("lake", "log") and _BUCKET.match(named)):
        raise ConfigError(f"{path}: [{section}] {key}: expected a folder or s3://BUCKET/FOLDER, found {named}")
    if section == "lake" and _ESCAPED.search(named if "://" in named else str((path.parent / named).resolve())):
        raise ConfigError(
            f"{path}: [lake] path: {(path.parent / named).resolve()} has a % before two digits, which tables read as "
            "one character",
            fix="move the lake to a folder without %, or name another one",
        )
    return named.rstrip("/") if is_remote(named) else str((path.parent / named).resolve())


def is_remote(place: str) -> bool:
    """Whether a lake or a log is in S3."""
    return place.startswith("s3://")


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: lists or tables are nested too deeply", fix="write it flatter") from None


def read_settings(root: Path) -> Settings:
    """Read the settings of the project in this folder.

    Raises:
        ConfigError: something in its `tidemill.toml` is wrong or unknown.
    """
    path = root / FILE
    data = _toml(path)
    for section, values in data.items():
        _check_section(path, section, values)

    get, place = partial(_get, data), partial(_place, path, data)
    _check_apart(path, place("lake", "path", "lake"), place("log", "path", "log"))
    return Settings(
        lake=place("lake", "path", "lake"),
        log=place("log", "path", "log"),
        pipelines=place("project", "pipelines", "pipelines"),
        contracts=place("project", "contracts", "data_contracts"),
        jars=os.environ.get("TIDEMILL_JARS") or place("spark", "jars", ".tidemill/jars"),
        remote=_remote(path, get("spark", "remote", "")),
        master=_master(path, data.get("spark", {})),
        cores=_number(path, "[spark] cores", get("spark", "cores", None), _MOST_CORES),
        writer=_writer(path, get("spark", "writer", "auto")),
        spark_conf=_spark_conf(path, get("spark", "conf", {})),
        batch_records=_number(path, "[limits] batch_records", get("limits", "batch_records", 1_000_000)),
        partition_records=_number(path, "[limits] partition_records", get("limits", "partition_records", None)),
        driver_rows=_number(path, "[limits] driver_rows", get("limits", "driver_rows", 500_000)),
        keep=_length(path, "[maintenance] keep", get("maintenance", "keep", "7 days")),
        state=_length(path, "[maintenance] state", get("maintenance", "state", "30 days")),
        load_timeout=_length(path, "[project] load_timeout", get("project", "load_timeout", "25 seconds"), least=1),
        **_log(root, path, data.get("log", {})),
        s3=data.get("s3", {}),
        kinesis=data.get("kinesis", {}),
    )


def _check_apart(path: Path, lake: str, log: str) -> None:
    """Refuse a lake inside the log and a log inside the lake: both create folders with any name."""
    if f"{lake}/".startswith(f"{log}/") or f"{log}/".startswith(f"{lake}/"):
        raise ConfigError(
            f"{path}: the lake and the log lie in each other: {lake} and {log}",
            fix="give [lake] path and [log] path folders beside each other",
        )


def _log(root: Path, path: Path, log: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that say what kind of log it is."""
    return {"kafka": _kafka(root, path, log), "layout": _layout(path, log), "gaps": log.get("gaps", False)}


def _kafka(root: Path, path: Path, log: Mapping[str, str]) -> Mapping[str, str] | None:
    """How to reach Kafka, without secrets; None if the log is a folder."""
    settings = {name: value for name, value in log.items() if name not in ("path", "layout", "gaps")}
    if not settings:
        return None
    if "kafka" not in settings or len(settings) < len(log):
        raise ConfigError(
            f"{path}: [log] is a folder, `path`, or a cluster of Kafka, `kafka`, with security and credentials",
            fix='for example kafka = "broker-1:9092,broker-2:9092"',
        )
    if not all(broker.strip() for broker in settings["kafka"].split(",")):
        raise ConfigError(f"{path}: [log] kafka: expected HOST:PORT,..., found {settings['kafka']!r}")
    if "ca" in settings:
        settings["ca"] = str((root / settings["ca"]).resolve())
    return settings


def _layout(path: Path, log: Mapping[str, Any]) -> str:
    layout: str = log.get("layout", "")
    if layout not in ("", LANDING):
        raise ConfigError(
            f'{path}: [log] layout: expected "{LANDING}", found "{layout}"', fix="leave it out for a log of ours"
        )
    if "gaps" in log and not layout:
        raise ConfigError(f"{path}: [log] gaps: only files of others, which have a `layout`, may have some")
    return layout


def _check_section(path: Path, section: str, values: object) -> None:
    known = _SECTIONS.get(section)
    if known is None:
        what = f"{path}: there is no section [{section}]; known: {', '.join(_SECTIONS)}"
        raise ConfigError(what, fix=_near(section, _SECTIONS))
    if not isinstance(values, dict):
        fix = f"write [{section}] on a line of its own, and `{next(iter(known))} = ...` below it"
        raise ConfigError(f"{path}: `{section}` is a section, found {values!r}", fix=fix)
    for key, value in values.items():
        if key not in known:
            raise ConfigError(f"{path}: [{section}] has no `{key}`; known: {', '.join(known)}", fix=_near(key, known))
        if type(value) is not known[key]:
            raise ConfigError(f"{path}: [{section}] {key}: expected {known[key].__name__}, found {value!r}")


def _near(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean `{close[0]}`?" if close else ""


def _number(path: Path, key: str, value: int | None, most: int = _MOST_RECORDS) -> Any:
    if value is not None and not 1 <= value <= most:
        raise ConfigError(f"{path}: {key}: expected 1 to {most:,}, found {value}")
    return value


def _spark_conf(path: Path, conf: Mapping[str, Any]) -> Mapping[str, str]:
    for name, value in conf.items():
        if isinstance(value, (dict, list)):
            raise ConfigError(
                f"{path}: [spark.conf] {name}: expected text or a number, found {value!r}",
                fix="write the name of a setting of Spark in quotes",
            )
    found = {name: str(value) for name, value in conf.items()}
    check_pinned(found, f"{path}: [spark.conf]")
    return found


def _length(path: Path, key: str, text: str, *, least: int = 0) -> timedelta:
    """Parse a duration of at least `least` seconds."""
    try:
        found = duration(text)
    except DeclarationError as error:
        raise ConfigError(f"{path}: {key}: {error.message}", fix=error.fix) from None
    if found < timedelta(seconds=least):
        raise ConfigError(f"{path}: {key}: expected at least {least} s, found {text}")
    return found


def _master(path: Path, spark: Mapping[str, Any]) -> str:
    master: str = spark.get("master", "")
    if master and "remote" in spark:
        raise ConfigError(
            f"{path}: [spark] has a Connect server, `remote`, and a cluster, `master`: one of them is used"
        )
    if master.startswith("local"):
        raise ConfigError(f"{path}: [spark] master: expected a cluster, found {master}", fix="say `cores` instead")
    return master


def _remote(path: Path, remote: str) -> str:
    if remote and not remote.startswith("sc://"):
        raise ConfigError(f"{path}: [spark] remote: expected sc://HOST:PORT, found {remote!r}")
    if "token=" in remote:
        raise ConfigError(
            f"{path}: [spark] remote has a token, which does not belong in a file",
            fix="leave it out, and export SPARK_CONNECT_AUTHENTICATE_TOKEN where batches run",
        )
    return remote


def _writer(path: Path, value: str) -> str | None:
    if value not in ("auto", "delta-rs", "spark"):
        raise ConfigError(f'{path}: [spark] writer: expected "auto", "delta-rs" or "spark", found {value!r}')
    return None if value == "auto" else value
