"""Our contracts are contracts of the Open Data Contract Standard, as its own model and schema see it."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from open_data_contract_standard.model import OpenDataContractStandard

from support.readme import page
from tidemill.contracts.fields import _SCALARS, _TYPES
from tidemill.contracts.lint import lint
from tidemill.contracts.load import load_contracts
from tidemill.contracts.options import _readers
from tidemill.contracts.standard import VERSIONS
from tidemill.core.contract.contract import Contract, ExtraFields, Format, Unique
from tidemill.core.contract.schema import Array, Decimal, Scalar

NAMES = ["page_views_by_minute", "requests_by_hour", "web_access"]


@pytest.fixture(scope="module")
def official() -> dict[str, Any]:
    text = (resources.files("open_data_contract_standard") / "schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


@pytest.fixture
def contracts(our_contracts: Path) -> dict[str, Contract]:
    return dict(load_contracts(our_contracts))


def text_of(folder: Path, name: str, version: str) -> str:
    text = (folder / f"{name}.odcs.yaml").read_text(encoding="utf-8")
    return text.replace("apiVersion: v3.1.0", f"apiVersion: {version}")


def test_the_contracts_of_the_project_are_these(contracts: dict[str, Contract]) -> None:
    assert list(contracts) == NAMES


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_our_contracts_fit_the_official_model(our_contracts: Path, name: str, version: str) -> None:
    model = OpenDataContractStandard.from_string(text_of(our_contracts, name, version))
    assert model.apiVersion == version
    assert model.schema_ is not None
    assert [p.name for p in model.schema_[0].properties or []]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_our_contracts_fit_the_official_schema(
    our_contracts: Path, official: dict[str, Any], name: str, version: str
) -> None:
    validator = jsonschema.Draft201909Validator(official)
    faults = validator.iter_errors(yaml.safe_load(text_of(our_contracts, name, version)))
    assert [fault.message for fault in faults] == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_our_contracts_mean_the_same_in_both_versions(
    our_contracts: Path, tmp_path: Path, contracts: dict[str, Contract], name: str, version: str
) -> None:
    (tmp_path / f"{name}.odcs.yaml").write_text(text_of(our_contracts, name, version), encoding="utf-8")
    assert load_contracts(tmp_path)[name].fingerprint == contracts[name].fingerprint


@pytest.mark.parametrize("name", NAMES)
def test_our_contracts_leave_nothing_to_remark(our_contracts: Path, name: str) -> None:
    assert lint(our_contracts / f"{name}.odcs.yaml") == []


def test_the_access_log_keeps_cut_lines_and_rejects_impossible_ones(contracts: dict[str, Contract]) -> None:
    contract = contracts["web_access"]
    assert contract.format is Format.ACCESS_LOG
    assert contract.extra_fields is ExtraFields.KEEP
    assert [f.name for f in contract.fields if f.required] == ["client", "ts", "method", "path", "status"]
    assert {f.name: f.type for f in contract.fields}["status"] is Scalar.INTEGER
    assert {r.name: r.predicate for r in contract.row_rules} == {
        "method.maxLength": "char_length(`method`) <= 32",
        "path.minLength": "char_length(`path`) >= 1",
        "path.maxLength": "char_length(`path`) <= 8192",
        "status.minimum": "`status` >= 100",
        "status.maximum": "`status` <= 599",
        "bytes.minimum": "`bytes` >= 0",
    }


@pytest.mark.parametrize(
    ("name", "key", "columns"),
    [
        (
            "page_views_by_minute",
            ("window_start", "page"),
            "window_start window_end page requests bytes visitors status_2xx status_3xx status_4xx status_5xx",
        ),
        ("requests_by_hour", ("window_start",), "window_start window_end requests"),
    ],
)
def test_published_tables_have_a_key_that_does_not_repeat(
    contracts: dict[str, Contract], name: str, key: tuple[str, ...], columns: str
) -> None:
    contract = contracts[name]
    assert contract.columns == tuple(columns.split())
    assert contract.primary_key == key
    assert [r.check for r in contract.table_rules if r.name == "primaryKey"] == [Unique(columns=key)]
    assert all(f.description for f in contract.fields)


def test_page_has_every_type_with_its_options() -> None:
    section = page("guides/contracts").partition("## Types")[2]
    lines = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| `")
    ]
    rows = [(logical.strip("`"), physical, told) for logical, physical, _, told in lines[1:]]
    shown: dict[str, set[str]] = {}
    options: set[str] = set()
    for logical, physical, told in rows:
        options = set(re.findall(r"`(\w+)`", told)) | (options if "the same" in told else set())
        names = re.findall(r"`([^`]+)`", physical)
        shown.setdefault(logical, set()).update([*names, *([""] if "none" in physical else [])])
        for name in names:
            exact = Decimal(10, 3) if name.startswith("decimal") else _SCALARS.get(logical, {}).get(name)
            assert exact is None or set(_readers(exact)) == options, (logical, name)
    shown["number"].discard("decimal(10,3)")
    assert {name: set(known) for name, known in _SCALARS.items()} == {n: shown[n] for n in _SCALARS}
    assert set(shown) == set(_TYPES)
    assert set(_readers(Array(Scalar.LONG))) == {"minItems", "maxItems", "uniqueItems"}
