"""A table is made once, grows with its spec, and is never changed behind its readers' backs."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tables.table_writers import FIELDS, a_row, a_spec, load, state_of
from tidemill.core.contract.schema import Array, Decimal, Field, Object, Scalar
from tidemill.core.errors import Incompatible
from tidemill.tables.create import ensure_table
from tidemill.tables.interface import TableSpec

NESTED = Array(Object((Field(name="item", type=Scalar.STRING, description="what it is"),)))


def test_a_new_table_has_what_its_spec_says(tmp_path: Path) -> None:
    day = Field(name="day", type=Scalar.DATE, required=True)
    spec = a_spec(tmp_path, fields=(*FIELDS, day), partition_by=("day",), description="views by minute")
    handle = DeltaTable(spec.uri)
    metadata = handle.metadata()
    assert tuple(handle.protocol()[:2]) == (1, 2)
    assert (metadata.name, metadata.description) == ("views", "views by minute")
    assert metadata.partition_columns == ["day"]
    comments = {f.name: f.metadata.get("comment") for f in handle.schema().fields}
    assert comments == {
        "window_start": "first moment of the window",
        "page": None,
        "views": "how often it was seen",
        "cost": None,
        "day": None,
    }
    assert all(f.nullable for f in handle.schema().fields)


def test_a_table_that_is_as_it_should_be_is_left_alone(tmp_path: Path) -> None:
    nested = Field(name="nested", type=NESTED)
    spec = a_spec(tmp_path, fields=(*FIELDS, nested, Field(name="price", type=Decimal(38, 0))))
    load(spec, [a_row(0)], 1)
    before = state_of(spec)
    ensure_table(spec)
    ensure_table(dataclasses.replace(spec, fields=FIELDS, description="another"))
    assert state_of(spec) == before


def test_missing_columns_are_added_with_their_comments(tmp_path: Path) -> None:
    spec = a_spec(tmp_path)
    added = Field(name="bytes", type=Scalar.LONG, required=True, description="how many")
    ensure_table(dataclasses.replace(spec, fields=(added, *FIELDS)))
    last = DeltaTable(spec.uri).schema().fields[-1]
    assert (last.name, last.nullable, last.metadata) == ("bytes", True, {"comment": "how many"})
    assert state_of(spec)[0] == 1


def _with(field: Field) -> tuple[Field, ...]:
    return tuple(field if f.name == field.name else f for f in (*FIELDS, Field(name="nested", type=NESTED)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"fields": _with(Field(name="views", type=Scalar.INTEGER))},
            "column 'views': expected int, found bigint",
        ),
        (
            {"fields": _with(Field(name="cost", type=Decimal(20, 2)))},
            r"column 'cost': expected decimal\(20,2\), found decimal\(20,4\)",
        ),
        (
            {"fields": _with(Field(name="nested", type=Array(Scalar.STRING)))},
            "column 'nested': expected array<string>, found array<struct<`item`: string>>",
        ),
        ({"fields": (*FIELDS, Field(name="Nested", type=NESTED))}, "column: expected Nested, found nested"),
        ({"partition_by": ("page",)}, r"the partitions: expected \['page'\], found \[\]"),
    ],
)
def test_a_change_that_cannot_be_followed_is_refused(tmp_path: Path, changes: dict, message: str) -> None:
    spec = a_spec(tmp_path, fields=(*FIELDS, Field(name="nested", type=NESTED)))
    before = state_of(spec)
    with pytest.raises(Incompatible, match=rf"table views \(.*\): {message}"):
        ensure_table(dataclasses.replace(spec, **changes))
    assert state_of(spec) == before


def test_partitions_that_went_missing_are_refused(tmp_path: Path) -> None:
    spec = a_spec(tmp_path, partition_by=("page",))
    with pytest.raises(Incompatible, match=r"expected \[\], found \['page'\]"):
        ensure_table(dataclasses.replace(spec, partition_by=()))


def test_a_table_that_needs_a_newer_protocol_is_refused(tmp_path: Path) -> None:
    spec = a_spec(tmp_path)
    DeltaTable(spec.uri).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    with pytest.raises(Incompatible, match=r"expected protocol \(1, 2\), found \(1, 4\)"):
        ensure_table(spec)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fields": (*FIELDS, Field(name="PAGE", type=Scalar.STRING))}, "differ in case only"),
        ({"fields": (Field(name="two words", type=Scalar.STRING),), "pruned_by": ()}, "cannot be named 'two words'"),
        ({"partition_by": ("nothing",)}, "has no column 'nothing'; it has window_start, page"),
        ({"partition_by": ("window_start",)}, "cannot partition by 'window_start'"),
        ({"pruned_by": ("page",)}, "cannot prune by 'page'"),
    ],
)
def test_a_wrong_spec_fails_when_it_is_made(changes: dict, message: str) -> None:
    values = {"uri": "nowhere", "name": "views", "fields": FIELDS, "pruned_by": ("window_start",)}
    with pytest.raises(ValueError, match=message):
        TableSpec(**{**values, **changes})
