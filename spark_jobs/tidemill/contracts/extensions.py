"""Tidemill's extensions of the standard: custom properties of the schema object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidemill.contracts.document import Node
from tidemill.contracts.findings import Findings
from tidemill.contracts.nodes import closest, shown
from tidemill.core.contract.contract import ExtraFields, Format

OPTIONS: Mapping[Format, tuple[str, ...]] = {
    Format.JSON: ("timestamp",),
    Format.CSV: ("delimiter", "null", "timestamp"),
    Format.ACCESS_LOG: (),
    Format.TEXT: (),
    Format.BYTES: (),
}
"""The options of each format. Their values are text that the format's decoder reads."""

TIMES = ("iso", "epoch_s", "epoch_ms", "epoch_us")
"""The values of the option `timestamp`."""

VENDOR = "tidemill"
SCOPE = "scope"
"""The custom property of a quality rule: which rows it looks at."""
_NAMED = 'put it in quotes: property: "null"'
NAMES = ("format", "extraFields", *sorted({o for options in OPTIONS.values() for o in options}))
"""The custom properties that Tidemill knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extensions:
    """The custom properties of a contract. `is_input` is True if a format is given, even an unknown one."""

    is_input: bool = False
    format: Format | None = None
    extra_fields: ExtraFields = ExtraFields.KEEP
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def keeps_extra(self) -> bool:
        """Whether rows have a column for fields that the contract does not name."""
        return self.format is Format.JSON and self.extra_fields is ExtraFields.KEEP


def extensions_of(root: Node, schema: Node, findings: Findings) -> Extensions:
    """Read the custom properties of the schema object.

    Properties of other vendors, and unknown ones, are noted as information, unless they are nearly a known one. Known
    ones in places where they have no effect are errors.
    """
    found = _by_name(schema, findings)
    for place in (root, *schema.items("properties")):
        _check_elsewhere(place, findings)
    format_ = _word(found, "format", list(Format), findings)
    extra = _word(found, "extraFields", list(ExtraFields), findings)
    if extra is not None and format_ != Format.JSON:
        findings.error(found["extraFields"].line, "extraFields belongs to the format json", fix="remove it")
    return Extensions(
        is_input="format" in found,
        format=Format(format_) if format_ else None,
        extra_fields=ExtraFields(extra or ExtraFields.KEEP),
        options=_options(found, format_, findings),
    )


def _check_elsewhere(place: Node, findings: Findings) -> None:
    """Custom properties of the contract or of a column: Tidemill has none there, and others are noted."""
    for node in place.items("customProperties"):
        name = node.text("property")
        if node.text("vendor") not in ("", VENDOR):
            continue
        if name in NAMES or name == SCOPE:
            _refuse_place(node, name, findings)
        elif name:
            findings.information(node.line, f"custom property `{name}` is not Tidemill's")


def _refuse_place(node: Node, name: str, findings: Findings) -> None:
    where = "a quality rule" if name == SCOPE else "the schema object"
    findings.error(node.line, f"custom property `{name}` has no effect here", fix=f"move it into {where}")


def _by_name(schema: Node, findings: Findings) -> dict[str, Node]:
    found: dict[str, Node] = {}
    for node in schema.items("customProperties"):
        name = node.text("property")
        if node.text("vendor") not in ("", VENDOR):
            continue
        if name in found:
            findings.error(node.line, f"custom property `{name}` stands twice, first in line {found[name].line}")
        elif name == SCOPE:
            _refuse_place(node, name, findings)
        elif not name:
            # Null without quotes is no text: the name of CSV's option, meant as one.
            findings.error(
                node.line, f"a custom property needs a name, found {shown(node.child('property'))}", fix=_NAMED
            )
        elif name not in NAMES:
            _note_foreign(node, name, findings)
        else:
            found[name] = node
    return found


def _note_foreign(node: Node, name: str, findings: Findings) -> None:
    near = closest(name, NAMES)
    if near or node.text("vendor") == VENDOR:
        findings.error(
            node.line,
            f"unknown custom property `{name}`; known: {', '.join(NAMES)}",
            fix=near or "remove it, or give it the vendor that it is for",
        )
    else:
        findings.information(node.line, f"custom property `{name}` is not Tidemill's")


def _word(found: Mapping[str, Node], name: str, known: list[str], findings: Findings) -> str | None:
    if name not in found:
        return None
    child = found[name].child("value")
    if child is not None and child.value in known:
        return str(child.value)
    findings.error(
        child.line if child else found[name].line,
        f"custom property `{name}` is {shown(child)}; supported: {', '.join(known)}",
        fix=closest(str(child.value) if child else "", known),
    )
    return None


def _options(found: Mapping[str, Node], format_: str | None, findings: Findings) -> Mapping[str, str]:
    options: dict[str, str] = {}
    known = OPTIONS[Format(format_)] if format_ else ()
    for name, node in found.items():
        child = node.child("value")
        if name in ("format", "extraFields") or child is None:
            continue
        if name not in known:
            if format_ or "format" not in found:
                owners = ", ".join(f for f, options in OPTIONS.items() if name in options)
                findings.error(
                    node.line,
                    f"option `{name}` belongs to the format {owners}, found {format_ or 'no format'}",
                    fix="remove it, or add the custom property format",
                )
        elif not isinstance(child.value, str):
            findings.error(child.line, f"option `{name}`: expected text, found {shown(child)}", fix="put it in quotes")
        elif complaint := _complaint(name, child.value):
            findings.error(child.line, f"option `{name}` is {child.value!r}, expected {complaint}")
        else:
            options[name] = child.value
    if "null" in options and options["null"] == options.get("delimiter", ","):
        line = found["null"].line
        findings.error(line, "`null` is the delimiter, which no value can be", fix="give one of them another text")
    return dict(sorted(options.items()))


def _complaint(name: str, value: str) -> str:
    """What the option expects, if the value is not that; otherwise empty."""
    if name == "timestamp" and value not in TIMES:
        return f"one of {', '.join(TIMES)}"
    if name == "delimiter" and (len(value) != 1 or not value.isascii() or value in '"\r\n'):
        return "one ASCII character, but no quote or end of a line"
    return ""
