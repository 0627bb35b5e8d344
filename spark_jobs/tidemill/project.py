"""A user's project: a folder with `tidemill.toml`, pipelines and contracts. No Spark is needed to read it."""

from __future__ import annotations

import importlib.util
import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any
from zlib import crc32

from tidemill.contracts.load import load_contracts
from tidemill.core.columns import unknown
from tidemill.core.contract import Contract
from tidemill.core.errors import ConfigError, DeclarationError
from tidemill.core.flow import Flow, bind
from tidemill.core.operators import Publish
from tidemill.core.pipeline import Pipeline
from tidemill.core.times import duration
from tidemill.generations import Generations

if TYPE_CHECKING:
    from tidemill.ledger.ledger import Ledger
    from tidemill.log.file import FileLog

FILE = "tidemill.toml"
VARIABLE = "TIDEMILL_PROJECT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What `tidemill.toml` says. Paths are absolute.

    `driver_rows` is how many rows a batch may carry through the driver; beyond it Spark writes. `writer` forces
    "delta-rs" or "spark"; None chooses by size. `batch_records` is the most that one batch reads. `remote` is the
    address of a Spark Connect server, or empty for a session of our own. `keep` is how far back maintenance lets one
    go.
    """

    lake: str
    log: str
    pipelines: str
    contracts: str
    jars: str
    remote: str = ""
    cores: int | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    batch_records: int = 1_000_000
    driver_rows: int = 500_000
    writer: str | None = None
    keep: timedelta = timedelta(days=7)


_SECTIONS: Mapping[str, Mapping[str, type]] = {
    "lake": {"path": str},
    "log": {"path": str},
    "project": {"pipelines": str, "contracts": str},
    "spark": {"remote": str, "cores": int, "conf": dict, "jars": str, "writer": str},
    "limits": {"batch_records": int, "driver_rows": int},
    "maintenance": {"keep": str},
}


class Project:
    """Settings, contracts and pipelines of one folder."""

    def __init__(self, folder: Path, settings: Settings, generations: Generations | None = None) -> None:
        self.folder, self.settings = folder, settings
        self.generations = generations or Generations(lake=settings.lake)

    @staticmethod
    def load(folder: str | Path | None = None) -> Project:
        """The project in `folder`, or named by TIDEMILL_PROJECT, or around the working directory.

        Raises:
            ConfigError: there is no `tidemill.toml`, or something in it is wrong.
        """
        root = _find(folder)
        return Project(root, _settings(root))

    @cached_property
    def contracts(self) -> Mapping[str, Contract]:
        """The contracts by name."""
        return load_contracts(self.settings.contracts)

    def pipeline_names(self) -> tuple[str, ...]:
        """The names of all pipelines, sorted."""
        return tuple(sorted(self._declared))

    def pipeline(self, name: str) -> Flow:
        """A pipeline joined with its contracts.

        Raises:
            DeclarationError: there is no such pipeline, or it does not fit its contracts.
        """
        declared = self._declared.get(name)
        if declared is None:
            raise unknown(str(self.folder), "pipeline", name, self._declared)
        return bind(declared.spec, self.contracts)

    # What follows loads Arrow and delta-rs: a DAG is parsed without them.

    def log(self) -> FileLog:
        """The log that the pipelines read."""
        from tidemill.log.file import FileLog

        return FileLog(self.settings.log)

    def ledger(self, name: str) -> Ledger:
        """The ledger of a pipeline."""
        from tidemill.ledger.ledger import Ledger

        return Ledger(self.table_uri(name, "ledger"), name)

    def table_uri(self, pipeline: str, *parts: str) -> str:
        """Where a table lies that belongs to one pipeline alone."""
        return "/".join((self.generations.folder(pipeline), *parts))

    def published_uri(self, table: str) -> str:
        """Where a published table lies."""
        return self.generations.published(table)

    def of_generation(self, pipeline: str, number: int, *, built: bool = False) -> Project:
        """The same project with a pipeline in one of its generations; while it is `built`, it publishes aside."""
        chosen = Generations(lake=self.settings.lake, chosen={pipeline: number}, building=pipeline if built else None)
        return Project(self.folder, self.settings, chosen)

    @cached_property
    def _declared(self) -> Mapping[str, Pipeline]:
        found: dict[str, Pipeline] = {}
        owners: dict[str, str] = {}
        for path in sorted(Path(self.settings.pipelines).glob("*.py")):
            for value in vars(_module(path)).values():
                if not isinstance(value, Pipeline) or found.get(value.name) is value:
                    continue
                if found.setdefault(value.name, value) is not value:
                    raise DeclarationError(f"{path}: a second pipeline is called `{value.name}`")
                _claim_tables(path, value, owners)
        return found


def _claim_tables(path: Path, pipeline: Pipeline, owners: dict[str, str]) -> None:
    for operator in pipeline.spec.graph.operators.values():
        if isinstance(operator, Publish) and owners.setdefault(operator.table, pipeline.name) != pipeline.name:
            raise DeclarationError(
                f"{path}: `{pipeline.name}` publishes {operator.table}, which `{owners[operator.table]}` publishes",
                fix="a table has one pipeline: name another table, or unite the streams in one pipeline",
            )


def _find(folder: str | Path | None) -> Path:
    named = folder or os.environ.get(VARIABLE)
    if named:
        root = Path(named).resolve()
        if (root / FILE).is_file():
            return root
        raise ConfigError(f"{root}: there is no {FILE}", fix="name the folder of a project")
    here = Path.cwd()
    for root in (here, *here.parents):
        if (root / FILE).is_file():
            return root
    raise ConfigError(f"no {FILE} in {here} or above it", fix=f"go to a project, or set {VARIABLE} or --project")


def _settings(root: Path) -> Settings:
    path = root / FILE
    try:
        data = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None
    for section, values in data.items():
        _check_section(path, section, values)

    def get(section: str, key: str, default: Any) -> Any:
        return data.get(section, {}).get(key, default)

    def place(section: str, key: str, default: str) -> str:
        return str((root / get(section, key, default)).resolve())

    return Settings(
        lake=place("lake", "path", "lake"),
        log=place("log", "path", "log"),
        pipelines=place("project", "pipelines", "pipelines"),
        contracts=place("project", "contracts", "data_contracts"),
        jars=os.environ.get("TIDEMILL_JARS") or place("spark", "jars", ".tidemill/jars"),
        remote=get("spark", "remote", ""),
        cores=get("spark", "cores", None),
        writer=_writer(path, get("spark", "writer", "auto")),
        spark_conf={k: str(v) for k, v in get("spark", "conf", {}).items()},
        batch_records=_at_least_one(path, "batch_records", get("limits", "batch_records", 1_000_000)),
        driver_rows=_at_least_one(path, "driver_rows", get("limits", "driver_rows", 500_000)),
        keep=_length(path, get("maintenance", "keep", "7 days")),
    )


def _check_section(path: Path, section: str, values: object) -> None:
    known = _SECTIONS.get(section)
    if known is None or not isinstance(values, dict):
        raise ConfigError(f"{path}: there is no section [{section}]; known: {', '.join(_SECTIONS)}")
    for key, value in values.items():
        if key not in known:
            raise ConfigError(f"{path}: [{section}] has no `{key}`; known: {', '.join(known)}")
        if not isinstance(value, known[key]) or isinstance(value, bool):
            raise ConfigError(f"{path}: [{section}] {key}: expected {known[key].__name__}, found {value!r}")


def _at_least_one(path: Path, key: str, value: int) -> int:
    if value < 1:
        raise ConfigError(f"{path}: [limits] {key}: expected at least 1, found {value}")
    return value


def _length(path: Path, text: str) -> timedelta:
    try:
        found = duration(text)
    except DeclarationError as error:
        raise ConfigError(f"{path}: [maintenance] keep: {error.message}", fix=error.fix) from None
    if found < timedelta(0):
        raise ConfigError(f"{path}: [maintenance] keep: must not be negative, found {text}")
    return found


def _writer(path: Path, value: str) -> str | None:
    if value not in ("auto", "delta-rs", "spark"):
        raise ConfigError(f'{path}: [spark] writer: expected "auto", "delta-rs" or "spark", found {value!r}')
    return None if value == "auto" else value


class _AsWritten(SourceFileLoader):
    """Compiles the file each time: Python's cache takes a file that changed twice in a second for the old one."""

    def get_code(self, fullname: str) -> CodeType:
        """The code of the file as it is now."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _module(path: Path) -> ModuleType:
    name = f"tidemill_pipelines.{path.stem}_{crc32(str(path).encode()):08x}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_AsWritten(name, str(path)))
    if spec is None or spec.loader is None:
        raise DeclarationError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    # As for any import: data classes look their module up.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except DeclarationError as error:
        raise DeclarationError(f"{path}: {error.message}", fix=error.fix) from None
    except Exception as error:
        raise DeclarationError(f"{path}: {type(error).__name__}: {error}") from error
    return module
