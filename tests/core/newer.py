"""What was added since `identity.json`: pipelines of `newer` in `newer.json`, keys of ledgers in `persisted.json`.

python tests/core/newer.py        adds what is new; an entry that is there is never written again
"""

from __future__ import annotations

import dataclasses
import json
import sys
import types
import typing
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

FIXTURE = Path(__file__).parent / "newer.json"
PERSISTED = Path(__file__).parent / "persisted.json"


def written_of_newer() -> dict[str, dict[str, Any]]:
    """For each pipeline of `newer` its operators, its hash and the shapes of its state."""
    from support.declarations import NEWER_CONTRACTS, newer
    from tidemill.core.bind.binding import bind
    from tidemill.core.bind.sinks import WindowedSink
    from tidemill.core.identity.contracts import fingerprint_of
    from tidemill.core.identity.declarations import encoded

    # Hashes hold fingerprints of keys that some tables of firings had, and that no declaration may have any more.
    contracts = {name: replace(c, fingerprint=fingerprint_of(c), primary_key=()) for name, c in NEWER_CONTRACTS.items()}
    flows = (bind(pipeline.spec, contracts) for pipeline in newer())
    return {
        flow.name: {
            "operators": {name: encoded(operator) for name, operator in flow.spec.graph.operators.items()},
            "logical_hash": flow.logical_hash,
            "shapes": {s.table: dict(s.shape) for s in flow.sinks if isinstance(s, WindowedSink)},
        }
        for flow in flows
    }


def stored_paths(kind: Any, path: str = "") -> Iterator[tuple[str, bool]]:
    """The keys of everything that is persisted of a type, and whether each is left out when it is None."""
    from tidemill.core.protocol.codec import stored_name

    if typing.get_origin(kind) in (types.UnionType, typing.Union, tuple, Mapping):
        for argument in typing.get_args(kind):
            yield from stored_paths(argument, path)
    elif hasattr(kind, "stored_form"):
        yield from stored_paths(kind.stored_form, path)
    elif dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        for field in dataclasses.fields(kind):
            key = f"{path}.{stored_name(field)}"
            yield key, field.default is None
            yield from stored_paths(hints[field.name], key)


def persisted() -> dict[str, bool]:
    """The keys of every event, and whether each is left out when it is None."""
    from tidemill.core.protocol.events import Event

    return {k: v for event in typing.get_args(Event) for k, v in stored_paths(event, event.__name__.lower())}


def known_keys() -> set[str]:
    """The keys in the fixtures."""
    held = json.loads(PERSISTED.read_text()) if PERSISTED.exists() else []
    return {*json.loads((FIXTURE.parent / "identity.json").read_text())["persisted"], *held}


def unreadable(found: Mapping[str, bool], known: Collection[str]) -> list[str]:
    """New keys that are needed in something that is stored already."""
    there = {key.rpartition(".")[0] for key in known}
    return sorted(
        k for k, optional in found.items() if k not in known and not optional and k.rpartition(".")[0] in there
    )


def main() -> None:
    """Add what is not in the fixtures."""
    found, keys = persisted(), known_keys()
    if wrong := unreadable(found, keys):
        raise SystemExit(f"older ledgers lack {', '.join(wrong)}: give them None by default")
    held = set(json.loads(PERSISTED.read_text()) if PERSISTED.exists() else [])
    PERSISTED.write_text(json.dumps(sorted({*held, *(found.keys() - keys)}), indent=1) + "\n")
    known = json.loads(FIXTURE.read_text()) if FIXTURE.exists() else {}
    FIXTURE.write_text(json.dumps({**written_of_newer(), **known}, indent=1) + "\n")


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])
    main()
