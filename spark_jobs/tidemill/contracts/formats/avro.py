"""Contracts from and to schemas of Avro, which are JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, assert_never

from tidemill.contracts.changes.described import Described
from tidemill.contracts.formats.draft import Column, Draft
from tidemill.contracts.formats.exporting import Exported, Rules
from tidemill.contracts.formats.sources import Nesting, as_list, as_mapping, as_text, json_of, name_for
from tidemill.core.contract.contract import OneOf
from tidemill.core.contract.row_checks import Plain
from tidemill.core.contract.schema import Array, DataType, Decimal, Field, Object, Scalar
from tidemill.core.errors import InputError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_PLAIN = {
    "string": Scalar.STRING,
    "bytes": Scalar.BINARY,
    "boolean": Scalar.BOOLEAN,
    "int": Scalar.INTEGER,
    "long": Scalar.LONG,
    "float": Scalar.DOUBLE,
    "double": Scalar.DOUBLE,
}
_LOGICAL = {
    ("int", "date"): Scalar.DATE,
    ("long", "timestamp-millis"): Scalar.TIMESTAMP,
    ("long", "timestamp-micros"): Scalar.TIMESTAMP,
}
_WRITTEN: Mapping[Scalar, Any] = {
    **{scalar: name for name, scalar in _PLAIN.items() if name != "float"},
    Scalar.DATE: {"type": "int", "logicalType": "date"},
    Scalar.TIMESTAMP: {"type": "long", "logicalType": "timestamp-micros"},
}
_UNITS = {"timestamp-millis": "epoch_ms", "timestamp-micros": "epoch_us"}
_READ = frozenset(("name", "type", "doc", "namespace", "fields", "items", "symbols", "logicalType"))


def _only_record(path: Path, union: list[Any]) -> Any:
    """The record of a union.

    Raises:
        InputError: there is none, or more than one.
    """
    records = [each for each in union if as_mapping(each).get("type") == "record"]
    if len(records) == 1:
        return records[0]
    named = ", ".join(str(as_mapping(each).get("name")) for each in records) or "none"
    raise InputError(
        f"{path} is a list of {len(union)} schemas; records among them: {named}",
        fix="give a file with the one record that the topic carries",
    )


def of_avro(path: Path) -> Draft:
    """The contract of the records that a schema of Avro describes.

    Raises:
        InputError: the file is no schema of a record.
    """
    whole = json_of(path)
    schema = as_mapping(_only_record(path, whole) if isinstance(whole, list) else whole)
    if schema.get("type") != "record" or not as_list(schema.get("fields")):
        raise InputError(f"{path}: expected an Avro schema of type record with fields", fix="give the file of a record")
    reader = _Reader()
    reader.note(schema)
    with reader.nesting.entered(schema["fields"]):
        columns = tuple(reader.columns(schema))
    return Draft(
        name=name_for(as_text(schema.get("name")), path),
        description=as_text(schema.get("doc")) or f"Imported from {path.name}.",
        columns=columns,
        format="json",
        extra_fields="keep",
        timestamp=reader.timestamp(),
        losses=tuple(reader.losses),
    )


@dataclass(slots=True)
class _Reader:
    losses: list[str] = field(default_factory=list)
    named: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    nesting: Nesting = field(default_factory=Nesting)
    times: dict[str, list[str]] = field(default_factory=dict)

    def note(self, schema: Mapping[str, Any]) -> None:
        """Remember a type by its name, with and without its namespace."""
        name, space = as_text(schema.get("name")), as_text(schema.get("namespace"))
        self.named |= {name: schema, f"{space}.{name}": schema}

    def timestamp(self) -> str:
        """How records write moments: Avro counts from 1970, and a contract has one unit for all fields."""
        if len(self.times) < 2:
            return "".join(_UNITS[unit] for unit in self.times)
        told = "; ".join(f"{unit} in {', '.join(f'`{name}`' for name in names)}" for unit, names in self.times.items())
        self.losses.append(f"the units of times are left out, for a contract has one for all fields: {told}")
        return ""

    def columns(self, schema: Mapping[str, Any]) -> list[Column]:
        found = []
        for each in map(as_mapping, as_list(schema.get("fields"))):
            name = as_text(each.get("name"))
            inner, null = self._plain(each.get("type"), name)
            typed = self._type(inner, name)
            self._note_rest(each, name)
            if typed is None:
                continue
            made = Field(name=name, type=typed, required=not null, description=as_text(each.get("doc")))
            symbols = tuple(as_list(inner.get("symbols")))
            options: dict[str, Plain] = {"format": "uuid"} if inner.get("logicalType") == "uuid" else {}
            found.append(Column(field=made, allowed=symbols, options=options))
        return found

    def _note_rest(self, each: Mapping[str, Any], name: str) -> None:
        if each.get("default") is not None:
            self.losses.append(f"`default` of `{name}` is left out: a contract adds no values")
        for key in each.keys() & {"aliases", "order"}:
            self.losses.append(f"`{key}` of `{name}` is left out: contracts cannot say it")

    def _plain(self, given: Any, name: str) -> tuple[Mapping[str, Any], bool]:
        """The type without the choice of null, and whether there was one."""
        choices = given if isinstance(given, list) else [given]
        others = [c for c in choices if c != "null"]
        null = len(others) < len(choices)
        if len(others) != 1:
            return {"type": others}, null
        found = others[0]
        if isinstance(found, str):
            return self.named.get(found, {"type": found}), null
        inner = as_mapping(found)
        if "name" in inner:
            self.note(inner)
        if isinstance(inner.get("type"), dict):
            return self._plain(inner["type"], name)[0], null
        return inner, null

    def _type(self, schema: Mapping[str, Any], name: str) -> DataType | None:
        kind, logical = schema.get("type"), schema.get("logicalType")
        parts = schema.get("fields", schema.get("items"))
        if not self.nesting.goes_on(parts) or not isinstance(kind, str):
            said = "it contains itself" if isinstance(kind, str) else "it may be of several types"
            self.losses.append(f"`{name}` is left out: {said}")
            return None
        if logical == "decimal" and kind in ("bytes", "fixed"):
            return self._decimal(schema, name)
        if (kind, logical) in _LOGICAL:
            if logical in _UNITS:
                self.times.setdefault(str(logical), []).append(name)
            return _LOGICAL[kind, str(logical)]
        return self._other(schema, name)

    def _other(self, schema: Mapping[str, Any], name: str) -> DataType | None:
        kind, logical = str(schema.get("type")), schema.get("logicalType")
        if logical not in (None, "uuid"):
            self.losses.append(f"`{name}` is left out: contracts have no type for {logical}")
            return None
        match kind:
            case "enum":
                return Scalar.STRING
            case "fixed":
                self.losses.append(f"`size` of `{name}` is left out: bytes have no length in a contract")
                return Scalar.BINARY
            case "array" | "record":
                with self.nesting.entered(schema.get("fields", schema.get("items"))):
                    return self._array(schema, name) if kind == "array" else self._record(schema, name)
        if kind not in _PLAIN:
            self.losses.append(f"`{name}` is left out: contracts have no type for {kind}")
        return _PLAIN.get(kind)

    def _array(self, schema: Mapping[str, Any], name: str) -> Array | None:
        inner, _ = self._plain(schema.get("items"), f"{name}[]")
        self._inner_losses(inner, f"{name}[]")
        item = self._type(inner, f"{name}[]")
        return None if item is None else Array(item)

    def _decimal(self, schema: Mapping[str, Any], name: str) -> Decimal | None:
        try:
            return Decimal(int(schema.get("precision", 0)), int(schema.get("scale", 0)))
        except (TypeError, ValueError):
            self.losses.append(f"`{name}` is left out: decimals have at most 38 digits")
            return None

    def _record(self, schema: Mapping[str, Any], name: str) -> Object | None:
        fields = []
        for each in map(as_mapping, as_list(schema.get("fields"))):
            inner, null = self._plain(each.get("type"), f"{name}.{each.get('name')}")
            typed = self._type(inner, f"{name}.{each.get('name')}")
            self._inner_losses(inner, f"{name}.{each.get('name')}")
            if typed is not None:
                said = as_text(each.get("doc"))
                fields.append(Field(name=as_text(each.get("name")), type=typed, required=not null, description=said))
        if not fields:
            self.losses.append(f"`{name}` is left out: an object needs properties")
        return Object(tuple(fields)) if fields else None

    def _inner_losses(self, inner: Mapping[str, Any], name: str) -> None:
        if "symbols" in inner:
            self.losses.append(f"`symbols` of `{name}` is left out: only columns have rules")


def to_avro(source: Described) -> Exported:
    """The contract as a schema of Avro.

    Raises:
        InputError: no column has a name that Avro can have.
    """
    contract, rules = source.contract, Rules(source, "Avro")
    fields = [_field(f, rules, f.name) for f in contract.fields if _usable(f.name, f.name, rules)]
    if not fields:
        raise InputError(f"{contract.source}: no column has a name that Avro can have", fix="use letters, digits and _")
    document = {
        "type": "record",
        "name": re.sub(r"\W", "_", contract.name, flags=re.ASCII),
        **({"doc": contract.description} if contract.description else {}),
        "fields": fields,
    }
    return Exported(text=json.dumps(document, indent=2, ensure_ascii=False) + "\n", losses=rules.losses())


def _usable(name: str, path: str, rules: Rules) -> bool:
    if _NAME.fullmatch(name):
        return True
    rules.lose(f"`{path}` is left out: names in Avro have only letters, digits and _")
    return False


def _field(field_: Field, rules: Rules, path: str) -> dict[str, Any]:
    is_column = path == field_.name
    required = rules.required(path) if is_column else field_.required
    typed = (_enum(path, rules) if is_column else None) or _typed(field_.type, rules, path)
    found: dict[str, Any] = {"name": field_.name, "type": typed if required else ["null", typed]}
    if not required:
        found["default"] = None
    return found | ({"doc": field_.description} if field_.description else {})


def _enum(name: str, rules: Rules) -> dict[str, Any] | None:
    """The first list of allowed texts, where all of them can be symbols."""
    taken = rules.of_column(name, lambda c: isinstance(c, OneOf) and all(_NAME.fullmatch(str(v)) for v in c.values))
    symbols = [list(c.values) for c in taken if isinstance(c, OneOf)]
    return {"type": "enum", "name": f"{name}_values", "symbols": symbols[0]} if symbols else None


def _typed(data_type: DataType, rules: Rules, path: str) -> Any:
    match data_type:
        case Scalar.TIMESTAMP if rules.source.contract.options.get("timestamp") == "epoch_ms":
            return {"type": "long", "logicalType": "timestamp-millis"}
        case Scalar():
            return _WRITTEN[data_type]
        case Decimal(precision, scale):
            return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        case Array(item):
            return {"type": "array", "items": ["null", _typed(item, rules, f"{path}[]")]}
        case Object(fields):
            name = re.sub(r"\W", "_", path, flags=re.ASCII) + "_record"
            inner = [_field(f, rules, f"{path}.{f.name}") for f in fields if _usable(f.name, f"{path}.{f.name}", rules)]
            return {"type": "record", "name": name, "fields": inner}
        case _:
            assert_never(data_type)
