"""Libraries that are shipped with the pages are what their lock says, with their licences."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

import tidemill_airflow.pages

STATIC = Path(tidemill_airflow.pages.__file__).parent / "static"
LOCK = json.loads((STATIC / "vendor" / "vendor.lock").read_text())


@pytest.mark.parametrize("library", sorted(LOCK))
def test_a_library_is_what_its_lock_says(library: str) -> None:
    folder, said = STATIC / "vendor" / library, LOCK[library]
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}
    assert found == said["files"]
    assert "LICENSE" in found
    [script] = [file for file in folder.iterdir() if file.suffix == ".js"]
    assert said["version"] in script.read_text()


def test_every_library_is_in_the_lock() -> None:
    assert {folder.name for folder in (STATIC / "vendor").iterdir() if folder.is_dir()} == set(LOCK)


def test_nothing_of_our_own_names_another_host() -> None:
    own = [*STATIC.glob("*.*"), *(STATIC.parent / "templates").iterdir()]
    assert len(own) > 10
    for file in own:
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text, file
        assert "https:" not in text, file
        assert 'src="//' not in text, file
