"""What the documents say is so: the first pipeline works as it stands, tables and names agree with the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from support.commands import type_command
from support.projects import ROOT
from support.readme import JARS, README, commands, page, typed
from tidemill.cli.exit_codes import MEANINGS
from tidemill.core.protocol import transitions as protocol
from tidemill.project.project import Project

RECORDS = sorted((ROOT / "docs" / "adr").glob("*.md"))
NAMES = ("README.md", "CONTRIBUTING.md", "infra/airflow/README.md", "infra/local/README.md")
PAGES = sorted((ROOT / "docs").rglob("*.md"))
DOCUMENTS = [*(ROOT / name for name in NAMES), *PAGES]
LONGEST_README = 200


def test_contracts_of_the_first_pipeline_have_no_findings(shop: Path) -> None:
    said = type_command(shop, "contract", "lint")
    assert (said.code, said.out) == (0, "2 contracts, no errors, 0 warnings\n")


def test_first_pipeline_fits_its_contracts(shop: Path) -> None:
    flow = Project.load(shop).pipeline("sales")
    assert [i.topic for i in flow.inputs] == ["orders"]
    assert [s.table for s in flow.sinks] == ["sales_by_minute"]


def test_first_project_uses_the_jars_that_the_shell_names(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMILL_JARS", JARS)
    assert Project.load(shop).settings.jars == JARS


def test_commands_before_the_first_batch_work_as_they_stand(shop: Path) -> None:
    words = commands()
    before = words[: next(i for i, c in enumerate(words) if c.startswith("tidemill run "))]
    assert len(before) == 4
    done = typed("\n".join(before), shop)
    assert done.returncode == 0, done.stderr
    assert "2 records: orders-" in done.stdout
    assert "sales: batch 1 would read 2 records" in done.stdout


def test_commands_of_the_first_pipeline_have_the_options_that_are_shown(shop: Path) -> None:
    words = [re.sub(r".*\| *|#.*", "", command).split() for command in commands()]
    assert [each[0] for each in words] == ["tidemill"] * 7
    assert [type_command(shop, *each[1:], "--help").code for each in words] == [0] * 7


@pytest.mark.parametrize("text", [README, page("tutorial")], ids=["README", "tutorial"])
def test_line_that_reads_the_published_rows_prints_them(tmp_path: Path, text: str) -> None:
    table = pa.table({"shop": ["north"], "cents": [500]})
    write_deltalake(tmp_path / "lake" / "published" / "sales_by_minute", table)
    [line] = re.findall(r"`(python -c .+?)` prints them", text)
    done = typed(line, tmp_path)
    assert (done.returncode, "north" in done.stdout) == (0, True), done.stderr


def test_exit_codes_are_those_of_the_command_line() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", page("reference/commands"), re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == MEANINGS


def test_protocol_is_the_one_that_the_code_has() -> None:
    lines = re.findall(r"^\d\. .+$", protocol.__doc__ or "", re.MULTILINE)
    assert len(lines) == 9
    assert "\n".join(lines) in page("concepts/how-it-works")


@pytest.mark.parametrize("text", [page("house"), RECORDS[5].read_text(encoding="utf-8")], ids=["house", "adr"])
def test_every_layer_is_named(text: str) -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [layer for c in contracts if "layers" in c for layer in c["layers"] if layer != "errors"]
    names = re.findall(r"\w+", " ".join(layers))
    assert {"tables", "protocol", "publish"} <= set(names)
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


PLACES = (ROOT, ROOT / "spark_jobs" / "tidemill")


def there(name: str) -> Path | None:
    return next((place / name for place in PLACES if (place / name).exists()), None)


def test_every_path_that_the_house_names_is_there() -> None:
    named = re.findall(r"`([\w.-]+/[\w/.-]*)`", page("house"))
    assert len(named) > 100
    assert [name for name in named if there(name) is None] == []


def test_what_the_house_says_is_in_a_file_is_in_it() -> None:
    found = re.findall(r"((?:`\w+`(?:, | and )?)+)(?:, over which[^`]*)? in `([\w/.-]+\.py)`", page("house"))
    names = [(name, file) for listed, file in found for name in re.findall(r"`(\w+)`", listed)]
    assert len(names) > 15
    assert [n for n in names if not re.search(rf"\b{n[0]}\b", (there(n[1]) or ROOT / n[1]).read_text())] == []


def test_readme_is_a_front_door() -> None:
    assert README.count("\n") <= LONGEST_README


def test_decisions_are_numbered_and_have_one_form() -> None:
    assert [int(path.name[:4]) for path in RECORDS] == list(range(1, len(RECORDS) + 1))
    for number, path in enumerate(RECORDS, start=1):
        title, *paragraphs = path.read_text(encoding="utf-8").split("\n\n")
        assert title.startswith(f"# {number}. ")
        heads = [head[1] for p in paragraphs if (head := re.match(r"\*\*(.+?)\*\*", p))]
        wanted = ["Status", "Context.", "Decision.", "Consequences.", "A change violates this when"]
        assert heads == wanted, path.name
