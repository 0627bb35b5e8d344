"""What a contract file says becomes a contract."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tidemill.contracts.load import load_contract, load_contracts
from tidemill.core.contract.contract import Contract, ExtraFields, Format
from tidemill.core.contract.schema import Array, Decimal, Field, Object, Scalar, spark_type
from tidemill.core.errors import ContractError

Load = Callable[..., Contract]


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("logicalType: string", Scalar.STRING),
        ("logicalType: string\n  physicalType: STRING", Scalar.STRING),
        ("logicalType: string\n  physicalType: binary", Scalar.BINARY),
        ("logicalType: integer", Scalar.LONG),
        ("logicalType: integer\n  physicalType: bigint", Scalar.LONG),
        ("logicalType: integer\n  physicalType: int", Scalar.INTEGER),
        ("logicalType: integer\n  physicalType: INTEGER", Scalar.INTEGER),
        ("logicalType: number", Scalar.DOUBLE),
        ("logicalType: number\n  physicalType: double", Scalar.DOUBLE),
        ("logicalType: number\n  physicalType: decimal(12,2)", Decimal(12, 2)),
        ("logicalType: number\n  physicalType: DECIMAL( 38 , 38 )", Decimal(38, 38)),
        ("logicalType: number\n  physicalType: decimal(9)", Decimal(9, 0)),
        ("logicalType: boolean", Scalar.BOOLEAN),
        ("logicalType: date", Scalar.DATE),
        ("logicalType: timestamp", Scalar.TIMESTAMP),
        ("logicalType: array\n  items: {logicalType: integer}", Array(Scalar.LONG)),
        (
            "logicalType: array\n  items: {logicalType: array, items: {logicalType: date}}",
            Array(Array(Scalar.DATE)),
        ),
    ],
)
def test_each_type_has_its_spelling(an_output: Load, declared: str, expected: object) -> None:
    contract = an_output(f"- name: x\n  {declared}")
    assert contract.fields[0].type == expected


def test_objects_nest_and_say_which_of_their_fields_are_required(an_input: Load) -> None:
    contract = an_input(
        """
        - name: order
          logicalType: object
          properties:
            - {name: id, logicalType: integer, required: true, description: Number of the order.}
            - name: lines
              logicalType: array
              items:
                logicalType: object
                properties:
                  - {name: price, logicalType: number, physicalType: "decimal(9,2)"}
        """
    )
    price = Field(name="price", type=Decimal(9, 2))
    number = Field(name="id", type=Scalar.LONG, required=True, description="Number of the order.")
    assert contract.fields[0].type == Object((number, Field(name="lines", type=Array(Object((price,))))))
    text = "struct<`id`: bigint, `lines`: array<struct<`price`: decimal(9,2)>>>"
    assert spark_type(contract.fields[0].type) == text


def test_the_name_is_the_file_name_and_the_source_is_the_file(file: object, tmp_path: Path, an_output: Load) -> None:
    contract = an_output("- {name: x, logicalType: string}")
    assert (contract.name, contract.version) == ("orders", "1.0.0")
    assert contract.source == str(tmp_path / "orders.odcs.yaml")


def test_fields_keep_the_order_of_the_file_and_their_descriptions(an_output: Load) -> None:
    contract = an_output(
        """
        - {name: b, logicalType: string, required: true, description: "Second,\\n  in two lines."}
        - {name: a, logicalType: string}
        """
    )
    assert contract.columns == ("b", "a")
    assert contract.fields[0] == Field(name="b", type=Scalar.STRING, required=True, description="Second, in two lines.")


def test_a_contract_with_a_format_is_an_input(an_input: Load) -> None:
    contract = an_input(
        "- {name: at, logicalType: timestamp, required: true}",
        custom="""
        - {property: format, value: json}
        - {property: extraFields, value: reject}
        - {property: timestamp, value: epoch_ms}
        """,
    )
    assert contract.format is Format.JSON
    assert contract.extra_fields is ExtraFields.REJECT
    assert contract.options == {"timestamp": "epoch_ms"}
    assert contract.row_rules == contract.table_rules == ()
    assert contract.fields[0].required


@pytest.mark.parametrize("word", list(Format))
def test_every_format_is_known(an_input: Load, word: Format) -> None:
    contract = an_input("- {name: x, logicalType: string}", custom=f"- {{property: format, value: {word}}}")
    assert contract.format is word
    assert contract.extra_fields is ExtraFields.KEEP


def test_options_of_csv_are_text(an_input: Load) -> None:
    contract = an_input(
        "- {name: x, logicalType: string}",
        custom="""
        - {property: format, value: csv}
        - {property: "null", value: "no"}
        - {property: delimiter, value: ";"}
        """,
    )
    assert contract.options == {"null": "no", "delimiter": ";"}


def test_custom_properties_of_other_vendors_are_left_to_them(an_output: Load) -> None:
    contract = an_output(
        """
        - name: x
          logicalType: string
          customProperties:
            - {property: widget, value: [1, 2]}
        """,
        top="customProperties: [{property: costCenter, value: 12}]",
    )
    assert contract.format is None


def test_a_primary_key_is_in_the_order_of_its_positions(an_output: Load) -> None:
    contract = an_output(
        """
        - {name: page, logicalType: string, primaryKey: true, primaryKeyPosition: 2}
        - {name: views, logicalType: integer, primaryKeyPosition: -1}
        - {name: start, logicalType: timestamp, primaryKey: true, primaryKeyPosition: 1}
        """
    )
    assert contract.primary_key == ("start", "page")
    assert [f.required for f in contract.fields] == [True, False, True]


def test_a_primary_key_without_positions_is_in_the_order_of_the_file(an_output: Load) -> None:
    contract = an_output(
        """
        - {name: b, logicalType: string, primaryKey: true}
        - {name: a, logicalType: string, primaryKey: true}
        """
    )
    assert contract.primary_key == ("b", "a")


def test_the_description_is_that_of_the_schema_object_or_the_purpose(file: object, an_output: Load) -> None:
    contract = an_output("- {name: x, logicalType: string}", top="description: {purpose: Why it is there.}")
    assert contract.description == "Why it is there."


def test_informative_sections_are_accepted(an_output: Load) -> None:
    contract = an_output(
        """
        - name: x
          logicalType: string
          businessName: Ex
          classification: public
          criticalDataElement: true
          tags: [a, b]
          examples: [1, two, null, 2024-01-31]
          authoritativeDefinitions: [{url: "https://example.org", type: glossary}]
          transformLogic: upper(y)
          transformDescription: Upper case.
          transformSourceObjects: [y]
          encryptedName: x_secret
          physicalName: x
          partitioned: false
          partitionKeyPosition: -1
          relationships: []
          semanticType: dimension
          synonyms: [{synonym: ix}]
          deprecated: false
        """,
        top="""
        name: Orders
        tenant: us
        domain: sales
        dataProduct: orders
        tags: [sales]
        contractCreatedTs: "2024-01-31T00:00:00Z"
        context: Amounts are in cents.
        description: {purpose: p, usage: u, limitations: l}
        servers: [{server: lake, type: s3, location: "s3://lake/orders", format: delta}]
        support: [{channel: "#orders", url: "https://example.org/chat"}]
        price: {priceAmount: 9.95, priceCurrency: USD, priceUnit: month}
        team: {name: sales, members: [{username: ada, role: owner, dateIn: 2024-01-31}]}
        roles: [{role: reader, access: read}]
        slaProperties: [{property: latency, value: 4, unit: d}]
        authoritativeDefinitions: [{url: "https://example.org", type: canonicalUrl}]
        """,
    )
    assert contract.columns == ("x",)


def test_a_team_may_be_a_list_of_members(an_output: Load) -> None:
    assert an_output("- {name: x, logicalType: string}", top="team: [{username: ada}]", version="v3.1.0").fields


@pytest.mark.parametrize("version", ["v3.1.0", "v3.2.0"])
def test_both_versions_are_read_alike(an_output: Load, version: str) -> None:
    assert an_output("- {name: x, logicalType: string, required: true}", version=version).table_rules


def test_a_folder_gives_its_contracts_by_name(file: object, tmp_path: Path, an_output: Load) -> None:
    an_output("- {name: x, logicalType: string}")
    text = (tmp_path / "orders.odcs.yaml").read_text(encoding="utf-8")
    (tmp_path / "b.odcs.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "notes.yaml").write_text("a: 1", encoding="utf-8")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a.odcs.yml").write_text(text, encoding="utf-8")
    (tmp_path / "inner" / "plain.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "inner" / "C.ODCS.YAML").write_text(text, encoding="utf-8")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "d.odcs.yaml").write_text("broken", encoding="utf-8")
    assert list(load_contracts(tmp_path)) == ["C", "a", "b", "orders", "plain"]


def test_one_of_several_schema_objects_is_a_contract(an_output: Load) -> None:
    path = Path(an_output("- {name: x, logicalType: string}").source)
    second = "  - name: second\n    properties: [{name: y, logicalType: integer}]\n"
    path.write_text(path.read_text(encoding="utf-8") + second, encoding="utf-8")
    first, other = load_contract(path, "orders"), load_contract(path, "second")
    assert (first.name, first.columns) == ("orders#orders", ("x",))
    assert (other.name, other.columns) == ("orders#second", ("y",))


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="there is no such folder of contracts"):
        load_contracts(tmp_path / "nothing")


def test_an_error_lists_every_fault_with_its_line(file: object, tmp_path: Path) -> None:
    path = tmp_path / "orders.odcs.yaml"
    path.write_text("apiVersion: v3.2.0\nkind: Contract\nid: x\nversion: 1.0\nschema: orders\n", encoding="utf-8")
    with pytest.raises(ContractError) as caught:
        load_contract(path)
    lines = [line for line in str(caught.value).split("\n") if line.startswith(str(path))]
    assert [line.removeprefix(f"{path}:").split(":")[0] for line in lines] == ["2", "4", "5"]
    assert "  fix: put it in quotes" in str(caught.value).split("\n")
    assert not caught.value.retryable


def test_a_copy_is_the_same_contract_from_another_place(tmp_path: Path, our_contracts: Path) -> None:
    ours = our_contracts / "web_access.odcs.yaml"
    copy = tmp_path / ours.name
    shutil.copy(ours, copy)
    first, second = load_contract(ours), load_contract(copy)
    assert (first.source, second.source) == (str(ours), str(copy))
    assert replace(first, source="") == replace(second, source="")


def test_a_file_that_changes_is_another_contract_and_a_broken_one_an_error_each_time(
    tmp_path: Path, our_contracts: Path
) -> None:
    text = (our_contracts / "web_access.odcs.yaml").read_text(encoding="utf-8")
    path = tmp_path / "web_access.odcs.yaml"
    for version in ("7.0.0", "7.0.1"):
        path.write_text(re.sub("(?m)^version: .*", f"version: {version}", text), encoding="utf-8")
        assert load_contract(path).version == version
    path.write_text("kind: nothing", encoding="utf-8")
    for _ in range(2):
        with pytest.raises(ContractError, match=str(path)):
            load_contract(path)
    path.unlink()
    with pytest.raises(ContractError, match="there is no such file"):
        load_contract(path)
