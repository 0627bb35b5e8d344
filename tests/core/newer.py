"""What is written of the pipelines of `newer`, in `newer.json`.

python tests/core/newer.py        adds what is new; an entry that is there is never written again
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

FIXTURE = Path(__file__).parent / "newer.json"


def written_of_newer() -> dict[str, dict[str, Any]]:
    """For each pipeline of `newer` its operators, its hash and the shapes of its state."""
    from support.declarations import NEWER_CONTRACTS, newer
    from tidemill.core.bind.binding import bind
    from tidemill.core.bind.flow import WindowedSink
    from tidemill.core.identity.contracts import fingerprint_of
    from tidemill.core.identity.declarations import encoded

    contracts = {name: replace(c, fingerprint=fingerprint_of(c)) for name, c in NEWER_CONTRACTS.items()}
    flows = (bind(pipeline.spec, contracts) for pipeline in newer())
    return {
        flow.name: {
            "operators": {name: encoded(operator) for name, operator in flow.spec.graph.operators.items()},
            "logical_hash": flow.logical_hash,
            "shapes": {s.table: dict(s.shape) for s in flow.sinks if isinstance(s, WindowedSink)},
        }
        for flow in flows
    }


def main() -> None:
    """Add pipelines that are not in the fixture."""
    known = json.loads(FIXTURE.read_text()) if FIXTURE.exists() else {}
    FIXTURE.write_text(json.dumps({**written_of_newer(), **known}, indent=1) + "\n")


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])
    main()
