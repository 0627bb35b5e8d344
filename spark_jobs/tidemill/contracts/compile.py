"""Compiles the document of a contract file to a contract, and notes everything that is wrong."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tidemill.contracts.conditions import Rule
from tidemill.contracts.document import Node, read
from tidemill.contracts.extensions import Extensions, extensions_of
from tidemill.contracts.fields import fields_of, lack_parts
from tidemill.contracts.files import OBJECT, name_of
from tidemill.contracts.findings import UNUSABLE, Findings
from tidemill.contracts.nodes import closest, shown
from tidemill.contracts.older import object_of_today
from tidemill.contracts.rules import collect, row_rules, table_rules
from tidemill.contracts.service_levels import check_service_levels
from tidemill.contracts.standard import NEWEST, VERSIONS, WRITTEN
from tidemill.contracts.structure import check_structure
from tidemill.contracts.untyped import check_untyped, names_without_type
from tidemill.contracts.whole import Whole
from tidemill.core.contract.contract import Contract, NotNull, RowRule, TableRule
from tidemill.core.contract.row_checks import NotNullInside
from tidemill.core.contract.schema import Field
from tidemill.core.declare.columns import HIDDEN_COLUMNS
from tidemill.core.identity.contracts import fingerprint_of

EXTRA_COLUMN = "_extra"
_SHOWN = 20
_OWN_COLUMNS = ("batch_id", "published_at")
_OF_PATHS = re.compile(r"_kept_|_s\d+p\d+_")
_VERSION = re.compile(r"v?\d+(\.\d+){0,3}([-+.]?[A-Za-z0-9.+-]+)?", re.ASCII)
_UNSTORABLE = " ,;{}()\n\t="


def compile_contract(path: Path, findings: Findings, picked: str = "", whole: Whole | None = None) -> Contract | None:
    """Compile the contract in a file. It can be used only if `findings` has no error; None if it has no schema.

    Of several schema objects, `picked` names the one to compile; its contract is called `FILE#OBJECT`.

    `whole` is its document, if it has been read already; what concerns the document itself is noted once. Faults of a
    file become findings and never exceptions: one file must not hide what is wrong with others.
    """
    try:
        if whole is None:
            whole = None if (root := read(path, findings)) is None else Whole(root)
        return None if whole is None else compile_document(whole, path, findings, picked)
    except Exception as error:
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        findings.error(1, f"cannot be used: unexpected {said}", fix="write it in simpler words, and report this")
        return None


def compile_document(whole: Whole, path: Path, findings: Findings, picked: str = "") -> Contract | None:
    """Compile a document that was read from the file at `path`; None if it has no schema."""
    root = whole.root
    if not isinstance(root.value, Mapping):
        findings.error(root.line, f"expected a contract, found {shown(root)}")
        return None
    if OBJECT in name_of(path):
        said = f"the file is called `{path.name}`, but {OBJECT} stands between a file and one of its schema objects"
        findings.error(1, said, fix=f"rename the file to {path.name.replace(OBJECT, '_')}")
    known = _check_api_version(root, findings)
    if not known and _is_other(root):
        return None
    _check_top(root, findings)
    chosen = _schema(whole, name_of(path), picked, findings)
    schema = None if chosen is None else object_of_today(root, chosen)
    contract = None if schema is None else _compile(path, whole, schema, findings)
    if contract is not None and picked:
        contract = dataclasses.replace(contract, name=f"{contract.name}{OBJECT}{picked}")
    first, whole.is_checked = not whole.is_checked, True
    if first:
        check_service_levels(root, findings)
    objects = [schema] if schema and picked else [object_of_today(root, each) for each in root.items("schema")]
    check_structure(root, objects, findings, with_root=first)
    return contract


def objects_of(root: Node) -> list[Node]:
    """The schema objects of a document."""
    return Whole(root).objects


def rules_of(root: Node, schema: Node) -> Mapping[str, Rule]:
    """The rules of a schema object by name, in the order of the file, without those that `required` makes.

    Rules of records and of tables are the same conditions here.
    """
    silent = Findings("")
    schema = object_of_today(root, schema)
    extensions = extensions_of(root, schema, silent)
    fields = {field.name: field for field in fields_of(schema.items("properties"), silent)}
    key = tuple(c for c in _primary_key(schema, extensions, silent) if c in fields)
    found = collect(schema, fields, key, silent, is_input=extensions.is_input)
    made = (NotNullInside, NotNull)
    return {r.name: r for r in found if not (isinstance(r.condition, made) and r.name.endswith(".required"))}


def _check_api_version(root: Node, findings: Findings) -> bool:
    """Whether this is a version that can be read; another one is noted."""
    child = root.child("apiVersion")
    if child is not None and child.value in VERSIONS:
        return True
    findings.error(
        child.line if child else root.line,
        f"apiVersion is {shown(child)}; supported: {', '.join(VERSIONS)}",
        fix=f"write apiVersion: {WRITTEN}",
    )
    return False


def _is_other(root: Node) -> bool:
    """Whether a document without a known version is of another standard, or of ODCS 2, which has other keys."""
    if root.child("apiVersion") is None:
        return root.child("kind") is None or root.child("schema") is None
    return root.text("apiVersion").removeprefix("v").startswith("2")


def _check_top(root: Node, findings: Findings) -> None:
    version = root.text("apiVersion")
    kind = root.child("kind")
    if kind is not None and kind.value != "DataContract":
        findings.error(kind.line, f"kind is {shown(kind)}; supported: DataContract", fix="write kind: DataContract")
    own = root.child("version")
    if own is not None and isinstance(own.value, str) and not _VERSION.fullmatch(own.value):
        said = f"version is {shown(own)}: nobody can tell which of two such versions is newer"
        findings.warning(own.line, said, fix="write it like 1.0.0")
    if version in VERSIONS and version != NEWEST and root.child("status") is None:
        findings.error(root.line, f"`status` is missing; ODCS {version} must have it", fix="add status: active")


def _schema(whole: Whole, file: str, picked: str, findings: Findings) -> Node | None:
    root, objects = whole.root, whole.objects
    child = root.child("schema")
    fitting = whole.called(picked) if picked or len(objects) > 1 else objects
    if len(fitting) == 1:
        _check_object(fitting[0], findings)
        return fitting[0] if _has_columns(fitting[0], findings) else None
    if objects:
        _note_choice([node.text("name") for node in objects], file, picked, child or root, findings)
    elif child is None or child.value == ():
        said = "`schema` is missing" if child is None else "`schema` is empty"
        said += f": the contract describes no topic or table, so {UNUSABLE}"
        findings.warning(child.line if child else root.line, said, fix="describe one topic or table in it")
    return None


def _has_columns(schema: Node, findings: Findings) -> bool:
    properties = schema.child("properties")
    if properties is not None and properties.value != ():
        return True
    said = f"a schema object without properties has no columns, so {UNUSABLE}"
    findings.warning(properties.line if properties else schema.line, said, fix="add properties")
    return False


def _note_choice(names: list[str], file: str, picked: str, place: Node, findings: Findings) -> None:
    count = names.count(picked)
    called = f"{count or 'no'} schema object{'s' if count else ''} called `{picked}`"
    message = called if picked else f"{len(names)} schema objects; a pipeline names one of them"
    known = ", ".join(f'"{file}{OBJECT}{name}"' for name in names[:_SHOWN])
    one = f'write contract="{file}{OBJECT}{names[0]}"'
    fix = "give each object a name of its own" if count else closest(picked, names) or one
    findings.error(place.line, f"{message}; there are {known}", fix=fix)


def _check_object(schema: Node, findings: Findings) -> None:
    logical, relations = schema.child("logicalType"), schema.child("relationships")
    if logical is not None and logical.value != "object":
        findings.error(logical.line, f"logicalType of a schema object is {shown(logical)}; supported: object")
    if relations is not None and relations.value != ():
        findings.error(relations.line, "`relationships` cannot be run: foreign keys are not checked", fix="remove it")


def _compile(path: Path, whole: Whole, schema: Node, findings: Findings) -> Contract | None:
    root = whole.root
    extensions = extensions_of(root, schema, findings)
    columns = fields_of(schema.items("properties"), findings)
    fields = {field.name: field for field in columns}
    _check_columns(schema, extensions, findings)
    properties = schema.items("properties")
    untyped = names_without_type(properties, columns)
    primary_key = tuple(c for c in _primary_key(schema, extensions, findings) if c in fields or c in untyped)
    made = _Made()
    if untyped:
        check = partial(_made_rules, schema, primary_key, extensions)
        check_untyped(properties, fields, untyped, findings, check)
    else:
        made = _made_rules(schema, primary_key, extensions, fields, findings)
    contract = Contract(
        name=name_of(path),
        version=root.text("version"),
        fields=columns,
        format=extensions.format,
        extra_fields=extensions.extra_fields,
        primary_key=primary_key,
        row_rules=made.of_rows,
        table_rules=made.of_tables,
        options=extensions.options,
        description=_description(root, schema),
        source=str(path),
        levels=() if extensions.is_input else whole.levels_of((schema.text("name"), *fields)),
    )
    complete = not lack_parts(properties)
    return dataclasses.replace(contract, fingerprint=fingerprint_of(contract)) if complete else None


@dataclass(frozen=True, slots=True)
class _Made:
    of_rows: tuple[RowRule, ...] = ()
    of_tables: tuple[TableRule, ...] = ()


def _made_rules(
    schema: Node, key: Sequence[str], extensions: Extensions, fields: Mapping[str, Field], findings: Findings
) -> _Made:
    rules = collect(schema, fields, key, findings, is_input=extensions.is_input)
    if extensions.is_input:
        return _Made(of_rows=row_rules(rules, fields, findings))
    return _Made(of_tables=table_rules(rules, findings))


def _description(root: Node, schema: Node) -> str:
    described = root.child("description")
    text = schema.text("description") or (described.text("purpose") if described else "")
    return " ".join(text.split())


def _check_columns(schema: Node, extensions: Extensions, findings: Findings) -> None:
    for node in schema.items("properties"):
        name = node.text("name")
        if extensions.is_input:
            if name.lower() == EXTRA_COLUMN and extensions.keeps_extra:
                findings.error(node.line, f"`{name}` holds the extra fields of a record", fix="rename the property")
            if is_hidden(name):
                findings.error(
                    node.line, f"`{name}` is a column that Tidemill adds to every row", fix="rename the property"
                )
        elif name.lower() in _OWN_COLUMNS:
            findings.error(
                node.line,
                f"`{name}` is added to every published table by Tidemill itself",
                fix="remove it from the contract",
            )
        elif any(c in _UNSTORABLE for c in name):
            findings.error(node.line, f"a Delta table cannot have a column called {name!r}", fix="use letters and _")


def is_hidden(name: str) -> bool:
    """Whether Tidemill adds a column of this name to every row of an input."""
    return name.lower() in HIDDEN_COLUMNS or _OF_PATHS.match(name.lower()) is not None


def _primary_key(schema: Node, extensions: Extensions, findings: Findings) -> tuple[str, ...]:
    """The columns of the primary key, ordered by position if given, otherwise as in the file."""
    keys: list[tuple[int | None, Node]] = []
    for node in schema.items("properties"):
        position = node.child("primaryKeyPosition")
        number = position.value if position and isinstance(position.value, int) and position.value > 0 else None
        if node.is_true("primaryKey"):
            keys.append((number, node))
        elif number is not None and position is not None:
            findings.error(position.line, "primaryKeyPosition without primaryKey", fix="add primaryKey: true")
    if keys and extensions.is_input:
        child = keys[0][1].child("primaryKey")
        findings.error(
            child.line if child else keys[0][1].line,
            "primaryKey cannot be run in an input contract: whether a key repeats cannot be seen in one record",
            fix="put it into the contract of the published table; required: true keeps out nulls",
        )
    positions = [p for p, _ in keys if p is not None]
    if positions and sorted(positions) != list(range(1, len(keys) + 1)):
        findings.error(
            keys[0][1].line,
            f"the positions of the primary key's {len(keys)} columns are {positions}",
            fix=f"number all of them from 1 to {len(keys)}, or none",
        )
    return tuple(n.text("name") for _, n in sorted(keys, key=lambda k: k[0] or 0))
