"""Folds the files of a pipeline, N times, beside whoever writes them: `python -m chaos.fold PROJECT PIPELINE N`."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from tidemill import upkeep
from tidemill.engine.places import Uris
from tidemill.project import Project
from tidemill.upkeep import tidy


def main(arguments: Sequence[str]) -> None:
    """Fold the files of a pipeline of a project so many times."""
    folder, pipeline, times = arguments
    project = Project.load(folder)
    flow = project.pipeline(pipeline)
    uris = Uris(pipeline=pipeline, table=project.table_uri, published=project.published_uri)
    for _ in range(int(times)):
        ledger = project.ledger(pipeline)
        commit = ledger.view().last_commit
        if commit is not None:
            tidy(flow, uris, ledger, commit, before=-upkeep.EVERY)
        time.sleep(0.2)


if __name__ == "__main__":
    main(sys.argv[1:])
