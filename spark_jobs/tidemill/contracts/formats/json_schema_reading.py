"""Imports JSON Schema as a contract of records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidemill.contracts.formats.draft import Column, Draft
from tidemill.contracts.formats.json_schema import SCALARS
from tidemill.contracts.formats.json_schema_patterns import whole
from tidemill.contracts.formats.sources import Nesting, as_list, as_mapping, as_text, json_of, name_for
from tidemill.contracts.nodes import closest
from tidemill.core.contract.row_checks import Plain
from tidemill.core.contract.schema import Array, DataType, Field, Object, Scalar
from tidemill.core.errors import InputError

_OPTIONS = {
    "string": ("minLength", "maxLength"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    "array": ("minItems", "maxItems", "uniqueItems"),
}
_FORMATS = ("uuid", "ipv4", "hostname", "email", "uri")
_SILENT = frozenset(("$schema", "$id", "$ref", "$defs", "definitions", "$comment", "$anchor"))
_SAY_NOTHING = frozenset(
    ("title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly")
)
_READ = frozenset(("type", "properties", "required", "items", "format", "enum", "const", "pattern", "contentEncoding"))


def of_json_schema(path: Path, picked: str = "") -> Draft:
    """The contract of the records that a JSON Schema describes; `picked` is one of its definitions.

    Raises:
        InputError: the file is no JSON Schema, or not one of an object.
    """
    document = json_of(path)
    _check(path, document)
    reader = _Reader(root=as_mapping(document))
    where = f"#/$defs/{picked}" if picked and "$defs" in document else f"#/definitions/{picked}"
    schema = reader.resolved({"$ref": where} if picked else as_mapping(document), "the schema")
    if "properties" not in schema:
        defined = {**as_mapping(document.get("definitions")), **as_mapping(document.get("$defs"))}
        raise InputError(
            f"{path}: expected the schema of an object with `properties`",
            fix=closest(picked, defined) or (f"write {path}#{next(iter(defined))}" if defined else "give another file"),
        )
    with reader.nesting.entered(schema["properties"]):
        columns = tuple(reader.columns(schema))
    reader.check_left(schema, "the schema", ("additionalProperties",))
    return Draft(
        name=name_for(picked or as_text(schema.get("title")), path),
        description=as_text(schema.get("description")) or as_text(schema.get("title")) or f"Imported from {path.name}.",
        columns=columns,
        format="json",
        extra_fields=reader.extra_fields(schema),
        losses=tuple(reader.losses),
    )


def _check(path: Path, document: Any) -> None:
    from jsonschema import Draft202012Validator, FormatChecker  # type: ignore[import-untyped]  # noqa: PLC0415
    from jsonschema.exceptions import SchemaError  # type: ignore[import-untyped]  # noqa: PLC0415
    from jsonschema.validators import validator_for  # type: ignore[import-untyped]  # noqa: PLC0415

    # A pattern is no regular expression of Python: what a contract cannot take is left out where it is read.
    no_formats = FormatChecker(formats=())
    if not isinstance(document, dict):
        raise InputError(f"{path}: expected a JSON Schema, found no object", fix="give the schema, not a record")
    try:
        validator_for(document, default=Draft202012Validator).check_schema(document, no_formats)
    except SchemaError as error:
        place = "/".join(map(str, error.absolute_path)) or "the whole"
        raise InputError(f"{path}: no JSON Schema: {place}: {error.message[:300]}") from error


@dataclass(slots=True)
class _Reader:
    root: Mapping[str, Any]
    losses: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    nesting: Nesting = field(default_factory=Nesting)

    def resolved(self, schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        """The schema that references lead to."""
        seen: set[str] = set()
        while isinstance(schema.get("$ref"), str):
            ref = schema["$ref"]
            target = self._target(ref)
            if ref in seen or target is None:
                self.losses.append(f"{name}: `$ref` to {ref} leads nowhere in this file")
                return {}
            seen.add(ref)
            schema = {**target, **{k: v for k, v in schema.items() if k != "$ref"}}
        return schema

    def _target(self, ref: str) -> Mapping[str, Any] | None:
        found: Any = self.root
        if not ref.startswith("#"):
            return None
        for step in filter(None, ref[1:].split("/")):
            found = as_mapping(found).get(step.replace("~1", "/").replace("~0", "~"))
        return found if isinstance(found, dict) else None

    def columns(self, schema: Mapping[str, Any]) -> list[Column]:
        required = as_list(schema.get("required"))
        found = []
        for name, each in as_mapping(schema.get("properties")).items():
            inner, null = self._plain(as_mapping(each), f"`{name}`")
            typed = self._type(inner, name)
            if typed is None:
                self.left_out.append(name)
                continue
            described = as_text(inner.get("description")) or as_text(inner.get("title"))
            needed = name in required and not null
            self._note_null(name, present=name in required, null=null)
            made = Field(name=name, type=typed, required=needed, description=described)
            found.append(Column(field=made, **self._rules(inner, f"`{name}`", typed)))
        self._note_undeclared(schema, "")
        return found

    def extra_fields(self, schema: Mapping[str, Any]) -> str:
        """What to do with fields that the contract does not know. It does not know those that were left out."""
        if schema.get("additionalProperties") is not False:
            return "keep"
        if self.left_out:
            names = ", ".join(f"`{name}`" for name in self.left_out)
            self.losses.append(f"`additionalProperties: false` is left out: it would reject records with {names}")
        return "keep" if self.left_out else "reject"

    def _note_undeclared(self, schema: Mapping[str, Any], above: str) -> None:
        declared = as_mapping(schema.get("properties"))
        for name in as_list(schema.get("required")):
            if name not in declared:
                said = f"`{above}{name}` is left out: it is required, but `properties` does not say what it is"
                self.losses.append(said)

    def _note_null(self, name: str, *, present: bool, null: bool) -> None:
        if present and null:
            self.losses.append(f"`{name}`: it must be there, but may be null; a contract takes both as the same")

    def _plain(self, schema: Mapping[str, Any], name: str) -> tuple[Mapping[str, Any], bool]:
        """The schema without the choice of null, and whether there was one."""
        schema, null = self.resolved(schema, name), False
        for key in ("anyOf", "oneOf"):
            choices = [as_mapping(c) for c in as_list(schema.get(key))]
            others = [c for c in choices if c.get("type") != "null"]
            if len(others) == 1:
                null = len(others) < len(choices)
                rest = {k: v for k, v in schema.items() if k != key}
                schema = self.resolved({**others[0], **rest}, name)
        kinds = as_list(schema.get("type"))
        if kinds:
            null = null or "null" in kinds
            left = [k for k in kinds if k != "null"]
            schema = {**schema, "type": left[0] if len(left) == 1 else left}
        if "type" not in schema and (of_values := _type_of_values(schema)):
            schema = {**schema, "type": of_values}
        return schema, null or None in as_list(schema.get("enum"))

    def _type(self, schema: Mapping[str, Any], name: str) -> DataType | None:
        kind = schema.get("type", "object" if "properties" in schema else None)
        parts = schema.get("properties", schema.get("items"))
        if not self.nesting.goes_on(parts):
            self.losses.append(f"`{name}` is left out: it contains itself")
            return None
        match kind:
            case "array" | "object":
                with self.nesting.entered(parts):
                    return self._array(schema, name) if kind == "array" else self._object(schema, name)
            case "string" | "integer" | "number" | "boolean":
                return _scalar(schema, kind)
        said = f"its type is {' or '.join(map(str, kind))}" if isinstance(kind, list) else "it has no type"
        self.losses.append(f"`{name}` is left out: {said if kind else 'it has no type'}")
        return None

    def _array(self, schema: Mapping[str, Any], name: str) -> DataType | None:
        inner, _ = self._plain(as_mapping(schema.get("items")), f"`{name}[]`")
        self._inner_losses(inner, f"{name}[]")
        item = self._type(inner, f"{name}[]")
        return None if item is None else Array(item)

    def _object(self, schema: Mapping[str, Any], name: str) -> DataType | None:
        fields = []
        required = as_list(schema.get("required"))
        for key, each in as_mapping(schema.get("properties")).items():
            inner, null = self._plain(as_mapping(each), f"`{name}.{key}`")
            self._inner_losses(inner, f"{name}.{key}")
            typed = self._type(inner, f"{name}.{key}")
            if typed is not None:
                said = as_text(inner.get("description"))
                fields.append(Field(name=key, type=typed, required=key in required and not null, description=said))
            else:
                self.left_out.append(f"{name}.{key}")
        self._note_undeclared(schema, f"{name}.")
        if not fields:
            self.losses.append(f"`{name}` is left out: an object needs properties")
            return None
        return Object(tuple(fields))

    def _inner_losses(self, schema: Mapping[str, Any], name: str) -> None:
        """What is inside of a column has no rules."""
        kind = str(schema.get("type"))
        rules = {"enum", "const", "pattern", *_OPTIONS.get(kind, ())} & schema.keys()
        self.losses += [f"`{key}` of `{name}` is left out: only columns have rules" for key in sorted(rules)]
        self.check_left(schema, f"`{name}`", (*rules, "additionalProperties"))

    def _rules(self, schema: Mapping[str, Any], name: str, typed: DataType) -> dict[str, Any]:
        kind = str(schema.get("type"))
        known = _OPTIONS.get(kind, ()) if typed not in (Scalar.DATE, Scalar.TIMESTAMP, Scalar.BINARY) else ()
        options: dict[str, Plain] = {key: schema[key] for key in known if key in schema}
        for key in [key for key, value in options.items() if isinstance(value, bool) and key != "uniqueItems"]:
            # In draft 4, `exclusiveMinimum: true` says something about `minimum`.
            if options.pop(key) and (bound := options.pop(key.replace("exclusiveM", "m"), None)) is not None:
                options[key] = bound
        if typed is Scalar.STRING:
            options |= self._text_rules(schema, name)
        values = tuple(schema["enum"]) if "enum" in schema else ((schema["const"],) if "const" in schema else ())
        allowed = tuple(v for v in values if v is not None)
        self.check_left(schema, name, known)
        return {"options": options, "allowed": allowed}

    def _text_rules(self, schema: Mapping[str, Any], name: str) -> dict[str, Plain]:
        found: dict[str, Plain] = {}
        if schema.get("format") in _FORMATS:
            found["format"] = schema["format"]
        elif "format" in schema:
            self.losses.append(f"`format` of {name} is left out: {schema['format']} cannot be checked")
        if "pattern" in schema:
            pattern = whole(schema["pattern"])
            if pattern is None:
                self.losses.append(
                    f"`pattern` of {name} is left out: {schema['pattern']!r} has no one beginning and end"
                )
            else:
                found["pattern"] = pattern
        return found

    def check_left(self, schema: Mapping[str, Any], name: str, known: tuple[str, ...] | frozenset[str]) -> None:
        """Name the keywords that no contract can say."""
        understood = _SILENT | _SAY_NOTHING | _READ | frozenset(known)
        left = [key for key in schema if key not in understood and not key.startswith("x-")]
        if schema.get("additionalProperties") in (True, {}):
            left = [key for key in left if key != "additionalProperties"]
        self.losses += [f"`{key}` of {name} is left out: contracts cannot say it" for key in left]


def _type_of_values(schema: Mapping[str, Any]) -> str:
    values = [v for v in (*as_list(schema.get("enum")), schema.get("const")) if v is not None]
    for kind, name in ((str, "string"), (bool, "boolean"), (int, "integer")):
        if values and all(type(v) is kind for v in values):
            return name
    return ""


def _scalar(schema: Mapping[str, Any], kind: str) -> Scalar:
    form = {"format": schema.get("format"), "contentEncoding": schema.get("contentEncoding")}
    for scalar, keys in SCALARS.items():
        if keys["type"] == kind and len(keys) > 1 and all(form.get(k) == v for k, v in keys.items() if k != "type"):
            return scalar
    return next(scalar for scalar, keys in SCALARS.items() if keys == {"type": kind})
