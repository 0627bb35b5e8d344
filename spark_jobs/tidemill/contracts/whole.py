"""A document as a whole: what its schema objects have in common is computed once, however many they are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from tidemill.contracts.document import Node
from tidemill.contracts.service_levels import all_levels, parts_of
from tidemill.core.contract.service_level import ServiceLevel


class Whole:
    """The objects of a document by name, and its service levels by what they are about.

    `is_checked` says that the findings about the document itself are noted.
    """

    def __init__(self, root: Node) -> None:
        self.root = root
        self.is_checked = False

    @cached_property
    def objects(self) -> list[Node]:
        """All schema objects."""
        return [node for node in self.root.items("schema") if isinstance(node.value, Mapping)]

    def called(self, name: str) -> list[Node]:
        """The schema objects of a name; more than one has it only by mistake."""
        return self._by_name.get(name, [])

    def levels_of(self, names: tuple[str, ...]) -> tuple[ServiceLevel, ...]:
        """The freshness and latency that are promised for an object; `names` are its name and its columns.

        A level without an element is about every object.
        """
        about = {place: level for name in ("", *names) for place, level in self._levels.get(name, ())}
        return tuple(level for _, level in sorted(about.items()))

    @cached_property
    def _by_name(self) -> Mapping[str, list[Node]]:
        found: dict[str, list[Node]] = {}
        for node in self.objects:
            found.setdefault(node.text("name"), []).append(node)
        return found

    @cached_property
    def _levels(self) -> Mapping[str, list[tuple[int, ServiceLevel]]]:
        found: dict[str, list[tuple[int, ServiceLevel]]] = {}
        for place, level in enumerate(all_levels(self.root)):
            for name in {part.partition(".")[0] for part in parts_of(level.element)} or {""}:
                found.setdefault(name, []).append((place, level))
        return found
