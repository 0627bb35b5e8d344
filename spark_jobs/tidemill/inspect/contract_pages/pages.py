"""Writes a page for each contract of a project, and one that lists them. The pages fetch nothing from elsewhere."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from tidemill.contracts.audit import statistics_in_words
from tidemill.contracts.changes.described import Described, described
from tidemill.contracts.files import contract_files
from tidemill.contracts.findings import Finding
from tidemill.contracts.level_values import PROMISES
from tidemill.contracts.meanings import looks_at, meaning
from tidemill.contracts.nodes import plain
from tidemill.core.contract.contract import Expectation
from tidemill.core.contract.schema import Array, DataType, Field, Object, spark_type
from tidemill.core.errors import ContractError
from tidemill.inspect.contract_pages.verdicts import Audit, last_audits, last_intakes, levels_now
from tidemill.inspect.contract_uses import uses_by_contract

if TYPE_CHECKING:
    from tidemill.project.project import Project

_SAFE = re.compile(r"[a-z0-9_-]{1,80}")
_OWNERS = ("team", "support", "roles", "domain", "dataProduct", "tenant")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The pages that were written, and the errors of contracts that have none."""

    files: tuple[Path, ...]
    contracts: int
    errors: tuple[Finding, ...]


def write_pages(project: Project, folder: Path) -> Pages:
    """Write the pages into a folder, which is created if it is missing.

    Raises:
        ContractError: the project has no folder of contracts, or no contract in it.
    """
    contracts = Path(project.settings.contracts)
    if not contract_files(contracts):
        raise ContractError(f"{contracts}: there is no contract in this folder or below it", fix="write one first")
    found, errors = described(contracts)
    uses, audits = uses_by_contract(project), last_audits(project)
    intakes, levels = last_intakes(project), levels_now(project)
    environment = Environment(
        loader=PackageLoader("tidemill.inspect.contract_pages", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    folder.mkdir(parents=True, exist_ok=True)
    listed = [_entry(each, audits.get(name, ())) for name, each in sorted(found.items())]
    index = environment.get_template("index.html.jinja").render(contracts=listed, errors=[str(e) for e in errors])
    files = [_write(folder / "index.html", index)]
    for entry, (name, each) in zip(listed, sorted(found.items()), strict=True):
        known = {"uses": uses, "audits": audits, "intakes": intakes, "levels": levels}
        values = _values(each) | {key: of.get(name, ()) for key, of in known.items()} | {"file": entry["file"]}
        files.append(_write(folder / entry["page"], environment.get_template("contract.html.jinja").render(values)))
    return Pages(files=tuple(files), contracts=len(found), errors=tuple(errors))


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", errors="backslashreplace")
    return path


def _entry(each: Described, audits: Sequence[Audit]) -> dict[str, Any]:
    contract = each.contract
    return {
        "name": contract.name,
        "page": page_of(contract.name),
        "version": contract.version,
        "kind": "records" if each.is_input else "table",
        "description": contract.description,
        "file": Path(contract.source).name,
        "holds": all(audit.holds for audit in audits) if audits else None,
    }


def page_of(name: str) -> str:
    """The file name of a contract's page."""
    if _SAFE.fullmatch(name) and name != "index":
        return f"{name}.html"
    # Names may have any characters, and some file systems know no capital letters.
    return f"{re.sub(r'[^A-Za-z0-9_-]', '_', name)[:60]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}.html"


def _values(each: Described) -> dict[str, Any]:
    contract = each.contract
    said = statistics_in_words(
        [(r.name, r.condition) for r in each.rules.values() if isinstance(r.condition, Expectation)]
    )
    rules = [
        {
            "name": r.name,
            "asks": said.get(r.name) or meaning(r.condition),
            "severity": r.severity.value,
            "line": r.line,
            "tolerance": r.tolerance.words if r.tolerance else "",
            "looks_at": "" if each.is_input else looks_at(r),
            "description": r.description,
        }
        for r in each.rules.values()
    ]
    return {
        "contract": contract,
        "status": each.root.text("status"),
        "id": each.root.text("id"),
        "format": contract.format.value if contract.format else "",
        "fields": list(_fields(contract.fields, "", contract.primary_key)),
        "rules": rules,
        "owners": [(key, line) for key in _OWNERS if (node := each.root.child(key)) for line in _lines(plain(node))],
        "promises": [line for node in each.root.items(PROMISES) for line in _lines(plain(node))],
    }


def _fields(fields: Sequence[Field], above: str, key: Sequence[str]) -> Iterator[dict[str, Any]]:
    for field in fields:
        name = f"{above}{field.name}"
        yield {
            "name": name,
            "type": _shown(field.type),
            "required": field.required,
            "key": not above and field.name in key,
            "description": field.description,
        }
        inner, mark = field.type, ""
        while isinstance(inner, Array):
            inner, mark = inner.item, f"{mark}[]"
        if isinstance(inner, Object):
            yield from _fields(inner.fields, f"{name}{mark}.", ())


def _shown(data_type: DataType) -> str:
    match data_type:
        case Array(item):
            return f"array of {_shown(item)}"
        case Object():
            return "object"
        case _:
            return spark_type(data_type)


def _lines(value: Any) -> Iterator[str]:
    """A value of the file in lines of text."""
    match value:
        case list():
            for item in value:
                yield from _lines(item)
        case Mapping():
            yield ", ".join(f"{key}: {' / '.join(_lines(inner))}" for key, inner in value.items())
        case None:
            return
        case _:
            yield str(value)
