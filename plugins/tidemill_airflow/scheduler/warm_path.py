"""The warm path: batches start without importing anything.

LocalExecutor forks a task process from its worker, and the worker from the scheduler. A Celery worker forks the
processes of its pool, and these fork tasks. So every task has the modules that the scheduler, or the worker, imported.
A batch needs pandas, PyArrow, Spark Connect, delta-rs, Great Expectations, a parser of SQL and Tidemill itself;
importing them takes about five seconds of CPU, every minute, for every pipeline. If the scheduler imports them once, a
batch of 100,000 records takes 1.8 s from queued to finished instead of 7.0 s.

Nobody else imports them: the DAG processor must parse in milliseconds, the API server and the triggerer run no batches,
and a Kubernetes pod is a child of neither. Who imports them takes about 300 MB more memory, which its children share. A
new version of a package counts when it starts again.

This module must do nothing but import. Some libraries start an idle thread for their allocator, which a fork can lose
without harm. But a Spark session, an open Delta table or a Polars query start thread pools that do not survive a fork,
and so does DuckDB as soon as it is imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from itertools import chain

MODULES = (
    "pandas",
    "pyarrow.acero",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "grpc",
    "pyspark.sql.connect.session",
    "pyspark.sql.functions",
    "deltalake",
    "great_expectations",
    "msgspec",
    "polars",
    "sqlglot.dialects.spark",
    "jsonschema",
    "open_data_contract_standard",
    "datasketches",
    "croniter",
)
OWN = tuple(
    f"tidemill.{name}"
    for name in ("core", "contracts", "engine", "ledger", "log", "project", "run", "stores", "tables")
)
"""The packages of Tidemill that a batch needs, with all that is in them."""


OPTIONAL = {"confluent_kafka"}
"""What extras of Tidemill install: without it, nothing that needs it is imported, or missed."""


def forks_tasks(argv: Sequence[str]) -> bool:
    """Whether these are the arguments of `airflow scheduler` or `airflow celery worker`."""
    return list(argv[1:2]) == ["scheduler"] or list(argv[1:3]) == ["celery", "worker"]


def warm(modules: Sequence[str] = MODULES, packages: Sequence[str] = OWN) -> tuple[str, ...]:
    """Import modules and whole packages, and return what could not be imported.

    A batch that needs it raises its own error.
    """
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    missing = []
    for name in chain(modules, *map(_inside, packages)):
        try:
            importlib.import_module(name)
        except ImportError as error:
            if error.name in OPTIONAL:
                continue
            missing.append(name)
            logging.getLogger(__name__).warning("not warm: %s cannot be imported: %s", name, error)
    return tuple(missing)


def _inside(package: str) -> Iterator[str]:
    found = importlib.util.find_spec(package)
    for module in pkgutil.walk_packages(found.submodule_search_locations if found else (), f"{package}."):
        yield module.name


def warm_scheduler(argv: Sequence[str] | None = None) -> tuple[str, ...]:
    """Import the modules if tasks are forked from this process. `airflow_local_settings.py` calls it."""
    return warm() if forks_tasks(sys.argv if argv is None else argv) else ()
