"""What commands load: those that need no Spark start without it."""

from __future__ import annotations

import subprocess
import sys

SLOW = {"pyspark", "great_expectations", "py4j"}
COMMANDS = (
    "--help",
    "status",
    "status sums",
    "history sums",
    "plan sums --dry-run",
    "contract lint",
    "log ls",
    "doctor --no-spark",
    "demo --help",
)
PROBE = f"""
import sys
from tidemill.cli.main import main
project, *commands = sys.argv[1:]
for command in commands:
    try:
        main(["--project", project, *command.split()])
    except SystemExit as ended:
        print("probe:", command, ended.code, *sorted(sys.modules.keys() & {SLOW!r}), file=sys.stderr)
"""


def loaded(mill, *commands: str) -> list[str]:
    """Of commands that one process executes: each, its code, and what is slow and loaded by then."""
    words = [sys.executable, "-c", PROBE, str(mill.project.folder), *commands]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return [line.removeprefix("probe: ") for line in done.stderr.splitlines() if line.startswith("probe: ")]


def test_commands_load_nothing_slow(mill):
    mill.feed([b"{}"])
    assert loaded(mill, *COMMANDS) == [f"{command} 0" for command in COMMANDS]


def test_explain_asks_the_engine_what_it_computes_and_starts_no_java(mill, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    [said] = loaded(mill, "explain sums")
    assert said.startswith("explain sums 0 ")
    assert "great_expectations" not in said.split()


def test_help_loads_neither_arrow_nor_delta():
    script = "import tidemill.cli.main, sys; print(*sys.modules.keys() & {'pyarrow', 'deltalake', 'numpy', 'polars'})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_probe_sees_what_a_batch_loads(mill):
    [said] = loaded(mill, "run sums")
    assert said.startswith("run sums 7 ")
    assert "pyspark" in said.split()
