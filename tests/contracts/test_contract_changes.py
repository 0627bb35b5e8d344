"""Each change between two versions of a contract is found, and told by what it breaks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.contract_changes import (
    CASES,
    CSV,
    ID,
    JSON,
    NAME,
    OF_RECORDS,
    OF_TABLES,
    SAME,
    column,
    contract,
    holds,
    options,
    promised,
)
from support.contract_kinds import BREAKS
from tidemill.contracts.changes.change import KINDS, Breaks, Bump, Change
from tidemill.contracts.changes.compare import bump_needed, changes_of, is_raised
from tidemill.contracts.changes.described import described

READERS, WRITERS, BACKFILLS, STATE = Breaks.READERS, Breaks.WRITERS, Breaks.BACKFILLS, Breaks.STATE


def compared(folder: Path, old: dict[str, Any], new: dict[str, Any]) -> list[Change]:
    for name, given in (("old", old), ("new", new)):
        (folder / name).mkdir(exist_ok=True)
        text = contract(*given["p"], **{key: value for key, value in given.items() if key != "p"})
        (folder / name / "orders.odcs.yaml").write_text(text, encoding="utf-8")
    (before, wrong), (after, more) = described(folder / "old"), described(folder / "new")
    assert not [*wrong, *more]
    return changes_of(before, after)


@pytest.mark.parametrize("custom", ["", JSON], ids=["table", "records"])
@pytest.mark.parametrize(("kind", "old", "new"), CASES, ids=lambda case: case if isinstance(case, str) else "")
def test_a_change_of_records_and_tables_is_told(
    tmp_path: Path, kind: str, old: dict[str, Any], new: dict[str, Any], custom: str
) -> None:
    [change] = compared(tmp_path, {**old, "custom": custom}, {**new, "custom": custom})
    assert change.kind == kind
    assert " ".join(sorted(change.breaks)) == BREAKS[kind][0 if custom else 1]
    assert str(change).startswith("orders: ")


@pytest.mark.parametrize(
    ("kind", "old", "new"), [*OF_TABLES, *OF_RECORDS], ids=lambda case: case if isinstance(case, str) else ""
)
def test_a_change_of_either_is_told(tmp_path: Path, kind: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    [change] = compared(tmp_path, old, new)
    assert change.kind == kind
    assert " ".join(sorted(change.breaks)) == BREAKS[kind][0 if "custom" in new else 1]


def test_fields_of_csv_are_known_by_their_place(tmp_path: Path) -> None:
    csv = {"custom": CSV}
    [moved] = compared(tmp_path, {"p": [ID, column()], **csv}, {"p": [column(), ID], **csv})
    assert (moved.kind, moved.breaks) == ("column-moved", {WRITERS, BACKFILLS, STATE})
    between = compared(tmp_path, {"p": [ID, column()], **csv}, {"p": [ID, column(name="y"), column()], **csv})
    assert [c.kind for c in between] == ["column-count", "column-moved", "field-added"]


def test_lines_of_csv_with_more_or_fewer_columns_break_those_that_are_written(tmp_path: Path) -> None:
    csv = {"custom": CSV}
    shorter, longer = {"p": [ID], **csv}, {"p": [ID, column()], **csv}
    for old, new, told in ((shorter, longer, "1 column, now 2 columns"), (longer, shorter, "2 columns, now 1 column")):
        [count] = [c for c in compared(tmp_path, old, new) if c.kind == "column-count"]
        assert (count.breaks, count.message) == ({WRITERS, BACKFILLS, STATE}, told)
    to_csv = compared(tmp_path, {"p": [ID], "custom": JSON}, longer)
    assert "column-count" not in [c.kind for c in to_csv]


def test_contracts_come_and_go(tmp_path: Path) -> None:
    compared(tmp_path, {"p": [ID]}, {"p": [ID]})
    old = tmp_path / "old" / "orders.odcs.yaml"
    old.rename(old.with_name("bills.odcs.yaml")).write_text(contract(ID).replace("id: orders", "id: bills"))
    found = changes_of(described(tmp_path / "old")[0], described(tmp_path / "new")[0])
    assert [(c.contract, c.kind, c.breaks) for c in found] == [
        ("bills", "contract-removed", {READERS}),
        ("orders", "contract-added", set()),
    ]


def test_a_file_with_another_name_is_the_same_contract(tmp_path: Path) -> None:
    compared(tmp_path, {"p": [ID]}, {"p": [ID, column()]})
    (tmp_path / "old" / "orders.odcs.yaml").rename(tmp_path / "old" / "bills.odcs.yaml")
    found = changes_of(described(tmp_path / "old")[0], described(tmp_path / "new")[0])
    assert {c.kind: c.message for c in found} == {"contract-renamed": "bills, now orders", "field-added": ""}


def test_an_object_that_gets_company_is_the_same_contract(tmp_path: Path) -> None:
    compared(tmp_path, {"p": [ID]}, {"p": [ID]})
    new = tmp_path / "new" / "orders.odcs.yaml"
    new.write_text(new.read_text() + "  - {name: bills, properties: [{name: id, logicalType: integer}]}\n")
    found = changes_of(described(tmp_path / "old")[0], described(tmp_path / "new")[0])
    assert [(c.contract, c.kind) for c in found] == [
        ("orders#bills", "contract-added"),
        ("orders#orders", "contract-renamed"),
    ]


def test_another_object_of_a_file_does_not_stand_for_one_that_is_gone(tmp_path: Path) -> None:
    compared(tmp_path, {"p": [ID]}, {"p": [ID]})
    for version, name in (("old", "bills"), ("new", "debts")):
        file = tmp_path / version / "orders.odcs.yaml"
        file.write_text(file.read_text() + f"  - {{name: {name}, properties: [{{name: id, logicalType: integer}}]}}\n")
    found = changes_of(described(tmp_path / "old")[0], described(tmp_path / "new")[0])
    assert [(c.contract, c.kind) for c in found] == [
        ("orders#bills", "contract-removed"),
        ("orders#debts", "contract-added"),
    ]


def test_what_says_the_same_is_no_change(tmp_path: Path) -> None:
    named = "quality: [{type: library, name: NAME, metric: nullValues, mustBe: 0}]"
    old, new = (column(named.replace("NAME", name)) for name in ("one", "two"))
    assert compared(tmp_path, {"p": [old]}, {"p": [new]}) == []
    assert compared(tmp_path, {"p": [ID, NAME]}, {"p": [f"{ID}  # the same", NAME]}) == []
    minutes, seconds = {"p": [ID], "top": promised(15, "min")}, {"p": [ID], "top": promised(900, "s")}
    assert compared(tmp_path, minutes, seconds) == []


@pytest.mark.parametrize(("old", "new"), [*SAME, *((new, old) for old, new in SAME)])
def test_rules_that_allow_the_same_rows_are_no_change(tmp_path: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    assert compared(tmp_path, old, new) == []


def test_bounds_that_a_plan_sees_to_allow_the_same_are_no_change_of_records(tmp_path: Path) -> None:
    old, new = ({"p": [options(text)], "custom": JSON} for text in ("minimum: 5", "exclusiveMinimum: 4"))
    assert compared(tmp_path, old, new) == []


@pytest.mark.parametrize("custom", ["", JSON], ids=["table", "records"])
def test_information_is_told_with_its_line_and_values(tmp_path: Path, custom: str) -> None:
    same = {"p": [ID, column("tags: [a]")], "custom": custom}
    compared(tmp_path, same, same)
    new = tmp_path / "new" / "orders.odcs.yaml"
    new.write_text(new.read_text().replace("id: orders", "id: bills").replace("tags: [a]", "tags: [b]"))
    found = changes_of(described(tmp_path / "old")[0], described(tmp_path / "new")[0])
    lines = new.read_text().splitlines()
    assert [(c.kind, c.where, c.message, c.bump) for c in found] == [
        ("information-changed", "", "id orders, now bills", Bump.PATCH),
        ("information-changed", "x", "tags", Bump.PATCH),
    ]
    assert ["id: bills" in lines[found[0].line - 1], "tags: [b]" in lines[found[1].line - 1]] == [True, True]


@pytest.mark.parametrize("custom", ["", JSON], ids=["table", "records"])
def test_line_ends_in_descriptions_are_no_change(tmp_path: Path, custom: str) -> None:
    old, new = ({"p": [ID], "custom": custom, "top": f"description: {{usage: {text}}}"} for text in ("a b", "'a   b '"))
    assert compared(tmp_path, old, new) == []


@pytest.mark.parametrize("custom", ["", JSON], ids=["table", "records"])
def test_blanks_in_a_condition_are_no_change(tmp_path: Path, custom: str) -> None:
    old, new = (
        {"p": [ID], "quality": holds(sql), "custom": custom} for sql in ("id > 3 AND true", "id  >  3 and TRUE")
    )
    assert compared(tmp_path, old, new) == []


@pytest.mark.parametrize("custom", ["", JSON], ids=["table", "records"])
def test_rules_go_with_their_column(tmp_path: Path, custom: str) -> None:
    ruled = options("minimum: 0, maximum: 9")
    quality = f"{holds('x > id')}, {holds('x < 5', 'other')}"
    [gone] = compared(tmp_path, {"p": [ID, ruled], "quality": quality, "custom": custom}, {"p": [ID], "custom": custom})
    assert (gone.kind, gone.where) == ("field-removed", "x")


@pytest.mark.parametrize("custom", ["", JSON], ids=["table", "records"])
def test_rules_follow_the_name_of_their_column(tmp_path: Path, custom: str) -> None:
    old, new = (
        {
            "p": [ID, options("minimum: 0").replace("name: x", f"name: {name}, description: what")],
            "quality": f"{holds(f'{name} > id')}, {holds(f'{name} < 5', 'other')}",
            "custom": custom,
        }
        for name in ("x", "y")
    )
    [renamed] = compared(tmp_path, old, new)
    assert (renamed.kind, renamed.message) == ("field-renamed", "x, now y")


def test_a_key_follows_the_name_of_its_column(tmp_path: Path) -> None:
    key = "{name: NAME, logicalType: integer, primaryKey: true, description: which}"
    old, new = ({"p": [key.replace("NAME", name)]} for name in ("x", "y"))
    assert [change.kind for change in compared(tmp_path, old, new)] == ["field-renamed"]


def test_a_change_of_a_rule_stands_at_its_column_and_line(tmp_path: Path) -> None:
    old, new = (
        {"p": [ID, column(f"description: a, quality: [{{metric: nullValues, mustBeLessThan: {n}}}]")]} for n in (5, 6)
    )
    [weaker] = compared(tmp_path, old, new)
    lines = (tmp_path / "new" / "orders.odcs.yaml").read_text(encoding="utf-8").splitlines()
    assert (weaker.where, "mustBeLessThan: 6" in lines[weaker.line - 1]) == ("x", True)
    [gone] = compared(tmp_path, old, {"p": [ID, column("description: a")]})
    lines = (tmp_path / "new" / "orders.odcs.yaml").read_text(encoding="utf-8").splitlines()
    assert (gone.where, "name: x" in lines[gone.line - 1]) == ("x", True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_breaks_what_is_written_down(kind: str) -> None:
    told = (" ".join(sorted(parties)) for parties in (KINDS[kind].records, KINDS[kind].table))
    assert tuple(told) == BREAKS[kind]


def test_every_kind_of_change_has_its_case() -> None:
    told = {kind for kind, *_ in (*CASES, *OF_TABLES, *OF_RECORDS)}
    assert told | {"contract-added", "contract-removed", "contract-renamed", "column-moved", "column-count"} == set(
        KINDS
    )


def test_a_change_stands_at_the_line_of_the_new_file(tmp_path: Path) -> None:
    [change] = compared(tmp_path, {"p": [ID, column()]}, {"p": [ID, column("required: true")]})
    lines = (tmp_path / "new" / "orders.odcs.yaml").read_text(encoding="utf-8").splitlines()
    assert change.file == str(tmp_path / "new" / "orders.odcs.yaml")
    assert "name: x" in lines[change.line - 1]


@pytest.mark.parametrize(
    ("before", "after", "needed", "raised"),
    [
        ("1.0.0", "1.0.0", Bump.NONE, True),
        ("1.0.0", "1.0.1", Bump.PATCH, True),
        ("1.0.0", "1.0.1", Bump.MINOR, False),
        ("1.9.3", "1.10.0", Bump.MINOR, True),
        ("1.9.3", "1.10.0", Bump.MAJOR, False),
        ("1.9.3", "2.0.0", Bump.MAJOR, True),
        ("0.1.0", "0.2.0", Bump.MAJOR, True),
        ("0.1.0", "0.1.1", Bump.MAJOR, False),
        ("2.0.0", "1.0.0", Bump.PATCH, False),
        ("2024-01", "2024-01", Bump.PATCH, False),
        ("2024-01", "2024-02", Bump.MAJOR, True),
    ],
)
def test_a_version_rises_as_much_as_is_needed(before: str, after: str, needed: Bump, raised: bool) -> None:
    assert is_raised(before, after, needed) is raised


def test_the_worst_change_says_what_is_needed(tmp_path: Path) -> None:
    found = compared(tmp_path, {"p": [ID, NAME]}, {"p": [ID, column()]})
    assert {c.kind: c.bump for c in found} == {"field-removed": Bump.MAJOR, "field-added": Bump.MINOR}
    assert bump_needed(found) is Bump.MAJOR
    assert bump_needed([]) is Bump.NONE
