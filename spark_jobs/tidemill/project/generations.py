"""Generations of a pipeline: each has its own state, ledger and side outputs; one of them is published.

The first generation lies in the pipeline's folder, later ones below it. Objects named by number say which generation is
published: the highest number counts. This does not depend on a ledger, because the ledger may be what was lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tidemill.project.names import Names
from tidemill.stores.interface import Store

_PUBLISHED, _DROPPED = ".published", ".dropped"


def to_do(pipeline: str) -> str:
    """What a person can do about a pipeline of the lake that no file declares."""
    return (
        f"if it has another name now: `tidemill rename {pipeline} NEW-NAME`; if its declaration was lost: bring it "
        "back; if nobody needs it, or another project on this lake declares it: leave it, its tables stay as they are"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Generations:
    """Locations of the generations of a lake's pipelines.

    `chosen` fixes the generation of some pipelines. For others it is the one that is published at the first question,
    so that a run never works on two generations. The pipeline named by `building` publishes into its own folder.
    """

    lake: str
    store: Store
    chosen: dict[str, int] = field(default_factory=dict)
    names: dict[str, Names] = field(default_factory=dict, repr=False)
    building: str | None = None

    def pipelines(self) -> list[str]:
        """The present names of all pipelines that have begun, even if they are no longer declared."""
        names = self.known_names()
        return sorted(names.current(key) for key in self.store.list("pipelines"))

    def only(self, pipeline: str, number: int, *, built: bool) -> Generations:
        """The same lake, with this generation of a pipeline. If `built`, the generation publishes to hidden tables."""
        return replace(self, chosen={pipeline: number}, building=pipeline if built else None)

    def known_names(self) -> Names:
        """Which pipelines were renamed; read once."""
        return self.names.get("") or self.names.setdefault("", Names.read(self.store))

    def current(self, pipeline: str) -> int:
        """The number of the published generation; 1 if no other was published."""
        names = self.store.list(f"{self._root(pipeline)}/generations")
        numbers = (name.removesuffix(_PUBLISHED) for name in names if name.endswith(_PUBLISHED))
        return max((int(number) for number in numbers), default=1)

    def of(self, pipeline: str) -> int:
        """The generation of a pipeline that this object works on."""
        return self.chosen.get(pipeline) or self.chosen.setdefault(pipeline, self.current(pipeline))

    def folder(self, pipeline: str) -> str:
        """The folder of the tables that belong to this pipeline alone."""
        return f"{self.lake}/{self.inside(pipeline)}"

    def inside(self, pipeline: str) -> str:
        """The same folder as `folder`, relative to the root of the lake's store."""
        number, root = self.of(pipeline), self._root(pipeline)
        return root if number == 1 else f"{root}/generations/{number}"

    def published(self, table: str) -> str:
        """The location of a published table."""
        if self.building is not None:
            return f"{self.folder(self.building)}/published/{table}"
        return f"{self.lake}/published/{table}"

    def publish(self, pipeline: str, number: int) -> None:
        """Publish this generation. Its tables must be complete."""
        self.store.put_if_absent(f"{self._root(pipeline)}/generations/{number}{_PUBLISHED}", b"")

    def begun(self, pipeline: str) -> list[int]:
        """The numbers of the generations after the published one that were begun and not dropped, ascending."""
        names, current = set(self.store.list(f"{self._root(pipeline)}/generations")), self.current(pipeline)
        built = (int(name) for name in names if name.isdecimal() and f"{name}{_DROPPED}" not in names)
        return sorted(number for number in built if number > current)

    def is_dropped(self, pipeline: str, number: int) -> bool:
        """Whether somebody dropped this generation before it was published. Its number is not used again."""
        return f"{number}{_DROPPED}" in self.store.list(f"{self._root(pipeline)}/generations")

    def drop(self, pipeline: str, number: int, said: bytes) -> None:
        """Drop a generation that was not published, and delete its tables. `said` tells by whom and why."""
        place = f"{self._root(pipeline)}/generations/{number}"
        self.store.put_if_absent(f"{place}{_DROPPED}", said)
        self.store.delete_folder(place)

    def outdated(self, pipeline: str) -> list[str]:
        """Folders of generations before the published one, and the hidden tables from when the published one was built.

        Returns names in the lake's store. A generation that is still being built is not included.
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
        """Delete a folder that `outdated` returned."""
        self.store.delete_folder(name)

    def _root(self, pipeline: str) -> str:
        return f"pipelines/{self.known_names().key(pipeline)}"
