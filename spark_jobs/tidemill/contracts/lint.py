"""Finds errors and possible improvements in contract files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tidemill.contracts.compile import compile_contract
from tidemill.contracts.conditions import Place
from tidemill.contracts.counts import condition_of_query
from tidemill.contracts.custom import one_line
from tidemill.contracts.document import Node, read
from tidemill.contracts.files import OBJECT, SUFFIX, contract_files, name_of, twice
from tidemill.contracts.findings import Finding, Findings
from tidemill.contracts.whole import Whole
from tidemill.core.contract.contract import Contract
from tidemill.core.declare.columns import WINDOW_COLUMNS
from tidemill.core.errors import ContractError, DeclarationError
from tidemill.core.sql.expressions import parsed

_SAFE = "use try_cast, try_divide, try_mod, try_to_timestamp, try_to_date or try_to_number"
_INSTEAD = {
    "[]": "use get(array, index) or try_element_at, which are null beyond the end of an array",
    **dict.fromkeys(("date_format", "from_unixtime"), "write the format itself, instead of a value of the row"),
    **dict.fromkeys(("from_utc_timestamp", "to_utc_timestamp"), "write the time zone itself"),
    **dict.fromkeys(("bit_get", "getbit"), "write the number of the bit itself"),
    **dict.fromkeys(("unix_timestamp", "to_unix_timestamp"), "use unix_seconds(try_to_timestamp(...))"),
    "unbase64": "use try_to_binary(value, 'base64')",
    **dict.fromkeys(("mod", "pmod"), "use try_mod, which is null for a divisor of 0"),
    "next_day": "write the day of the week itself, for example 'MO'",
    "encode": "write the charset itself, for example 'UTF-8'",
    "decode": "use try_validate_utf8(CAST(value AS STRING)), which is null for bytes that are no UTF-8",
    "make_date": "use try_to_date, which is null for a day that there is not",
    "make_timestamp": "use try_make_timestamp, which is null there",
    "timestamp_millis": "use timestamp_micros(try_multiply(value, 1000)), which is null there",
    "timestamp_seconds": "use timestamp_micros(try_multiply(value, 1000000)), which is null there",
    "element_at": "use try_element_at, which is null for what is not there",
    "parse_json": "use try_parse_json",
    "parse_url": "use try_parse_url",
    "url_decode": "use try_url_decode",
    "variant_get": "use try_variant_get",
}

_TYPED = ("/", "%", "div", "cast", "::")
"""What is looked at with the types of columns."""

_VALUE, _DIGITS = "at the first value that it cannot take", "where the number leaves 38 digits"

__all__ = ["Finding", "lint"]


def lint(path: Path | str) -> list[Finding]:
    """Return all findings about one contract file, or about all contract files of a folder, by file and line.

    Errors are what `load_contract` refuses; warnings are what readers of the contract would miss; information is what
    Tidemill does not use. No fault in a file raises an exception.
    """
    path = Path(path)
    if not path.is_dir():
        return _lint_file(path)
    try:
        files = contract_files(path)
    except ContractError as error:
        findings = Findings(str(path))
        findings.error(1, error.message.removeprefix(f"{path}: "), fix=error.fix)
        return findings.all
    if not files:
        findings = Findings(str(path))
        findings.error(1, f"no contract in this folder or below it, found no *{SUFFIX}", fix="give another folder")
        return findings.all
    return [*(f for file in files for f in _lint_file(file)), *_same_names(files), *_same_ids(files)]


def _same_names(files: Sequence[Path]) -> Iterator[Finding]:
    """Find contracts of one folder that have the same name as another."""
    first: dict[str, Path] = {}
    for path in files:
        if (before := first.setdefault(name_of(path), path)) != path:
            error, findings = twice(name_of(path), [before, path]), Findings(str(path))
            findings.error(1, error.message, fix=error.fix)
            yield from findings.all


def _same_ids(files: Sequence[Path]) -> Iterator[Finding]:
    """Find contracts of one folder that have the same id as another."""
    first: dict[str, Path] = {}
    for path in files:
        root = read(path, Findings(str(path)))
        child = None if root is None or not isinstance(root.value, Mapping) else root.child("id")
        if child is not None and (before := first.setdefault(str(child.value), path)) != path:
            findings = Findings(str(path))
            findings.warning(
                child.line, f"id {child.value} is that of {before.name}, too", fix="give each contract an id of its own"
            )
            yield from findings.all


def _lint_file(path: Path) -> list[Finding]:
    findings = Findings(str(path))
    root = read(path, findings)
    if root is None:
        return findings.sorted()
    whole = Whole(root)
    objects = whole.objects
    several = len(objects) > 1
    for schema in objects if several else ():
        contract = compile_contract(path, findings, schema.text("name"), whole)
        if contract is not None:
            _advise(schema, contract, findings)
    if not several:
        contract = compile_contract(path, findings, whole=whole)
        if contract is not None:
            _advise(objects[0], contract, findings)
    return findings.sorted()


def _advise(schema: Node, contract: Contract, findings: Findings) -> None:
    name = schema.text("name")
    if name and name != contract.name and OBJECT not in contract.name:
        findings.warning(
            schema.line,
            f"the schema is called `{name}`, the file `{contract.name}`: pipelines know the contract by its file",
            fix=f"call one as the other: name: {contract.name}, or {name}{SUFFIX}",
        )
    if not contract.description:
        findings.warning(schema.line, "no description", fix="say what one row is, for its readers")
    # A rule or a key with an error is missing in the contract, but not in the file.
    if not findings.has_errors:
        _advise_checks(schema.line, contract, findings)
    for node in schema.items("properties"):
        if not node.text("description"):
            findings.warning(
                node.line, f"`{node.text('name')}` has no description", fix="it becomes the column's comment"
            )
    names = tuple(text for key in ("name", "physicalName") if (text := schema.text(key)))
    for place in (schema, *schema.items("properties")):
        for node in place.items("quality"):
            found = _predicate_of(node, "" if place is schema else place.text("name"), contract, names)
            if found is not None:
                _advise_predicate(*found, contract, findings)


def _advise_checks(line: int, contract: Contract, findings: Findings) -> None:
    """Note what a contract without errors does not check."""
    # A table of windows is updated by window and key, and the pipeline knows these.
    if contract.format is None and not contract.primary_key and not set(WINDOW_COLUMNS) <= set(contract.columns):
        findings.warning(
            line,
            "no primary key: readers do not know which columns identify a row",
            fix="set primaryKey: true at these columns; a key of single rows is checked over the whole table. Leave it "
            "out for firings of buffers: several have the same key",
        )
    if not contract.row_rules and not contract.table_rules:
        findings.warning(line, "no rule: every value of the right type passes", fix="add a bound or a pattern")


def _predicate_of(node: Node, column: str, contract: Contract, names: tuple[str, ...]) -> tuple[str, int] | None:
    """The predicate of a rule of engine tidemill, or of type sql, and its line."""
    implementation = node.child("implementation")
    if node.text("engine") == "tidemill" and implementation is not None:
        return one_line(node.text("implementation")), implementation.line
    fields = {field.name: field for field in contract.fields}
    # What cannot be run is noted as an error already.
    unheard = Findings(contract.source)
    place = Place(column=fields.get(column), fields=fields, is_input=False, findings=unheard, names=names)
    return condition_of_query(node, place)


def _advise_predicate(predicate: str, line: int, contract: Contract, findings: Findings) -> None:
    """Note one part of a predicate that can fail the whole batch."""
    # Imported late: they load the SQL parser.
    from tidemill.core.contract.exact_sums import exact  # noqa: PLC0415
    from tidemill.core.contract.failing_calls import failing_calls  # noqa: PLC0415
    from tidemill.core.contract.run_time_faults import possible_faults  # noqa: PLC0415

    types = {field.name: field.type for field in contract.fields}

    try:
        failing = failing_calls(predicate, types)
        unsafe = [name for name in parsed(predicate).may_fail if name not in _TYPED and name in failing]
    except DeclarationError:
        # This is noted as an error already.
        return
    if faults := possible_faults(predicate, types):
        where = _DIGITS if faults[0].sign in "+-*" else _VALUE
        fix = f"use {faults[0].instead}, which is null there"
        findings.warning(line, f"`{faults[0].sign}` in `{faults[0].part}` fails the whole batch {where}", fix=fix)
    elif unsafe:
        said = f"`{unsafe[0].replace('[]', '[...]')}` fails the whole batch {_VALUE}"
        findings.warning(line, said, fix=_INSTEAD.get(unsafe[0], _SAFE))
    elif sums := exact(predicate, types).may_fail:
        findings.warning(
            line,
            f"`{sums[0]}` fails the whole batch where the number leaves the bits of its type",
            fix="use try_add, try_subtract or try_multiply, which are null there; a sum of columns that is compared "
            "is computed exactly, if it fits into 38 digits",
        )
