"""The names of a lake's pipelines. A renamed pipeline keeps the folder, tables and transactions of its first name.

    <lake>/names/<number>       one object for each rename: old and new name, who, when and why

So a rename writes one object, completely or not at all. Nothing moves, and an open batch can continue.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from tidemill.core.declare.names import checked_name
from tidemill.core.errors import ConfigError, DeclarationError
from tidemill.core.plan.amendments import Reason
from tidemill.core.protocol.failpoints import boundary
from tidemill.stores.interface import Store

_FOLDER = "names"


@dataclass(frozen=True, slots=True)
class Names:
    """The names at one moment: `first` maps names in use to first names, `renamed` maps old names to newer ones."""

    first: Mapping[str, str]
    renamed: Mapping[str, str]
    count: int

    @staticmethod
    def read(store: Store) -> Names:
        """Read the present names of a lake.

        Raises:
            ConfigError: an object is not one that `rename` writes.
        """
        first: dict[str, str] = {}
        renamed: dict[str, str] = {}
        objects = sorted(name for name in store.list(_FOLDER) if name.isdecimal())
        for old, new in (_rename_in(store, f"{_FOLDER}/{name}") for name in objects):
            first[new] = first.pop(old, old)
            renamed[old] = new
            renamed.pop(new, None)
        return Names(first, renamed, len(objects))

    def key(self, name: str) -> str:
        """The first name of the pipeline that has or had this name."""
        while name in self.renamed:
            name = self.renamed[name]
        return self.first.get(name, name)

    def current(self, key: str) -> str:
        """The present name of the pipeline with this first name."""
        return next((name for name, first in self.first.items() if first == key), key)

    def check(self, name: str) -> None:
        """Raise a ConfigError if the pipeline with this name was renamed."""
        if name in self.renamed:
            new = self.renamed[name]
            raise ConfigError(
                f"pipeline {name} was renamed to {new}, and the name stays taken",
                fix=f"declare it as {new}, or choose another name; back: `tidemill rename {new} {name}`",
            )


def _rename_in(store: Store, path: str) -> tuple[str, str]:
    try:
        said = json.loads(store.read(path))
        return checked_name(said["old"], "a pipeline"), checked_name(said["new"], "a pipeline")
    except (ValueError, TypeError, LookupError, DeclarationError) as error:
        raise ConfigError(
            f"{path} in the lake does not say what a pipeline was renamed to: {error}",
            fix="bring it back as it was: `tidemill rename` wrote it",
        ) from None


def rename(store: Store, old: str, new: str, reason: Reason, *, at: datetime) -> None:
    """Rename the pipeline `old` to `new`.

    Raises:
        ConfigError: there is no such pipeline, or the name is taken.
        DeclarationError: one of the names is not valid for a pipeline.
    """
    checked_name(old, "a pipeline")
    names = Names.read(store)
    names.check(old)
    key = names.key(old)
    if checked_name(new, "a pipeline") == old:
        raise ConfigError(f"pipeline {old} is called so already")
    if not store.list(f"pipelines/{key}"):
        raise ConfigError(
            f"the lake has no pipeline {old}: it has never run", fix="declare it under the new name, that is enough"
        )
    if new in names.first or (new in names.renamed and names.key(new) != key):
        raise ConfigError(f"the name {new} is taken by another pipeline of the lake", fix="choose another one")
    if new != key and store.list(f"pipelines/{new}"):
        raise ConfigError(
            f"the lake has a pipeline {new} with a ledger of its own: two cannot become one",
            fix=f"choose another name; if {new} was begun by mistake, remove pipelines/{new} from the lake first",
        )
    said = {"old": old, "new": new, "by": reason.by, "why": reason.why, "at": at.isoformat()}
    with boundary("renamed", 0):
        renamed = store.put_if_absent(f"{_FOLDER}/{names.count + 1:08}", json.dumps(said).encode())
    if not renamed:
        raise ConfigError("somebody else renamed a pipeline at this moment; nothing was renamed now", fix="try again")
