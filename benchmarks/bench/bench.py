"""Measures a batch of Tidemill against Structured Streaming and against the bare Spark job; `--help` lists options."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # The folder of a script stands first on the path, and this file would hide the package it is part of.
    sys.path[:1] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "tests")]
    from bench.suite import main

    sys.exit(main())
