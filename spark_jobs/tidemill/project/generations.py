"""Generations of a pipeline: each has state, ledger and records put aside of its own; one of them is published.

The first lies in the pipeline's folder, the others below it. Objects called after a number say which one is published:
the highest counts. So that does not depend on a ledger, which may be what was lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tidemill.project.names import Names
from tidemill.stores.interface import Store

_PUBLISHED = ".published"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generations:
    """Where the generations of a lake's pipelines lie.

    `chosen` names the generation of some pipelines; of others it is the one that was published when it was first asked
    for, so that a run never works on two. The pipeline that is `building` publishes into its own folder.
    """

    lake: str
    store: Store
    chosen: dict[str, int] = field(default_factory=dict)
    names: dict[str, Names] = field(default_factory=dict, repr=False)
    building: str | None = None

    def pipelines(self) -> list[str]:
        """What all pipelines that have begun are called now, whether they are still declared or not."""
        names = self.known_names()
        return sorted(names.current(key) for key in self.store.list("pipelines"))

    def only(self, pipeline: str, number: int, *, built: bool) -> Generations:
        """The same lake with a pipeline in this generation; while it is `built`, it publishes aside."""
        return replace(self, chosen={pipeline: number}, building=pipeline if built else None)

    def known_names(self) -> Names:
        """Which pipelines were renamed, as it was when it was first asked for."""
        return self.names.get("") or self.names.setdefault("", Names.read(self.store))

    def current(self, pipeline: str) -> int:
        """The published generation; 1 unless another one took over."""
        names = self.store.list(f"{self._root(pipeline)}/generations")
        numbers = (name.removesuffix(_PUBLISHED) for name in names if name.endswith(_PUBLISHED))
        return max((int(number) for number in numbers), default=1)

    def of(self, pipeline: str) -> int:
        """The generation of a pipeline that is meant here."""
        return self.chosen.get(pipeline) or self.chosen.setdefault(pipeline, self.current(pipeline))

    def folder(self, pipeline: str) -> str:
        """Where the tables of a pipeline lie that belong to it alone."""
        return f"{self.lake}/{self.inside(pipeline)}"

    def inside(self, pipeline: str) -> str:
        """The same, as the store of the lake calls it."""
        number, root = self.of(pipeline), self._root(pipeline)
        return root if number == 1 else f"{root}/generations/{number}"

    def published(self, table: str) -> str:
        """Where a published table lies."""
        if self.building is not None:
            return f"{self.folder(self.building)}/published/{table}"
        return f"{self.lake}/published/{table}"

    def publish(self, pipeline: str, number: int) -> None:
        """Make this the published generation, once its tables are."""
        self.store.put_if_absent(f"{self._root(pipeline)}/generations/{number}{_PUBLISHED}", b"")

    def outdated(self, pipeline: str) -> list[str]:
        """What is left of generations before the published one, and of what was published aside while it was built.

        Those of a generation that is being built are not among them. Names in the store of the lake.
        """
        root, current = self._root(pipeline), self.current(pipeline)
        if current == 1:
            return []
        built = (name for name in self.store.list(f"{root}/generations") if name.isdecimal())
        older = [f"{root}/generations/{name}" for name in built if int(name) < current]
        first = [f"{root}/{name}" for name in self.store.list(root) if name != "generations"]
        aside = f"{root}/generations/{current}/published"
        return sorted([*older, *first, *([aside] if self.store.list(aside) else [])])

    def remove(self, name: str) -> None:
        """Remove one of those."""
        self.store.delete_folder(name)

    def _root(self, pipeline: str) -> str:
        return f"pipelines/{self.known_names().key(pipeline)}"
