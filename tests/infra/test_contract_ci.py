"""From set-up to a red pull request: what `infra/ci` has is run as it stands, in a repository of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import xmlschema
import yaml
from jsonschema import Draft7Validator  # type: ignore[import-untyped]

from support.commands import type_command
from support.projects import ROOT
from support.readme import code
from support.short_forms import shortened
from tidemill.contracts.changes.waivers import read_waivers

CI = ROOT / "infra" / "ci"
NAMED = {"user.name": "a", "user.email": "a@b.c", "commit.gpgsign": "false", "init.defaultBranch": "main"}


def git(folder: Path, *words: str) -> str:
    settings = [part for name, value in NAMED.items() for part in ("-c", f"{name}={value}")]
    return subprocess.run(["git", *settings, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A new project in a repository, with a branch in which readers lose a column."""
    folder = tmp_path / "shop"
    assert type_command(None, "init", folder).code == 0
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "Begin")
    git(folder, "checkout", "--quiet", "-b", "drop-cents")
    contract = folder / "data_contracts" / "sales_by_minute.odcs.yaml"
    kept = re.sub(r"^ +- \{name: cents.*\n", "", contract.read_text(), flags=re.MULTILINE)
    assert kept != contract.read_text()
    contract.write_text(kept)
    return folder


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment in which `tidemill` is installed, and nothing of a system of CI is set."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "CI_", "GIT_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{own['PATH']}"
    return {**own, "PATH": path, "PRE_COMMIT_HOME": str(tmp_path / "hooks"), "HOME": str(tmp_path)}


def bash(script: str, folder: Path, environ: dict[str, str], **more: str) -> subprocess.CompletedProcess[str]:
    """As GitHub and GitLab run a step: a failing line ends it."""
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(
        command, cwd=folder, env={**environ, **more}, capture_output=True, text=True, check=False, timeout=120
    )


def steps_of_the_action(folder: Path, environ: dict[str, str], **given: str) -> subprocess.CompletedProcess[str]:
    """Run the steps of the composite action with these inputs; Tidemill is installed."""
    action = yaml.safe_load((CI / "action.yml").read_text())
    inputs = {name: about.get("default", "") for name, about in action["inputs"].items()} | given
    values = {**{f"inputs.{name}": value for name, value in inputs.items()}, "github.action_path": str(CI)}

    def filled(text: str) -> str:
        return re.sub(r"\$\{\{ *([\w.-]+) *\}\}", lambda found: values[found[1]], text)

    [install, check] = action["runs"]["steps"]
    assert install["if"] == "inputs.tidemill != ''"
    env = {name: filled(value) for name, value in check["env"].items()}
    return bash(filled(check["run"]), folder, environ, GITHUB_WORKSPACE=str(folder), **env)


def annotations(said: str) -> list[tuple[str, str, int]]:
    """Level, file and line of each annotation, as GitHub reads them."""
    found = re.findall(r"^::(error|warning|notice) file=([^,]+),line=(\d+),title=[^:]+::(?=.)", said, re.MULTILINE)
    return [(level, file, int(line)) for level, file, line in found]


def test_a_pull_request_that_takes_a_column_from_readers_is_red(shop: Path, environ: dict[str, str]) -> None:
    git(shop, "commit", "--quiet", "-am", "Drop cents")
    base = git(shop, "rev-parse", "main").strip()
    done = steps_of_the_action(shop, environ, base=base)
    assert done.returncode == 1, done.stdout + done.stderr
    file = "data_contracts/sales_by_minute.odcs.yaml"
    assert ("error", file) in {(level, name) for level, name, _ in annotations(done.stdout)}
    assert "a field is gone" in done.stdout
    assert "pipeline sales publishes table sales_by_minute: nothing committed yet" in done.stdout
    [line] = {line for level, name, line in annotations(done.stdout) if level == "error" and name == file}
    assert 1 <= line <= len((shop / file).read_text().splitlines())
    given = {"contract": "sales_by_minute", "reason": "a", "owner": "b", "until": "2999-01-01"}
    # The rules of a column go with it: one waiver is enough.
    waiver = {**given, "change": "field-removed", "field": "cents"}
    (shop / "data_contracts" / "waivers.yaml").write_text(yaml.safe_dump({"waivers": [waiver]}))
    waived = steps_of_the_action(shop, environ, base=base)
    levels = {level for level, *_ in annotations(waived.stdout)}
    assert (waived.returncode, levels) == (0, {"notice", "warning"}), waived.stdout


def test_the_action_finds_the_base_of_each_event() -> None:
    default = yaml.safe_load((CI / "action.yml").read_text())["inputs"]["base"]["default"]
    names = ["pull_request.base.sha", "merge_group.base_sha", "before"]
    assert re.findall(r"github\.event\.([\w.]+)", default) == names


def test_a_branch_without_a_base_is_linted(shop: Path, environ: dict[str, str]) -> None:
    done = steps_of_the_action(shop, environ, base="0" * 40)
    assert (done.returncode, "contracts were only linted" in done.stderr) == (0, True)


def test_a_shallow_checkout_fetches_the_base(shop: Path, environ: dict[str, str], tmp_path: Path) -> None:
    git(shop, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(shop, "commit", "--quiet", "-am", "Drop cents")
    git(tmp_path, "clone", "--quiet", "--depth=1", "--branch=drop-cents", shop.as_uri(), "shallow")
    base = git(shop, "rev-parse", "main").strip()
    done = steps_of_the_action(tmp_path / "shallow", environ, base=base)
    assert (done.returncode, "a field is gone" in done.stdout) == (1, True), done.stdout + done.stderr
    nowhere = steps_of_the_action(tmp_path / "shallow", environ, base="1" * 40)
    assert (nowhere.returncode, "git knows no such revision" in nowhere.stderr) == (1, True)


def test_tables_are_asked_where_the_lake_answers(shop: Path, environ: dict[str, str]) -> None:
    assert type_command(shop, "log", "create", "orders").code == 0
    git(shop, "checkout", "--quiet", "data_contracts")
    green = steps_of_the_action(shop, environ, base="0" * 40, tables="1")
    assert (green.returncode, "sales: nothing to do" in green.stderr) == (0, True), green.stdout + green.stderr
    orders = shop / "data_contracts" / "orders.odcs.yaml"
    orders.write_text(orders.read_text().replace("name: cents", "name: pennies"))
    red = steps_of_the_action(shop, environ, base="0" * 40, tables="1")
    assert (red.returncode, "cents" in red.stderr) == (1, True), red.stdout + red.stderr
    template = yaml.safe_load((CI / "gitlab.yml").read_text())["tidemill-contracts"]
    given = {**template["variables"], "TABLES": "1", "CI_MERGE_REQUEST_DIFF_BASE_SHA": "HEAD"}
    tables = [line for line in template["script"] if "TABLES" in line]
    job = bash("\n".join(["status=0", *tables, "exit $status"]), shop, environ, **given)
    assert job.returncode == 1, job.stdout + job.stderr


def test_a_plan_that_is_refused_is_annotated(shop: Path, environ: dict[str, str]) -> None:
    # Nobody made the topic, so no batch could be planned.
    git(shop, "checkout", "--quiet", "data_contracts")
    red = steps_of_the_action(shop, environ, base="0" * 40, tables="1")
    assert red.returncode == 1
    assert re.search(r"^::error title=plan of sales::.*no topic 'orders'.*%0A", red.stdout, re.MULTILINE), red.stdout


def test_the_workflow_of_a_new_project_is_red_where_readers_lose_a_column(shop: Path, environ: dict[str, str]) -> None:
    job = yaml.safe_load((shop / ".github" / "workflows" / "test.yml").read_text())["jobs"]["test"]
    assert job["steps"][0]["with"] == {"fetch-depth": 0}
    [step] = [step for step in job["steps"] if "contract diff" in step.get("run", "")]
    assert step["if"] == "github.event_name == 'pull_request'"
    assert step["env"] == {"BASE": "${{ github.event.pull_request.base.sha }}"}
    git(shop, "commit", "--quiet", "-am", "Drop cents")
    base = git(shop, "rev-parse", "main").strip()
    red = bash(step["run"], shop, environ, BASE=base)
    assert (red.returncode, {level for level, *_ in annotations(red.stdout)}) == (1, {"error", "warning"}), red.stdout
    git(shop, "checkout", "--quiet", "main")
    assert bash(step["run"], shop, environ, BASE=base).returncode == 0


def test_hooks_stop_the_commit(shop: Path, environ: dict[str, str], tmp_path: Path) -> None:
    hooks = tmp_path / "hooks-repository"
    hooks.mkdir()
    shutil.copy(ROOT / ".pre-commit-hooks.yaml", hooks)
    git(hooks, "init", "--quiet")
    git(hooks, "add", ".")
    git(hooks, "commit", "--quiet", "-m", "Hooks")
    shown = yaml.safe_load(code("guides/ci", "yaml")[2])
    [repo] = shown["repos"]
    repo |= {"repo": str(hooks), "rev": git(hooks, "rev-parse", "HEAD").strip()}
    repo["hooks"][1]["args"] = ["--base", "main"]
    (shop / ".pre-commit-config.yaml").write_text(yaml.safe_dump(shown))
    git(shop, "add", ".")
    done = bash("python -m pre_commit run", shop, environ)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"^tidemill contract lint\.+Passed$", done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"^tidemill contract diff\.+Failed$", done.stdout, re.MULTILINE), done.stdout
    assert "breaks: readers" in done.stdout
    git(shop, "checkout", "--quiet", "--force", "main")
    (shop / ".pre-commit-config.yaml").write_text(yaml.safe_dump(shown))
    git(shop, "add", ".")
    git(shop, "commit", "--quiet", "-m", "Hooks")
    git(shop, "checkout", "--quiet", "-b", "gone")
    git(shop, "rm", "--quiet", "data_contracts/sales_by_minute.odcs.yaml")
    done = bash("python -m pre_commit run", shop, environ)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "the contract is gone" in done.stdout


def test_the_job_of_gitlab_leaves_reports(shop: Path, environ: dict[str, str]) -> None:
    git(shop, "commit", "--quiet", "-am", "Drop cents")
    template = yaml.safe_load((CI / "gitlab.yml").read_text())
    shown = yaml.safe_load(code("guides/ci", "yaml")[1])
    assert set(shown) == {"include", "variables"}
    job = template["tidemill-contracts"]
    given = {"CI_PROJECT_DIR": str(shop), "CI_MERGE_REQUEST_DIFF_BASE_SHA": git(shop, "rev-parse", "main").strip()}
    done = bash("\n".join([*job["before_script"], *job["script"]]), shop, environ, **job["variables"], **given)
    assert done.returncode == 1, done.stdout + done.stderr
    schema = xmlschema.XMLSchema(ROOT / "tests" / "data" / "schemas" / "junit-10.xsd")
    for name in job["artifacts"]["reports"]["junit"]:
        schema.validate(shop / name)
    assert "<failure " in (shop / "contract-diff.xml").read_text()
    assert "<failure " not in (shop / "contract-lint.xml").read_text()


def test_the_job_of_gitlab_leaves_no_empty_report(shop: Path, environ: dict[str, str]) -> None:
    job = yaml.safe_load((CI / "gitlab.yml").read_text())["tidemill-contracts"]
    given = {"CI_PROJECT_DIR": str(shop), "CI_MERGE_REQUEST_DIFF_BASE_SHA": "1" * 40}
    done = bash(
        "\n".join(["set -e", *job["before_script"], *job["script"]]), shop, environ, **job["variables"], **given
    )
    assert (done.returncode, "git knows no such revision" in done.stderr) == (1, True), done.stdout + done.stderr
    assert [file.name for file in shop.glob("contract-*.xml")] == ["contract-lint.xml"]
    assert "</testsuites>" in done.stdout


def test_the_script_works_as_the_page_has_it(shop: Path, environ: dict[str, str], tmp_path: Path) -> None:
    git(shop, "commit", "--quiet", "-am", "Drop cents")
    git(shop, "remote", "add", "origin", ".")
    git(shop, "fetch", "--quiet", "origin")
    (tmp_path / "infra").symlink_to(ROOT / "infra")
    [script] = code("guides/ci", "sh")
    done = bash(script, tmp_path, environ)
    assert (done.returncode, done.stdout) == (1, ""), done.stdout + done.stderr
    reports = {file.name: ElementTree.parse(file).findall(".//failure") for file in (tmp_path / "reports").iterdir()}
    assert {name: bool(failures) for name, failures in reports.items()} == {
        "contract-lint.xml": False,
        "contract-diff.xml": True,
    }


FORMS = [("sarif", "sarif"), ("json", "jsonl"), ("text", "txt")]


@pytest.mark.parametrize(("form", "ending"), shortened(FORMS, FORMS[:1]))
def test_each_command_of_the_script_writes_a_report_of_its_own(
    shop: Path, environ: dict[str, str], form: str, ending: str
) -> None:
    reports = shop / "reports"
    given = {"BASE": "main", "FORMAT": form, "OUT": str(reports)}
    done = bash(f'"{CI}/contracts.sh"', shop, environ, **given)
    assert (done.returncode, done.stdout) == (1, ""), done.stdout + done.stderr
    assert {file.name for file in reports.iterdir()} == {f"contract-lint.{ending}", f"contract-diff.{ending}"}
    diff = (reports / f"contract-diff.{ending}").read_text()
    assert "a field is gone" in diff or "field-removed" in diff
    if form == "sarif":
        runs = [json.loads(file.read_text())["runs"] for file in reports.iterdir()]
        assert len({run["automationDetails"]["id"] for [run] in runs}) == 2
    linted = bash(f'"{CI}/contracts.sh"', shop, environ, **{**given, "BASE": ""})
    assert linted.returncode == 0, linted.stderr
    assert [file.name for file in reports.iterdir()] == [f"contract-lint.{ending}"]


@pytest.mark.parametrize("form", ["junit", "sarif"])
def test_two_documents_do_not_go_into_one_output(shop: Path, environ: dict[str, str], form: str) -> None:
    done = bash(f'"{CI}/contracts.sh"', shop, environ, BASE="main", FORMAT=form)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"FORMAT={form} needs OUT" in done.stderr


def test_a_report_that_a_command_could_not_begin_is_not_there(shop: Path, environ: dict[str, str]) -> None:
    done = bash(f'"{CI}/contracts.sh"', shop, environ, BASE="nope", FORMAT="junit", OUT="reports")
    assert (done.returncode, "git knows no such revision" in done.stderr) == (1, True), done.stderr
    assert [file.name for file in (shop / "reports").iterdir()] == ["contract-lint.xml"]


@pytest.mark.parametrize(("file", "schema"), [("action.yml", "github-actions"), ("gitlab.yml", "gitlab-ci")])
def test_files_are_what_their_systems_expect(file: str, schema: str) -> None:
    known = resources.files("check_jsonschema") / "builtin_schemas" / "vendor" / f"{schema}.json"
    Draft7Validator(json.loads(known.read_text(encoding="utf-8"))).validate(yaml.safe_load((CI / file).read_text()))


def test_the_workflow_of_the_page_names_inputs_that_the_action_has() -> None:
    workflow: dict[str, Any] = yaml.safe_load(code("guides/ci", "yaml")[0])
    [step] = [s for s in workflow["jobs"]["contracts"]["steps"] if "tidemill" in s["uses"]]
    action = yaml.safe_load((CI / "action.yml").read_text())
    assert set(step["with"]) <= set(action["inputs"])
    assert step["uses"].split("@")[0].endswith("/infra/ci")
    told = code("guides/ci", "yaml")[0] + (ROOT / "docs" / "guides" / "ci.md").read_text()
    assert [name for name in action["inputs"] if f"`{name}`" not in told] == []


def test_the_waiver_of_the_page_is_one(tmp_path: Path) -> None:
    (tmp_path / "waivers.yaml").write_text(code("guides/ci", "yaml")[3])
    [waiver], faults = read_waivers(tmp_path)
    assert (waiver.field, faults) == ("cents", [])


def test_a_script_fails_on_what_it_is_told(shop: Path, environ: dict[str, str]) -> None:
    given = {"BASE": "main", "FORMAT": "text"}
    for words, code_ in (("writers", 0), ("writers,warning", 1), ("readers, writers", 1)):
        done = bash(f'"{CI}/contracts.sh"', shop, environ, **given, FAIL_ON=words)
        assert done.returncode == code_, done.stdout + done.stderr
