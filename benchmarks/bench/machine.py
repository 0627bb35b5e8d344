"""What the figures were measured on and with."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2
"""How many tasks or threads everyone may run at once."""

PACKAGES = (
    "tidemill",
    "pyspark",
    "delta-spark",
    "deltalake",
    "duckdb",
    "great-expectations",
    "msgspec",
    "polars",
    "pyarrow",
    "pandas",
    "numpy",
)


def machine() -> dict[str, str | int | float]:
    """The processor, memory and system of this machine."""
    pages, page_size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "memory_gb": round(pages * page_size / 2**30, 1),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def load() -> float:
    """How many processes wanted a core over the last minute; above the cores, others were at work too."""
    return round(os.getloadavg()[0], 2)


def cpu_seconds(pid: int | None = None) -> float | None:
    """Processor time of a process, this one by default, and all below it; None without /proc.

    Java and Python workers are included. Unlike a clock it does not count the time during which others had the
    processor.
    """
    spent = _processes()
    # Fields 14 to 17 of proc(5): own time and that of children that have ended, user and system.
    family = (spent[each] for each in below(pid or os.getpid()) if each in spent)
    ticks = sum(sum(map(int, fields[11:15])) for fields in family)
    return ticks / os.sysconf("SC_CLK_TCK") if spent else None


def below(pid: int) -> list[int]:
    """A process and all that it and its children have started, as far as they still run."""
    children: dict[int, list[int]] = {}
    for other, fields in _processes().items():
        children.setdefault(int(fields[1]), []).append(other)
    family = [pid]
    for member in family:
        family += children.get(member, [])
    return family


def _processes() -> dict[int, list[str]]:
    """What `stat` of proc(5) says of each process, from its third field on."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            found[int(stat.parent.name)] = stat.read_text().rpartition(")")[2].split()
    return found


def versions(spark: SparkSession) -> dict[str, str]:
    """What was measured: packages, Python and Java."""
    java = spark.sql("SELECT java_method('java.lang.System', 'getProperty', 'java.version')").first()
    found = {name: version(name) for name in PACKAGES}
    return {**found, "python": platform.python_version(), "java": str(java[0]) if java else "unknown"}


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
