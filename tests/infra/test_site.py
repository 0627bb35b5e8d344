"""The site: it is made without a warning, what is made of the code is new, and what it says to type works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from support.commands import type_command
from support.projects import ROOT
from support.readme import code, commands, page, typed

DOCS = ROOT / "docs"


def test_site_is_made_without_a_warning_or_a_dead_link(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", str(DOCS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    made = (tmp_path / "reference" / "declarations.html").read_text(encoding="utf-8")
    assert "HyperLogLog" in made
    assert (
        re.findall(r'(?:src|href)="https?://(?!bitol-io|www\.sphinx|github\.com/pradyunsg)[^"]+\.(?:js|css)"', made)
        == []
    )


def test_pages_that_are_made_of_the_code_are_those_of_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    import_module("generated").write(tmp_path)
    made = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert made.keys() == {"commands.md", "errors.md"}
    assert made == {name: (DOCS / "reference" / name).read_text(encoding="utf-8") for name in made}, "type `make docs`"


def test_settings_of_the_page_are_those_that_a_project_may_have() -> None:
    from tidemill.project.settings import _SECTIONS

    section, found = "", set()
    for line in page("reference/settings").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 4 and cells[0] not in ("section", "---"):
            section = cells[0].strip("`[]") or section
            found |= {(section, key) for key in re.findall(r"`(\w+)`", cells[1])}
    there = {(name, key) for name, keys in _SECTIONS.items() for key in keys}
    assert found == there - {("spark", "conf")}


def test_options_that_pages_show_are_there(tmp_path: Path) -> None:
    shown = {
        tuple(words[1:])
        for path in DOCS.rglob("*.md")
        for text in code(path.relative_to(DOCS).with_suffix("").as_posix(), "", "sh")
        for line in text.splitlines()
        if (words := re.sub(r".*(?:\||&&) *(?=tidemill )|#.*", "", line).split()) and words[0] == "tidemill"
    }
    assert len(shown) > 10
    for words in sorted(shown):
        name = [word for word in words if re.fullmatch(r"[a-z]+", word)][:2]
        said = next(s for n in (2, 1) if (s := type_command(tmp_path, *name[:n], "--help")).code == 0)
        assert [w for w in words if w.startswith("--") and w not in said.out] == [], words


@pytest.mark.long
@pytest.mark.spark
def test_tutorial_and_programs_work_as_they_stand(shop: Path) -> None:
    environ = {"TIDEMILL_JARS": str(ROOT / ".tidemill" / "jars")}
    (shop.parent / ".tidemill").symlink_to(ROOT / ".tidemill")
    said = ""
    for script in ("\n".join(commands()), *code("tutorial", "sh")):
        done = typed(script, shop, patience=280)
        assert done.returncode == 0, done.stdout + done.stderr
        said += done.stdout
    third_batch = r"^ +3 +3 +0 +0 +2 +1 +0 "
    assert re.search(third_batch, said, re.MULTILINE), said
    assert said.count("0 different") == 2
    program = "\n".join(code("guides/python", "python"))
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=shop.parent,
        env={**os.environ, **environ, "PYTHONPATH": str(ROOT / "spark_jobs")},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"appended to orders-\d+:\d+-\d+|appended to orders", ran.stdout), ran.stdout
    assert re.search(r"^\d+ rows$", ran.stdout, re.MULTILINE), ran.stdout
