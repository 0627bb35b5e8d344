"""Findings as JUnit XML, which GitLab, Jenkins and others show as tests."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from xml.etree import ElementTree as ET

from tidemill.cli.reports.remark import Remark, inside
from tidemill.contracts.findings import Level

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(
    suite: str,
    files: Sequence[str],
    remarks: Sequence[Remark],
    failing: Collection[Level],
    passed: Sequence[Remark] = (),
) -> str:
    """One test for each finding, one for each rule that `passed`, and one for each file of which nothing is said.

    Findings of the levels `failing` are failures; others are tests that passed, with the finding as their output.
    """
    found = {remark.file for remark in (*remarks, *passed)}
    whole = [file for file in dict.fromkeys(files) if file not in found]
    failed = [remark.level in failing and not remark.spared for remark in remarks]
    counts = {"tests": str(len(remarks) + len(passed) + len(whole)), "failures": str(sum(failed)), "errors": "0"}
    root = ET.Element("testsuites")
    tests = ET.SubElement(root, "testsuite", {"name": suite, **counts})
    for file in whole:
        ET.SubElement(tests, "testcase", {"name": suite, "classname": _xml(inside(file))})
    for remark in passed:
        ET.SubElement(tests, "testcase", {"name": _named(remark), "classname": _xml(inside(remark.file))})
    for remark, fails in zip(remarks, failed, strict=True):
        _case(tests, remark, failed=fails)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _case(tests: ET.Element, remark: Remark, *, failed: bool) -> None:
    file = _xml(inside(remark.file))
    case = ET.SubElement(tests, "testcase", {"name": _named(remark), "classname": file})
    text = _xml(f"{file}:{remark.line}: {remark.text}")
    if failed:
        ET.SubElement(case, "failure", {"message": _xml(remark.message), "type": remark.level.value}).text = text
    else:
        ET.SubElement(case, "system-out").text = text


def _named(remark: Remark) -> str:
    return f"{_xml(remark.rule)} in line {remark.line}"


def _xml(text: str) -> str:
    """Text without the characters that XML cannot hold; they are written as in Python."""
    return _NOT_XML.sub(lambda found: ascii(found[0])[1:-1], text)
