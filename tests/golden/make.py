"""Writes a small project with its log and lake, as this version does, for later versions to read:

python tests/golden/make.py tests/golden/format-1.tar.gz

Three batches and a repair are committed; the next batch is planned, audited and not yet published. A file that is
there is never written again: it stands for what users have.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PATH = Path(__file__).parents[1]
ENTRIES = ("lake", "log", "pipelines", "data_contracts")


def main(target: Path) -> None:
    """Make the project, and put it into the archive."""
    from amend.conftest import an_amendment
    from tidemill.core.plan.amendments import SideOutput
    from tidemill.core.protocol import failpoints
    from tidemill.core.repair.side_outputs import Selection
    from tidemill.repair.repair import repair

    with tempfile.TemporaryDirectory() as folder, tarfile.open(target, "x:gz") as archive, tiny() as patch:
        mill = a_project(Path(folder))
        list(repair(an_amendment(mill), SideOutput.LATE, Selection()))
        patch.setenv(failpoints.VARIABLE, "before:published:sums=raise")
        with suppress(failpoints.Injected):
            mill.run()
        for name in ENTRIES:
            archive.add(Path(folder) / name, name)


def tiny() -> Any:
    """Batches run without Spark inside the block."""
    import pytest

    from machine.tiny import TinyAttempt
    from tidemill.run import batch

    @contextmanager
    def patched() -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(batch, "Attempt", TinyAttempt)
            yield patch

    return patched()


def a_project(folder: Path) -> Any:
    """Three batches with a record of every fate, and records for a fourth."""
    from support.projects import an_event, sums

    mill = sums(folder, None, partitions=2)  # type: ignore[arg-type]
    mill.feed([an_event(1), an_event(12, "b"), an_event(40)])
    mill.feed([an_event(2, "c"), an_event(35)], partition=1)
    mill.run()
    mill.feed([an_event(3, amount=10), b"{cut", an_event(45, "nobody"), an_event(52)])
    mill.feed([an_event(51)], partition=1)
    mill.run()
    mill.feed([an_event(61, "b")])
    mill.run()
    mill.feed([an_event(75, "b")])
    mill.feed([an_event(74, "c")], partition=1)
    return mill


if __name__ == "__main__":
    sys.path[0] = str(PATH)
    main(Path(sys.argv[1]))
