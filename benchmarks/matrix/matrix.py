"""Run the matrix by hand: `make matrix`."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

if __name__ == "__main__":
    # The folder of a script stands first on the path, and this file would hide the package it is part of.
    sys.path[:1] = [str(ROOT / "benchmarks"), str(ROOT / "tests")]
    sys.path.append(str(ROOT / "infra" / "local"))
    from matrix.suite import main

    sys.exit(main())
