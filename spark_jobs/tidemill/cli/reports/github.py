"""Findings as workflow commands of GitHub Actions, which become annotations in a pull request."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tidemill.cli.reports.remark import Remark, inside
from tidemill.contracts.findings import Level

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.INFORMATION: "notice"}


def github(remarks: Sequence[Remark]) -> str:
    """One command for each finding, one a line."""
    return "".join(f"{_command(remark)}\n" for remark in remarks)


def _command(remark: Remark) -> str:
    place = {"file": inside(remark.file), "line": str(remark.line), "title": remark.rule}
    values = ",".join(f"{name}={_value(text)}" for name, text in place.items())
    return f"::{_COMMANDS[remark.level]} {values}::{_escaped(remark.text)}"


def _escaped(text: str) -> str:
    """Text with the characters that end a command written as GitHub wants them."""
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], escaped)


def _value(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
