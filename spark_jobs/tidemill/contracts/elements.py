"""What service levels are about: the schema objects of a document, their columns, and what is inside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from tidemill.contracts.document import Node
from tidemill.contracts.nodes import closest

_SHOWN = 20


class Elements:
    """The parts of a document by name, gathered once however many service levels ask."""

    def __init__(self, root: Node) -> None:
        self.objects = root.items("schema")

    @cached_property
    def of_records(self) -> bool:
        """Whether there are objects, and all are about records of topics."""
        return bool(self.objects) and all(map(_is_of_records, self.objects))

    def has(self, element: str) -> bool:
        """Whether it names an object, a column, or a part inside one: `x`, `orders`, `orders.x` or `x.inner`."""
        first, *rest = element.split(".")
        return any(_leads(node, rest) for node in (*self._tables.get(first, ()), *self._columns.get(first, ())))

    def hint(self, element: str) -> str:
        """What was probably meant, or what there is."""
        both = [f"{schema.text('name')}.{each.text('name')}" for schema in self.objects for each in _parts(schema)]
        names = [*self._tables, *self._columns]
        return closest(element, [*names, *both]) or f"name one of {', '.join(names[:_SHOWN])}"

    @cached_property
    def _tables(self) -> Mapping[str, list[Node]]:
        return _by_name(self.objects)

    @cached_property
    def _columns(self) -> Mapping[str, list[Node]]:
        return _by_name(column for schema in self.objects for column in schema.items("properties"))


def _by_name(nodes: Iterable[Node]) -> Mapping[str, list[Node]]:
    found: dict[str, list[Node]] = {}
    for node in nodes:
        found.setdefault(node.text("name"), []).append(node)
    return found


def _is_of_records(schema: Node) -> bool:
    return any(node.text("property") == "format" for node in schema.items("customProperties"))


def _leads(node: Node, names: Sequence[str]) -> bool:
    """Whether these names lead to something inside of an object or property."""
    if not names:
        return True
    return any(_leads(part, names[1:]) for part in _parts(node) if part.text("name") == names[0])


def _parts(node: Node) -> tuple[Node, ...]:
    """The properties of an object, or of the objects in an array."""
    while (items := node.child("items")) is not None:
        node = items
    return node.items("properties")
