"""What commands load: those that need no Spark start without it."""

from __future__ import annotations

import subprocess
import sys

import pytest

SLOW = {"pyspark", "great_expectations", "py4j"}
PROBE = f"""
import sys
from tidemill.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as ended:
    print(f"code {{ended.code}}", *sorted(sys.modules.keys() & {SLOW!r}), file=sys.stderr)
"""


def loaded(*words: str) -> str:
    done = subprocess.run([sys.executable, "-c", PROBE, *words], capture_output=True, text=True, check=True)
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["status"],
        ["status", "sums"],
        ["history", "sums"],
        ["plan", "sums", "--dry-run"],
        ["explain", "sums"],
        ["contract", "lint"],
        ["log", "ls"],
        ["doctor", "--no-spark"],
        ["demo", "--help"],
    ],
    ids=" ".join,
)
def test_command_loads_nothing_slow(mill, words):
    mill.feed([b"{}"])
    said = loaded("--project", str(mill.project.folder), *words)
    assert said.split()[:2] == ["code", "0"]
    assert said.split()[2:] == []


def test_help_loads_neither_arrow_nor_delta():
    script = "import tidemill.cli.main, sys; print(*sys.modules.keys() & {'pyarrow', 'deltalake', 'numpy', 'polars'})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_probe_sees_what_a_batch_loads(mill):
    said = loaded("--project", str(mill.project.folder), "run", "sums").split()
    assert said[:2] == ["code", "7"]
    assert "pyspark" in said
