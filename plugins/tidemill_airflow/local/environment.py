"""The environment of a local Airflow's processes: every setting that it needs, and nothing of another Airflow's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import tidemill
from tidemill.core.errors import ConfigError
from tidemill_airflow.local.home import USER, Home

_DRIVERS = {
    "sqlite": ("aiosqlite",),
    "postgresql": ("psycopg2", "asyncpg"),
    "postgresql+psycopg2": ("psycopg2", "asyncpg"),
    "postgresql+psycopg": ("psycopg", "asyncpg"),
}
"""Databases that a local Airflow can use, and the packages that reach them."""

_SETTINGS = {
    "CORE__EXECUTOR": "LocalExecutor",
    # Airflow starts all its workers at once: 32, its default, take 6 GB.
    "CORE__PARALLELISM": "4",
    "CORE__LOAD_EXAMPLES": "False",
    "CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
    "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
    "API__HOST": "127.0.0.1",
    "API__WORKERS": "1",
    "DAG_PROCESSOR__PARSING_PROCESSES": "1",
    # A task is queued 0.25 s after its time, not 1 s.
    "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.25",
    # What a scheduler that was killed left is taken up after half a minute, not after five.
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
    "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    "SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "15",
    "USAGE_DATA_COLLECTION__ENABLED": "False",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalAirflow:
    """An Airflow in `home` with the DAG files of `dags`. `settings` go before those that every local Airflow has."""

    home: Home
    dags: Path
    port: int
    database: str = field(default="", repr=False)
    settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.database:
            check_database(self.database)

    @property
    def address(self) -> str:
        """The address of its pages."""
        return f"http://127.0.0.1:{self.port}"

    def environ(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment of its processes, made of `base`: by default of this process's environment.

        Settings of another Airflow are left out; connections and variables stay.
        """
        found = {k: v for k, v in (os.environ if base is None else base).items() if _is_kept(k)}
        # Its processes write to one file: on a busy machine they wait longer than the 5 seconds of the default.
        database = _with_driver(self.database) or f"sqlite:///{self.home.folder}/airflow.db?timeout=60"
        known = self.home.secrets()
        settings = {
            **_SETTINGS,
            "CORE__DAGS_FOLDER": str(self.dags),
            "CORE__PLUGINS_FOLDER": str(_plugins(self.home)),
            "CORE__FERNET_KEY": known.fernet,
            "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self.home.passwords),
            "CORE__EXECUTION_API_SERVER_URL": f"{self.address}/execution/",
            "API__PORT": str(self.port),
            "API__BASE_URL": self.address,
            "API__SECRET_KEY": known.jwt,
            "API_AUTH__JWT_SECRET": known.jwt,
            "DATABASE__SQL_ALCHEMY_CONN": database,
            **self.settings,
        }
        return {
            **found,
            **{f"AIRFLOW__{name}": value for name, value in settings.items()},
            "AIRFLOW_HOME": str(self.home.folder),
            "PYTHONPATH": os.pathsep.join([*_sources(), *filter(None, [found.get("PYTHONPATH")])]),
        }


def check_database(url: str) -> None:
    """Refuse a database that Airflow cannot use, or whose client is not installed.

    Raises:
        ConfigError: it is such a database. The text does not repeat the address, which may hold a password.
    """
    scheme = url.partition("://")[0]
    drivers = _DRIVERS.get(scheme)
    if drivers is None or "://" not in url:
        raise ConfigError(
            "--database: expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE, found an address that begins with "
            f"{scheme[:30]!r}",
            fix="give such an address, or leave it out: the default is a file of SQLite in the home",
        )
    missing = [name for name in drivers if find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"--database: {scheme} needs the packages {', '.join(missing)}",
            fix="pip install 'apache-airflow-providers-postgres[asyncpg]'",
        )


def _with_driver(url: str) -> str:
    """The address with the driver that `check_database` has looked for: SQLAlchemy 2.1 would take another."""
    plain = "postgresql://"
    return f"postgresql+psycopg2://{url.removeprefix(plain)}" if url.startswith(plain) else url


def _is_kept(name: str) -> bool:
    theirs = name.startswith(("AIRFLOW", "_AIRFLOW"))
    return not theirs or name.startswith(("AIRFLOW_CONN_", "AIRFLOW_VAR_"))


def _sources() -> list[str]:
    """Where this process has Tidemill from: a task must not find another version."""
    folders = (Path(tidemill.__file__).parents[1], Path(__file__).parents[2])
    return list(dict.fromkeys(str(folder) for folder in folders))


def _plugins(home: Home) -> Path:
    """The folder of plugins: that of a checkout, whose file registers Tidemill where it is not installed."""
    checkout = Path(__file__).parents[2]
    return checkout if (checkout / "tidemill_plugin.py").is_file() else home.folder / "plugins"
