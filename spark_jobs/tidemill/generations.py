"""Generations of a pipeline: each has state, ledger and records put aside of its own; one of them is published.

The first lies in the pipeline's folder, the others below it. Files called after a number say which one is published:
the highest counts. So that does not depend on a ledger, which may be what was lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Generations:
    """Where the generations of a lake's pipelines lie.

    `chosen` names the generation of some pipelines; of others it is the one that was published when it was first asked
    for, so that a run never works on two. The pipeline that is `building` publishes into its own folder.
    """

    lake: str
    chosen: dict[str, int] = field(default_factory=dict)
    building: str | None = None

    def current(self, pipeline: str) -> int:
        """The published generation; 1 unless another one took over."""
        folder = Path(self._root(pipeline)) / "generations"
        names = [path.stem for path in folder.glob("*.published")] if folder.is_dir() else []
        return max((int(name) for name in names), default=1)

    def folder(self, pipeline: str) -> str:
        """Where the tables of a pipeline lie that belong to it alone."""
        number = self.chosen.get(pipeline) or self.chosen.setdefault(pipeline, self.current(pipeline))
        return self._root(pipeline) if number == 1 else f"{self._root(pipeline)}/generations/{number}"

    def published(self, table: str) -> str:
        """Where a published table lies."""
        if self.building is not None:
            return f"{self.folder(self.building)}/published/{table}"
        return f"{self.lake}/published/{table}"

    def publish(self, pipeline: str, number: int) -> None:
        """Make this the published generation, once its tables are."""
        file = Path(self._root(pipeline)) / "generations" / f"{number}.published"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()

    def _root(self, pipeline: str) -> str:
        return f"{self.lake}/pipelines/{pipeline}"
