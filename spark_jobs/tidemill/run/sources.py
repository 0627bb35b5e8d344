"""What a batch reads from: the log, what it put aside, and the watermarks of pipelines that send what it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tidemill.core.errors import ConfigError
from tidemill.core.time.watermarks import BEGINNING

if TYPE_CHECKING:
    from tidemill.log.interface import Log
    from tidemill.log.side_tables import SideTables
    from tidemill.project.project import Project

Upstream = Callable[[str], int]
"""Gives the watermark of a pipeline, by its name."""


def no_upstream(name: str) -> int:
    """For whoever plans without a project: no pipeline is known.

    Raises:
        ConfigError: always.
    """
    raise ConfigError(f"watermark_of: there is no pipeline {name}")


@dataclass(frozen=True, slots=True)
class Sources:
    """The log, the pipeline's rejected and late records, and the watermarks of other pipelines."""

    log: Log
    side_tables: SideTables
    upstream: Upstream = no_upstream


def upstream_of(project: Project) -> Upstream:
    """The watermarks of the pipelines of a project's lake."""
    return partial(_watermark, project)


def _watermark(project: Project, name: str) -> int:
    """The watermark of the last commit; what this batch and those before it sent was sent before the commit.

    It is that of the table that stays behind furthest, where some do. BEGINNING of a pipeline that has not run yet.

    Raises:
        ConfigError: neither the lake nor the project has such a pipeline.
    """
    ledger = project.ledger(name)
    if ledger.exists:
        position = ledger.view().position
        return min([position.watermark, *(position.lagging or {}).values()])
    if project.declares(name):
        return BEGINNING
    raise ConfigError(
        f"watermark_of={name!r}: neither the lake nor the project has such a pipeline",
        fix="name the pipeline that sends the records; its declaration may be in another project on the same lake",
    )
