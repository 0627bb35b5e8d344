"""Contracts of tables from and to the models of dbt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml  # type: ignore[import-untyped]

from tidemill.contracts.changes.described import Described
from tidemill.contracts.conditions import Condition
from tidemill.contracts.formats.draft import Allowed, Column, Draft, whole_key
from tidemill.contracts.formats.exporting import Exported, Rules
from tidemill.contracts.formats.sources import as_list, as_mapping, as_text, name_for, pick, yaml_of
from tidemill.contracts.formats.sql import sql_type
from tidemill.contracts.formats.sql_types import options_of_sql, type_of_sql
from tidemill.contracts.formats.written import written_number
from tidemill.core.contract.contract import OneOf, Severity
from tidemill.core.contract.long_number import LongNumber
from tidemill.core.contract.schema import Field

if TYPE_CHECKING:
    from sqlglot import exp

_METRICS = {"not_null": "nullValues", "unique": "duplicateValues"}
_TESTS = ("data_tests", "tests")


def of_dbt(path: Path, picked: str, dialect: str) -> Draft:
    """The contract of a model; `picked` names one of several. `dialect` is the SQL of its types.

    Raises:
        InputError: the file has no models, or several and none is picked.
    """
    models = {as_text(m.get("name")): m for m in map(as_mapping, as_list(as_mapping(yaml_of(path)).get("models")))}
    name, model = pick(path, "model", models, picked)
    reader = _Model(dialect=dialect)
    return reader.draft(name_for(name, path), model, path)


@dataclass(slots=True)
class _Model:
    dialect: str
    losses: list[str] = field(default_factory=list)

    def draft(self, name: str, model: Mapping[str, Any], path: Path) -> Draft:
        key = [c for each in as_list(model.get("constraints")) for c in self._key(as_mapping(each))]
        found = [self._column(as_mapping(each), key) for each in as_list(model.get("columns"))]
        columns = [column for column in found if column is not None]
        columns = whole_key(columns, [name.lower() for name in key], self.losses)
        if key:
            columns.sort(key=lambda c: key.index(c.field.name) if c.key and c.field.name in key else len(key))
        for tests in _tests(model):
            self.losses.append(f"test {_name(tests)} of the model is left out: contracts cannot say it")
        return Draft(
            name=name,
            description=as_text(model.get("description")) or f"Imported from {path.name}.",
            columns=tuple(columns),
            losses=tuple(self.losses),
        )

    def _key(self, constraint: Mapping[str, Any]) -> list[str]:
        if constraint.get("type") == "primary_key":
            return [str(c) for c in as_list(constraint.get("columns"))]
        self.losses.append(f"constraint {constraint.get('type')} of the model is left out: contracts cannot say it")
        return []

    def _column(self, column: Mapping[str, Any], key: list[str]) -> Column | None:
        name = as_text(column.get("name"))
        kind = self._kind(as_text(column.get("data_type")), name)
        typed = None if kind is None else type_of_sql(kind, name, self.losses)
        if kind is None or typed is None:
            return None
        said, accepted, warned = self._said(column, name)
        is_key = "primary_key" in said or name in key
        made = Field(
            name=name,
            type=typed,
            required="not_null" in said or is_key,
            description=as_text(column.get("description")),
        )
        options = options_of_sql(kind, typed)
        return Column(
            field=made,
            key=is_key,
            unique="unique" in said,
            options=options,
            more=tuple(accepted),
            warned=tuple(warned),
        )

    def _kind(self, written: str, name: str) -> exp.DataType | None:
        from sqlglot import exp  # noqa: PLC0415
        from sqlglot.errors import SqlglotError  # noqa: PLC0415

        if not written:
            self.losses.append(f"`{name}` is left out: it has no data_type")
            return None
        try:
            return exp.DataType.build(written, dialect=self.dialect)
        except (SqlglotError, ValueError):
            self.losses.append(f"`{name}` is left out: {written!r} is no type of {self.dialect}")
            return None

    def _said(self, column: Mapping[str, Any], name: str) -> tuple[set[str], list[Allowed], list[str]]:
        """The constraints and tests of a column by name, its accepted values, and metrics that only warn."""
        said = {str(as_mapping(each).get("type")) for each in as_list(column.get("constraints"))}
        accepted, warned = list[Allowed](), list[str]()
        for each in _tests(column):
            test, arguments = _name(each), _arguments(each)
            severity = _severity(arguments)
            if test == "accepted_values" and severity is not None:
                accepted.append(Allowed(tuple(as_list(arguments.get("values"))), severity))
            elif test in _METRICS and severity is Severity.ERROR:
                said.add(test)
            elif test in _METRICS and severity is not None:
                warned.append(_METRICS[test])
            else:
                self.losses.append(f"test {test} of `{name}` is left out: contracts cannot say it")
        for kind in sorted(said - {"not_null", "unique", "primary_key"}):
            self.losses.append(f"constraint {kind} of `{name}` is left out: contracts cannot say it")
        return said, accepted, warned


def _tests(place: Mapping[str, Any]) -> Iterator[Any]:
    for key in _TESTS:
        yield from as_list(place.get(key))


def _name(test: Any) -> str:
    return test if isinstance(test, str) else next(iter(as_mapping(test)), "")


def _arguments(test: Any) -> Mapping[str, Any]:
    found = as_mapping(as_mapping(test).get(_name(test)))
    return {**found, **as_mapping(found.get("arguments"))}


def _severity(arguments: Mapping[str, Any]) -> Severity | None:
    """How much a test matters; None if it looks at some rows only, or counts them in another way."""
    config = {**arguments, **as_mapping(arguments.get("config"))}
    if config.keys() & {"where", "error_if", "warn_if", "limit"}:
        return None
    return {"error": Severity.ERROR, "warn": Severity.WARNING}.get(str(config.get("severity", "error")).lower())


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Writes numbers with all their digits."""


_Dumper.add_representer(LongNumber, written_number)


def to_dbt(source: Described) -> Exported:
    """The contract as a model with an enforced contract."""
    contract, rules = source.contract, Rules(source, "dbt")
    model: dict[str, Any] = {"name": contract.name, "config": {"contract": {"enforced": True}}}
    if contract.description:
        model["description"] = contract.description
    if key := rules.takes_key():
        model["constraints"] = [{"type": "primary_key", "columns": list(key)}]
    model["columns"] = [_column(f, rules) for f in contract.fields]
    document = {"version": 2, "models": [model]}
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)
    return Exported(text=text, losses=rules.losses())


def _column(field_: Field, rules: Rules) -> dict[str, Any]:
    found: dict[str, Any] = {"name": field_.name, "data_type": sql_type(field_, rules)}
    if field_.description:
        found["description"] = field_.description
    if rules.required(field_.name):
        found["constraints"] = [{"type": "not_null"}]
    used: list[Condition] = []

    def first(condition: Condition) -> bool:
        """A column has one list of accepted values."""
        taken = isinstance(condition, OneOf) and not used
        used.extend([condition] if taken else [])
        return taken

    tests: list[Any] = ["unique"] if rules.is_unique(field_.name) else []
    for condition in rules.of_column(field_.name, first):
        if isinstance(condition, OneOf):
            tests.append({"accepted_values": {"arguments": {"values": list(condition.values)}}})
    return found | ({"data_tests": tests} if tests else {})
