"""Kills real processes at random moments and proves what is left, seed by seed; `--help` lists options."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # The folder of a script stands first on the path, and this file would hide the package it is part of.
    sys.path[:1] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "tests")]
    sys.path.append(str(Path(__file__).parents[2] / "infra" / "local"))
    from chaos.suite import main

    sys.exit(main())
