"""Builders of contract files."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tidemill.contracts.compile import compile_contract
from tidemill.contracts.findings import Findings, Level
from tidemill.contracts.lint import Finding, lint
from tidemill.contracts.load import load_contract
from tidemill.core.contract.contract import Contract

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class ContractFile:
    """A contract file in a folder of its own; each `text` is YAML that is indented where it belongs."""

    folder: Path
    names: list[str] = field(default_factory=list)

    def write(self, text: str, name: str = "orders") -> Path:
        path = self.folder / f"{name}.odcs.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    def an_output(self, properties: str, *, quality: str = "", top: str = "", version: str = "v3.2.0") -> Path:
        return self.write(_text(properties, quality=quality, top=top, version=version, custom=""))

    def an_input(
        self,
        properties: str,
        *,
        quality: str = "",
        top: str = "",
        version: str = "v3.2.0",
        custom: str = "- {property: format, value: json}",
    ) -> Path:
        return self.write(_text(properties, quality=quality, top=top, version=version, custom=custom))


def _text(properties: str, *, quality: str, top: str, version: str, custom: str) -> str:
    parts = [
        f"apiVersion: {version}\nkind: DataContract\nid: orders\nversion: 1.0.0\nstatus: active\n",
        _dedented(top, 0),
        "schema:\n  - name: orders\n",
        _section("customProperties", custom),
        _section("quality", quality),
        _section("properties", properties),
    ]
    return "".join(parts)


def _section(key: str, text: str) -> str:
    return f"    {key}:\n{_dedented(text, 6)}" if text.strip() else ""


def _dedented(text: str, depth: int) -> str:
    return textwrap.indent(textwrap.dedent(text).strip("\n") + "\n", " " * depth) if text.strip() else ""


def line_of(path: Path, text: str) -> int:
    """The number of the only line that holds the text."""
    lines = [n for n, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1) if text in line]
    assert len(lines) == 1, f"{text!r} stands in lines {lines}"
    return lines[0]


@pytest.fixture
def file(tmp_path: Path) -> ContractFile:
    return ContractFile(tmp_path)


@pytest.fixture
def an_input(file: ContractFile) -> Callable[..., Contract]:
    return lambda properties, **more: load_contract(file.an_input(properties, **more))


@pytest.fixture
def an_output(file: ContractFile) -> Callable[..., Contract]:
    return lambda properties, **more: load_contract(file.an_output(properties, **more))


@pytest.fixture
def the_error() -> Callable[..., Finding]:
    """The only error of a contract, checked to stand in the only line that holds a text."""

    def find(path: Path, at: str, picked: str | None = None) -> Finding:
        findings = Findings(str(path))
        if picked is not None:
            compile_contract(path, findings, picked)
        errors = [f for f in (lint(path) if picked is None else findings.all) if f.severity is Level.ERROR]
        assert len(errors) == 1, "\n".join(map(str, errors))
        assert errors[0].line == line_of(path, at), errors[0]
        assert errors[0].file == str(path)
        return errors[0]

    return find


@pytest.fixture
def our_contracts() -> Path:
    return ROOT / "data_contracts"
