"""Who may import whom, and what an import may cost."""

from __future__ import annotations

import ast
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "spark_jobs" / "tidemill" / "core"
# For each contract, an import that breaks it.
VIOLATIONS = {
    "layers": ("tidemill/core/log/offsets.py", "import tidemill.cli"),
    "rooms-of-core": ("tidemill/core/time/times.py", "import tidemill.core.plan.plan"),
    "rooms-of-engine": ("tidemill/engine/read/blocks.py", "import tidemill.engine.attempt"),
    "parts": ("tidemill/ledger/__init__.py", "import tidemill.log.interface"),
    "core": ("tidemill/core/errors.py", "def f():\n    import pyarrow"),
    "scheduler": ("tidemill/engine/__init__.py", "import tidemill_airflow"),
    "plugin": ("tidemill_airflow/__init__.py", "import tidemill.engine.spark.jars"),
    "rooms-of-the-plugin": ("tidemill_airflow/naming.py", "import tidemill_airflow.factory"),
    "audit": ("tidemill/contracts/__init__.py", "import great_expectations"),
}
PARSER = "sqlglot"
SLOW = ("pyspark", "great_expectations", "pandas")


def _lint(project: Path) -> subprocess.CompletedProcess[str]:
    folders = [str(project / "spark_jobs"), str(project / "plugins")]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(folders), "COLUMNS": "300"}
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"]
    return subprocess.run(command, cwd=project, env=environ, capture_output=True, text=True, check=False)


def _contracts() -> dict[str, str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return {contract["id"]: contract["name"] for contract in settings["contracts"]}


def test_layers_hold():
    done = _lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_layer_contract_is_broken_by_an_import_that_it_forbids(tmp_path):
    assert _contracts().keys() == VIOLATIONS.keys()
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for package, folder in (("tidemill", "spark_jobs"), ("tidemill_airflow", "plugins")):
        shutil.copytree(ROOT / folder / package, tmp_path / folder / package)
    for name, line in VIOLATIONS.values():
        file = next(tmp_path.glob(f"*/{name}"))
        file.write_text(f"{file.read_text()}\n{line}\n")
    done = _lint(tmp_path)
    assert done.returncode != 0
    for name in _contracts().values():
        assert re.search(rf"^{re.escape(name)} BROKEN", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.parametrize("path", sorted(CORE.rglob("*.py")), ids=lambda path: path.stem)
def test_core_imports_only_itself_the_standard_library_and_a_parser(path):
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import():
                imported = [name.name for name in node.names]
            case ast.ImportFrom():
                assert node.level == 0, "core is imported by its full name"
                imported = [node.module]
            case _:
                continue
        for module in imported:
            inside = module == "tidemill.core" or module.startswith("tidemill.core.")
            assert inside or module.partition(".")[0] in {*sys.stdlib_module_names, PARSER}, module


def _loaded_by(modules: list[str]) -> list[str]:
    script = f"import {', '.join(modules)}, sys; print(*sorted(sys.modules.keys() & {set(SLOW)!r}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.split()


def _all_modules(*packages: str) -> list[str]:
    walked = [
        found.name
        for package in packages
        for found in pkgutil.walk_packages(import_module(package).__path__, f"{package}.")
    ]
    return [*packages, *walked]


def test_light_modules_load_nothing_slow():
    light = [
        "tidemill",
        "tidemill.log.interface",
        "tidemill.testing.fixtures",
        "tidemill_airflow",
        *_all_modules("tidemill.core", "tidemill.ledger"),
    ]
    assert len(light) > 10
    assert _loaded_by(light) == []


def test_jars_are_found_without_loading_spark():
    assert _loaded_by(["tidemill.engine.spark.jars"]) == []


def test_look_for_slow_modules_sees_one():
    assert _loaded_by(["pandas"]) == ["pandas"]
