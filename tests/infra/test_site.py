"""The site: it is made without a warning, what is made of the code is new, and what it says to type works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import tidemill
from support import json_output
from support.commands import type_command
from support.projects import ROOT
from support.readme import code, commands, page, typed
from tidemill.core import errors
from tidemill.core.sql.functions import AGGREGATE_FUNCTIONS, REFUSED_FUNCTIONS, ROW_FUNCTIONS
from tidemill.core.sql.reserved_words import WRITTEN_AS

DOCS = ROOT / "docs"


@pytest.mark.long
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


@pytest.fixture
def makers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import what makes pages."""
    monkeypatch.syspath_prepend(str(DOCS))
    return import_module


def test_pages_that_are_made_of_the_code_are_those_of_the_code(tmp_path: Path, makers: Any) -> None:
    makers("generated").write(tmp_path)
    made = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")}
    assert made == {
        *("decisions.md", "guides/contracts.md", "semantics-shown.md", "tutorial.md"),
        *(
            f"reference/{name}.md"
            for name in ("commands", "contract-standard", "declarations", "errors", "functions", "testing")
        ),
    }
    for name in sorted(made):
        assert (DOCS / name).read_text(encoding="utf-8") == (tmp_path / name).read_text(encoding="utf-8"), "`make docs`"


def test_pages_can_be_read_without_the_site() -> None:
    empty = re.compile(r"^```\{(?:eval-rst|include|raw)\}", re.MULTILINE)
    assert [path.name for path in DOCS.rglob("*.md") if empty.search(path.read_text(encoding="utf-8"))] == []


def test_every_error_stands_in_the_tree_below_what_it_is_a_kind_of() -> None:
    found, above = {}, ["TidemillError"]
    for line in page("reference/errors").split("```\n")[1].splitlines()[1:]:
        indent, name = len(line) - len(line.lstrip("│├└─ ")), line.lstrip("│├└─ ")
        above[indent // 4 :] = [name]
        found[name] = above[indent // 4 - 1]
    kinds = [v for v in vars(errors).values() if isinstance(v, type) and issubclass(v, errors.TidemillError)]
    assert found == {kind.__name__: kind.__base__.__name__ for kind in kinds if kind is not errors.TidemillError}


def test_declarations_tell_of_everything_that_declares() -> None:
    text = page("reference/declarations")
    assert [name for name in tidemill.__all__ if f"\n### `{name}`\n" not in text] == []
    assert '| `idle_timeout` | `str \\| timedelta \\| None` | `"5 minutes"` | a partition without records' in text
    assert "Raises [`DeclarationError`](errors.md): the table has no valid name, or no contract." in text


def test_an_argument_that_no_docstring_explains_is_refused(makers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    docstrings = makers("docstrings")
    monkeypatch.setattr(tidemill.Count, "__doc__", "How many rows.")
    with pytest.raises(docstrings.Undocumented, match=r"Count: .*expression"):
        docstrings.markdown("tidemill.Count", [])


@pytest.mark.parametrize(
    "row",
    [
        "| `--by NAME` | the user of this machine | Your name, for the ledger. |",
        "| `PIPELINE` | needed | The pipeline's name. |",
        "| `--partitioning CHOICE` | `key` | Records without a key go to all in turn. One of `key`, `round-robin`. |",
        "| `--dry-run` | off | Show what would happen, and change nothing. |",
        "| `--spark, --no-spark` | on | Start Spark and ask Airflow, too, which takes some seconds. |",
        "| `--partition INTEGER` | none | Only this partition. At least 0. |",
        "| `--log FOLDER` | the project's log | A folder of topics. "
        "Also read from the environment variable `TIDEMILL_LOG`. |",
    ],
)
def test_options_have_their_defaults_choices_and_bounds(row: str) -> None:
    assert row in page("reference/commands")


def test_functions_are_listed_as_they_are_allowed_or_refused() -> None:
    lines = [line for line in page("reference/functions").splitlines() if line.startswith("| ")]
    rows = {name: line for line in lines for name in re.findall(r"`(\w+)`", line)}
    assert rows["array_sort"].startswith("| higher-order |")
    assert rows["sum"].startswith("| aggregates |")
    assert rows["mode"].endswith("| use the aggregate HeavyHitters |")
    assert rows["uuid"].startswith("| gives another answer each time |")
    known = ROW_FUNCTIONS | AGGREGATE_FUNCTIONS | REFUSED_FUNCTIONS.keys()
    assert known - WRITTEN_AS.keys() <= rows.keys()


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


def test_what_every_command_prints_as_json_is_described() -> None:
    known = {name for shape in json_output.shapes() for name in shape.commands}
    said = re.split(r"^## ", page("reference/commands"), flags=re.MULTILINE)
    assert known == {part.split("`")[1].removeprefix("tidemill ") for part in said if "\n| `--json`" in part}


@pytest.mark.parametrize(
    ("command", "value", "faults"),
    [
        ("log trim", {"partition": 0, "from_offset": 1, "until_offset": 2}, []),
        ("log trim", {"partition": 0, "from_offset": 1}, ["`until_offset` is missing"]),
        (
            "log trim",
            {"partition": "0", "from_offset": 1, "until_offset": True},
            ["`partition` is '0'", "`until_offset` is True"],
        ),
        ("jars fetch", {"folder": "jars", "jars": ["a", 1], "new": 1}, ["`new` is not described", "`jars[]` is 1"]),
        ("log sort", {}, ["nothing describes what `log sort` prints"]),
    ],
)
def test_json_that_differs_from_its_description_is_found(command: str, value: Any, faults: list[str]) -> None:
    assert json_output.faults(command, value) == faults


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
    for script in ("\n".join(commands()), *code("tutorial", "sh")[2:]):
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
