"""What `pip install .` brings."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from configparser import ConfigParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    source = tmp_path_factory.mktemp("source")
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("spark_jobs", "plugins"):
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, source)
    place = source / "dist"
    built = subprocess.run(
        [sys.executable, "-c", BUILD, place], cwd=source, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    return zipfile.ZipFile(next(place.glob("tidemill-*.whl")))


def test_wheel_holds_every_module_of_both_packages(wheel):
    folders = {"tidemill": ROOT / "spark_jobs", "tidemill_airflow": ROOT / "plugins"}
    modules = {
        path.relative_to(folder).as_posix()
        for package, folder in folders.items()
        for path in (folder / package).rglob("*.py")
    }
    assert "tidemill/core/errors.py" in modules
    assert modules - set(wheel.namelist()) == set()


def test_wheel_holds_the_data_that_the_packages_read(wheel):
    assert {"tidemill/engine/spark/jars.lock", "tidemill/py.typed"} <= set(wheel.namelist())


def test_wheel_holds_nothing_else(wheel):
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"tidemill", "tidemill_airflow"}


def test_wheel_gives_the_command_and_the_plugin(wheel):
    entries = ConfigParser(delimiters=("=",))
    entries.read_string(wheel.read(next(n for n in wheel.namelist() if n.endswith("entry_points.txt"))).decode())
    assert dict(entries["console_scripts"]) == {"tidemill": "tidemill.cli.main:main"}
    assert dict(entries["airflow.plugins"]) == {"tidemill": "tidemill_airflow.plugin:TidemillPlugin"}
