"""From files of the Open Data Contract Standard to contracts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tidemill.contracts.compile import SUFFIX, compile_contract
from tidemill.contracts.findings import Findings
from tidemill.core.contract import Contract
from tidemill.core.errors import ContractError


def load_contract(path: Path | str) -> Contract:
    """The contract in one file, called as the file is without `.odcs.yaml`.

    A contract with the custom property `format` is about the records of a topic, and its rules are row rules; one
    without is about the rows of a published table, and its rules are table rules.

    Raises:
        ContractError: the file cannot be read, is not ODCS 3.1.0 or 3.2.0, or asks for something that cannot
            be run. The text names file and line of every such place.
    """
    findings = Findings(str(path))
    contract = compile_contract(Path(path), findings)
    findings.raise_errors()
    if contract is None:
        raise ContractError(f"{path}: no contract could be read")
    return contract


def load_contracts(folder: Path | str) -> Mapping[str, Contract]:
    """All contracts of a folder, not of folders in it, by name and sorted.

    Raises:
        ContractError: there is no such folder, or one of its contracts cannot be used.
    """
    return {c.name: c for c in (load_contract(path) for path in contract_files(Path(folder)))}


def contract_files(folder: Path) -> list[Path]:
    """The contract files of a folder, sorted.

    Raises:
        ContractError: there is no such folder, or a file is named almost like a contract.
    """
    if not folder.is_dir():
        raise ContractError(f"{folder}: there is no such folder of contracts", fix="create it, or give another")
    files = sorted(path for path in folder.iterdir() if path.is_file())
    for path in files:
        if path.name.lower().endswith((".odcs.yml", SUFFIX)) and not path.name.endswith(SUFFIX):
            raise ContractError(f"{path}: names of contract files end in {SUFFIX}", fix="rename the file")
    return [path for path in files if path.name.endswith(SUFFIX)]
