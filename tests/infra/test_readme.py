"""What the documents say is so: the first pipeline works as it stands, tables and names agree with the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from support.commands import type_command
from tidemill.cli.exit_codes import MEANINGS
from tidemill.core import protocol
from tidemill.project import Project

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RECORDS = sorted((ROOT / "docs" / "adr").glob("*.md"))
DOCUMENTS = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "infra/airflow/README.md")), *RECORDS]
SET_UP = "make setup && . .tidemill/env.sh"
FILES = re.compile(r"`(tidemill\.toml|data_contracts/\S+\.yaml|pipelines/\S+\.py)`")


def _section(title: str) -> str:
    return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", README, re.MULTILINE | re.DOTALL)[1]


def _blocks(*languages: str) -> list[str]:
    """The blocks of the first pipeline that are marked with one of these languages, in order."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", _section("Your first pipeline"), re.MULTILINE | re.DOTALL)
    return [text for language, text in found if language in languages]


def _commands() -> list[str]:
    """What is typed once the files are there, a command each."""
    return _blocks("")[1].replace("\\\n", " ").splitlines()


def _type(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Type into a shell in which set-up put `tidemill` on PATH."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("TIDEMILL_")}
    environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environ['PATH']}"
    command = ["bash", "-euo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project of the README, made as it says in a folder that stands for the checkout."""
    monkeypatch.delenv("TIDEMILL_JARS", raising=False)
    set_up, make_folders = _blocks("")[0].split("\n", 1)
    assert set_up.partition("#")[0].strip() == SET_UP
    assert _type(make_folders, tmp_path).returncode == 0
    names = dict.fromkeys(FILES.findall(_section("Your first pipeline")))
    for name, text in zip(names, _blocks("toml", "yaml", "python"), strict=True):
        (tmp_path / "shop" / name).write_text(text, encoding="utf-8")
    return tmp_path / "shop"


def test_contracts_of_the_first_pipeline_have_no_findings(shop: Path) -> None:
    said = type_command(shop, "contract", "lint")
    assert (said.code, said.out) == (0, "2 contracts, no errors, 0 warnings\n")


def test_first_pipeline_fits_its_contracts(shop: Path) -> None:
    flow = Project.load(shop).pipeline("sales")
    assert [i.topic for i in flow.inputs] == ["orders"]
    assert [s.table for s in flow.sinks] == ["sales_by_minute"]


def test_first_project_uses_the_jars_of_the_checkout_around_it(shop: Path) -> None:
    assert Project.load(shop).settings.jars == str(shop.parent / ".tidemill" / "jars")


def test_commands_before_the_first_batch_work_as_they_stand(shop: Path) -> None:
    commands = _commands()
    before = commands[: next(i for i, c in enumerate(commands) if c.startswith("tidemill run "))]
    assert len(before) == 4
    done = _type("\n".join(before), shop)
    assert done.returncode == 0, done.stderr
    assert "2 records: orders-" in done.stdout
    assert "sales: batch 1 would read 2 records" in done.stdout


def test_commands_of_the_first_pipeline_have_the_options_that_are_shown(shop: Path) -> None:
    typed = [re.sub(r".*\| *|#.*", "", command).split() for command in _commands()]
    assert [words[0] for words in typed] == ["tidemill"] * 7
    assert [type_command(shop, *words[1:], "--help").code for words in typed] == [0] * 7


def test_exit_codes_are_those_of_the_command_line() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", _section("Command line"), re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == MEANINGS


def test_protocol_is_the_one_that_the_code_has() -> None:
    lines = re.findall(r"^\d\. .+$", protocol.__doc__ or "", re.MULTILINE)
    assert len(lines) == 9
    assert "\n".join(lines) in _section("How it works")


@pytest.mark.parametrize("text", [_section("The house"), RECORDS[5].read_text(encoding="utf-8")], ids=["house", "adr"])
def test_every_layer_is_named(text: str) -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c["id"] == "layers")
    names = re.findall(r"\w+", " ".join(layers))
    assert "tables" in names
    assert [name for name in names if f"`{name}`" not in text] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_and_files_that_a_document_names_are_there(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in links if not (document.parent / link).exists()] == []
    places = (ROOT, ROOT / "spark_jobs" / "tidemill", ROOT / "infra" / "airflow", ROOT / "dags", document.parent)
    named = re.findall(r"`([\w/.]+\.py)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))
    own = {"pipelines/sales.py", *(Path(link).name for link in links)}
    assert [n for n in named if n not in own and not any((place / n).exists() for place in places)] == []


def test_decisions_are_numbered_and_have_one_form() -> None:
    assert [int(path.name[:4]) for path in RECORDS] == list(range(1, len(RECORDS) + 1))
    for number, path in enumerate(RECORDS, start=1):
        title, *paragraphs = path.read_text(encoding="utf-8").split("\n\n")
        assert title.startswith(f"# {number}. ")
        heads = [head[1] for p in paragraphs if (head := re.match(r"\*\*(.+?)\*\*", p))]
        wanted = ["Status", "Context.", "Decision.", "Consequences.", "A change violates this when"]
        assert heads == wanted, path.name
