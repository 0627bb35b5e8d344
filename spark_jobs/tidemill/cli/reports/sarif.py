"""Findings as SARIF 2.1.0, which code scanning of GitHub, Azure DevOps and editors read."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tidemill.cli.reports.remark import Remark, inside
from tidemill.contracts.findings import Level

_LEVELS = {Level.ERROR: "error", Level.WARNING: "warning", Level.INFORMATION: "note"}
_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(suite: str, remarks: Sequence[Remark]) -> str:
    """One run with all findings, under the name of the command: code scanning keeps one report of each name."""
    from importlib.metadata import version

    rules = sorted({remark.rule for remark in remarks})
    driver = {"name": "tidemill", "version": version("tidemill"), "rules": [{"id": rule} for rule in rules]}
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"tidemill {suite}/"},
        "results": [_result(remark, rules) for remark in remarks],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _result(remark: Remark, rules: Sequence[str]) -> dict[str, Any]:
    return {
        "ruleId": remark.rule,
        "ruleIndex": rules.index(remark.rule),
        "level": _LEVELS[remark.level],
        "message": {"text": remark.text},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": _artifact(inside(remark.file)),
                    "region": {"startLine": max(remark.line, 1)},
                }
            }
        ],
    }


def _artifact(file: str) -> dict[str, str]:
    """Where a file is: inside the checkout, or anywhere on the machine."""
    if Path(file).is_absolute():
        return {"uri": Path(file).as_uri()}
    return {"uri": quote(os.fsencode(file)), "uriBaseId": "%SRCROOT%"}
