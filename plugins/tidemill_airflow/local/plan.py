"""What `tidemill up` is to start, as values: which project, which parts, in which order."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tidemill
from tidemill.core.errors import ConfigError, InputError
from tidemill.project.project import Project
from tidemill.project.settings import FILE
from tidemill.project.settings_file import SettingsFile
from tidemill.project.spark_place import REMOTE
from tidemill_airflow.local.client import free_port
from tidemill_airflow.local.environment import LocalAirflow
from tidemill_airflow.local.home import Home
from tidemill_airflow.local.supervisor import Part

REFERENCE = "page_views"
"""The pipeline whose log the generator can feed."""

_AIRFLOW = {
    "api-server": 10.0,
    "dag-processor": 10.0,
    # It waits for its tasks: a batch that is cut here is continued by the next run.
    "scheduler": 25.0,
    "triggerer": 10.0,
}
_SERVES_LOGS = ("scheduler", "triggerer")
_OF_ITS_OWN_SPARK = "spark.driver.extraJavaOptions"
_MOST_PORTS = 65_535
_CHECKOUT = Path(tidemill.__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a person asks for. Without a choice, only the reference pipeline of a checkout has a generator."""

    project: str | None = None
    home: Path | None = None
    port: int = 8080
    kafka: bool = False
    connect: bool = True
    database: str = field(default="", repr=False)
    generator: bool | None = None
    rate: int = 50

    def __post_init__(self) -> None:
        if not 1 <= self.port <= _MOST_PORTS:
            raise ConfigError(f"--port: expected 1 to {_MOST_PORTS:,}, found {self.port}", fix="give another port")
        if self.rate < 1:
            raise ConfigError(f"--rate: expected at least 1 record a second, found {self.rate}", fix="give more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The parts by what they need: `servers` at once, `migration` beside them, `feeds` and `airflow` after both.

    `ports` must listen before the feeds begin, and `dags` be listed before all is ready.
    """

    project: Project
    airflow: LocalAirflow
    servers: tuple[Part, ...]
    ports: Mapping[str, int]
    migration: Part
    feeds: tuple[Part, ...]
    parts: tuple[Part, ...]
    dags: tuple[str, ...]
    remote: str


def home_of(wanted: Wanted) -> Home:
    """The home that a person means: the given one, else one in the project.

    Raises:
        ConfigError: there is no project.
    """
    if wanted.home is not None:
        return Home(wanted.home.expanduser().resolve())
    return Home(Project.load(wanted.project).folder.resolve() / ".tidemill" / "airflow")


def make_plan(wanted: Wanted, home: Home) -> Plan:
    """Plan it, and write what its parts read. Nothing is started.

    Raises:
        ConfigError: something that it needs is missing: Java's jars, a checkout for Kafka, a client of a database.
    """
    found = Project.load(wanted.project)
    fed = _is_fed(wanted, found)
    broker = free_port() if wanted.kafka else 0
    project = _over_kafka(found, home, broker) if wanted.kafka else found
    own = project.folder / "dags"
    dags = home.folder / "dags" if wanted.kafka or not own.is_dir() else own
    pages = {"TIDEMILL__PROJECTS": str(project.folder)}
    airflow = LocalAirflow(home=home, dags=dags, port=wanted.port, database=wanted.database, settings=pages)
    settings = project.settings
    spark = free_port() if wanted.connect and not (settings.remote or settings.master) else 0
    remote = f"sc://127.0.0.1:{spark}" if spark else settings.remote
    environ = {**airflow.environ(), "TIDEMILL_JARS": settings.jars, **({REMOTE: remote} if spark else {})}
    servers = [_kafka(home, broker)] if broker else []
    if spark:
        servers.append(_connect(home, project, spark))
    return Plan(
        project=project,
        airflow=airflow,
        servers=tuple(servers),
        ports={**({"kafka": broker} if broker else {}), **({"connect": spark} if spark else {})},
        migration=migration(home, environ),
        feeds=(_generator(home, project, wanted.rate, environ),) if fed else (),
        parts=airflow_parts(home, environ),
        dags=_fit(project),
        remote=remote,
    )


def airflow_parts(home: Home, environ: Mapping[str, str], *, without: tuple[str, ...] = ()) -> tuple[Part, ...]:
    """The processes of Airflow, in the order in which they are started."""
    return tuple(_airflow_part(home, words, environ) for words in _AIRFLOW if words not in without)


def migration(home: Home, environ: Mapping[str, str]) -> Part:
    """The process that makes Airflow's tables, or brings them up to date."""
    return _airflow_part(home, "db migrate", environ, name="migration")


def _airflow_part(home: Home, words: str, environ: Mapping[str, str], *, name: str = "") -> Part:
    # Logs of tasks are read from files: a server of them would only take a port.
    quiet = ["--skip-serve-logs"] if words in _SERVES_LOGS else []
    command = (sys.executable, "-m", "airflow", *words.split(), *quiet)
    return Part(
        name=name or words,
        command=command,
        said=home.said(name or words),
        environ=environ,
        grace=_AIRFLOW.get(words, 10.0),
    )


def _connect(home: Home, project: Project, port: int) -> Part:
    from tidemill.run.connect_server import ConnectOptions, connect_command

    # The project's options of Java are for a Spark that ends within seconds.
    theirs = {k: v for k, v in project.settings.spark_conf.items() if k != _OF_ITS_OWN_SPARK}
    conf = {"spark.log.level": "WARN", **theirs}
    made = connect_command(ConnectOptions(jars=Path(project.settings.jars), port=port, conf=conf))
    environ = {**os.environ, **made.environ}
    return Part(name="connect", command=made.command, said=home.said("connect"), environ=environ)


def _kafka(home: Home, port: int) -> Part:
    program = _CHECKOUT / "infra" / "local" / "broker.py"
    command = (sys.executable, str(program), "--folder", str(home.folder / "kafka"), "--port", str(port), "--become")
    return Part(name="kafka", command=command, said=home.said("kafka"), environ=dict(os.environ), grace=20.0)


def _generator(home: Home, project: Project, rate: int, environ: Mapping[str, str]) -> Part:
    command = (sys.executable, "-m", "tidemill.demo.feed", "--project", str(project.folder), "--rate", str(rate))
    return Part(name="generator", command=command, said=home.said("generator"), environ=environ, grace=5.0)


def _is_fed(wanted: Wanted, project: Project) -> bool:
    has = REFERENCE in project.pipeline_names()
    if wanted.generator and not has:
        raise ConfigError(
            f"{project.folder} has no pipeline `{REFERENCE}`, whose log the generator feeds",
            fix="leave out --generator, and append records yourself: tidemill log append",
        )
    in_checkout = project.folder.resolve() == _CHECKOUT
    return has and (in_checkout if wanted.generator is None else wanted.generator)


def _fit(project: Project) -> tuple[str, ...]:
    """The pipelines that will have DAGs."""
    fit = []
    for name in project.pipeline_names():
        try:
            project.declared(name)
        except InputError:
            continue
        fit.append(name)
    return tuple(fit)


def _over_kafka(project: Project, home: Home, port: int) -> Project:
    """The same pipelines over a broker of their own, with a lake of their own: a ledger knows one log only.

    Raises:
        ConfigError: the project has a cluster of Kafka already, or this is no checkout, which has the broker.
    """
    if project.settings.kafka is not None:
        raise ConfigError("--kafka: the project's log is Kafka already", fix="leave out --kafka")
    if not (_CHECKOUT / "infra" / "local" / "broker.py").is_file():
        raise ConfigError(
            "--kafka starts the broker of a checkout of Tidemill, and the package has none",
            fix='start a broker yourself, and name it in tidemill.toml: [log] kafka = "HOST:PORT"',
        )
    settings, folder = project.settings, home.folder / "kafka-project"
    folder.mkdir(parents=True, exist_ok=True)
    theirs = _sections(project.folder / FILE)
    sections = {
        **theirs,
        "lake": {"path": "lake"},
        "log": {"kafka": f"127.0.0.1:{port}"},
        "project": {**theirs.get("project", {}), "pipelines": settings.pipelines, "contracts": settings.contracts},
        "spark": {**theirs.get("spark", {}), "jars": settings.jars},
    }
    # Strings and numbers of JSON are such of TOML, too.
    lines = [
        f"[{section}]\n" + "".join(f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in keys.items())
        for section, keys in sections.items()
    ]
    (folder / FILE).write_text("# Written by `tidemill up --kafka`.\n" + "\n".join(lines))
    return Project.load(folder)


def _sections(path: Path) -> dict[str, dict[str, Any]]:
    """The keys of a file of settings by section; a section in a section has both names, with a dot."""
    found: dict[str, dict[str, Any]] = {}
    for name, keys in SettingsFile.read(path).data.items() if path.is_file() else ():
        found[name] = {key: value for key, value in keys.items() if not isinstance(value, Mapping)}
        found |= {f"{name}.{key}": dict(value) for key, value in keys.items() if isinstance(value, Mapping)}
    return found
