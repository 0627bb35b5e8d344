"""The warm path: batches start without importing anything.

LocalExecutor forks a task process from its worker, and the worker from the scheduler. So every task has the modules
that the scheduler has imported. A batch needs pandas, PyArrow, Spark Connect, delta-rs, Great Expectations, a parser of
SQL and Tidemill itself; importing them takes about five seconds of CPU, every minute, for every pipeline. If the
scheduler imports them once, a batch of 100,000 records takes 1.8 s from queued to finished instead of 7.0 s.

Only the scheduler imports them: the DAG processor must parse in milliseconds, the API server and the triggerer run no
batches, and a Celery worker or a Kubernetes pod is not a child of the scheduler. The scheduler then takes about 300 MB
more memory, which its workers share. A new version of a package counts when the scheduler starts again.

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


def is_scheduler(argv: Sequence[str]) -> bool:
    """Whether these are the arguments of `airflow scheduler`."""
    return list(argv[1:2]) == ["scheduler"]


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
            missing.append(name)
            logging.getLogger(__name__).warning("not warm: %s cannot be imported: %s", name, error)
    return tuple(missing)


def _inside(package: str) -> Iterator[str]:
    found = importlib.util.find_spec(package)
    for module in pkgutil.walk_packages(found.submodule_search_locations if found else (), f"{package}."):
        yield module.name


def warm_scheduler(argv: Sequence[str] | None = None) -> tuple[str, ...]:
    """Import the modules if this process is the scheduler. `airflow_local_settings.py` calls it."""
    return warm() if is_scheduler(sys.argv if argv is None else argv) else ()
