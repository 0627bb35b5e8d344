"""Pipelines that have begun and that no file declares any more: somebody removed or renamed the declaration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.core.errors import TidemillError
from tidemill.project.generations import to_do

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidemill.core.protocol.view import View
    from tidemill.project.project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class Undeclared:
    """A pipeline of the lake without a declaration. `view` is None if its ledger cannot be read."""

    name: str
    view: View | None


def undeclared_json(found: Undeclared) -> dict[str, object]:
    """The same keys as those of a declared pipeline, as far as a ledger alone has them."""
    commit = None if found.view is None else found.view.last_commit
    return {
        "pipeline": found.name,
        "declared": False,
        "batch_id": None if found.view is None else found.view.position.batch_id,
        "last_commit": None if commit is None else {"batch_id": commit.batch_id, "at": commit.at.isoformat()},
        "fix": to_do(found.name),
    }


def undeclared(project: Project) -> Iterator[Undeclared]:
    """The pipelines of the lake that the project does not declare, sorted by name."""
    for name in project.generations.pipelines():
        if not project.declares(name):
            try:
                view = project.ledger(name).view()
            except TidemillError:
                view = None
            if view is None or view.last_batch_id:
                yield Undeclared(name=name, view=view)
