"""Records of one layout are decoded by a pattern as they are decoded one by one."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.decode.decoding import ORDER, a_contract, assert_as_slow, decode
from engine.decode.generated import NOT_NUMBERS, NUMBERS, TIMES, damaged, encoded, texts
from tidemill.core.contract.contract import Contract, ExtraFields
from tidemill.core.contract.schema import Decimal, Scalar
from tidemill.engine.read.decode import decoder_for, json_layouts

TYPES = {name: ORDER[name] for name in ("id", "small", "ratio", "paid", "at", "day", "price", "note")}
TYPES |= {"a.b(c": Scalar.STRING}
CONTRACTS = {
    "kept": a_contract(TYPES),
    "required": a_contract(TYPES, required=["id", "at", "note"]),
    "rejected": a_contract(TYPES, extra_fields=ExtraFields.REJECT),
    "epoch": a_contract(TYPES, required=["at"], options={"timestamp": "epoch_ms"}),
}
TWO = a_contract({"id": Scalar.LONG, "note": Scalar.STRING}, required=["id"])
GOOD = b'{"id":1,"note":"x"}'
ODD = [*NUMBERS, *NOT_NUMBERS]
ODD += [f'"{text}"' for text in [*TIMES, *NUMBERS, "é", "\x7f", "a\tb", "\\u0041", '\\"', "x"]]
ODD += ["true", "false", "True", "null", "nul", "{}", "[]", "", " 1", '"', "1 "]


@pytest.fixture(autouse=True)
def patterns_for_few_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_layouts, "FEWEST", 2)


def by_pattern(contract: Contract, values: Sequence[bytes]) -> list[int]:
    """The positions of records that patterns read."""
    records = pa.array([value.decode() for value in values])
    keep = contract.extra_fields is ExtraFields.KEEP
    parts = json_layouts.laid_out(records, decoder_for(contract).shape, keep=keep)
    return sorted(k for part in parts for k in part.where.tolist())


@st.composite
def like_one_another(draw: st.DrawFn) -> list[bytes]:
    """Records with the same fields in the same order, most of them good; some are damaged."""
    names = draw(st.permutations([*TYPES, "more", "x,y"]))[: draw(st.integers(1, 11))]
    comma, colon = draw(st.sampled_from([(",", ":"), (", ", ": "), (" , ", ":"), (",\n", ":")]))
    values = {
        **dict.fromkeys(("id", "small"), st.integers(-(2**33), 2**33).map(str)),
        "ratio": st.one_of(st.floats(allow_nan=False, allow_infinity=False).map(repr), st.sampled_from(NUMBERS)),
        "paid": st.sampled_from(["true", "false"]),
        "at": st.sampled_from(['"2024-01-01T00:00:00Z"', '"2024-02-30"', "1700000000123", "1700000000123.5"]),
        "day": st.sampled_from(['"2024-01-31"', '"2023-02-29"']),
        "price": st.sampled_from(["1.25", '"1.25"', "-0", "1e2", "123456789.0", "0.125"]),
    }
    text = texts.map(lambda t: f'"{t}"')
    record = st.tuples(
        *(st.one_of(values.get(name, text), st.just("null"), values.get(name, st.sampled_from(ODD))) for name in names)
    ).map(lambda row: "{" + comma.join(f'"{n}"{colon}{v}' for n, v in zip(names, row, strict=True)) + "}")
    return draw(st.lists(st.one_of(record.map(encoded), damaged(record.map(encoded))), min_size=2, max_size=8))


@pytest.mark.parametrize("contract", CONTRACTS.values(), ids=CONTRACTS)
@given(values=like_one_another())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_records_of_a_layout_are_decoded_as_slowly(contract: Contract, values: list[bytes]) -> None:
    assert_as_slow(contract, values)
    alone = [decode(contract, [value]).errors[0].as_py() for value in values]
    assert decode(contract, values).errors.to_pylist() == alone


@pytest.mark.parametrize("of", [*TYPES.values(), Scalar.STRING], ids=str)
@pytest.mark.parametrize("required", [True, False], ids=["required", "optional"])
def test_every_odd_value_among_good_ones_is_decoded_as_slowly(of: Scalar | Decimal, *, required: bool) -> None:
    contract = a_contract({"c": of}, required=["c"] if required else [])
    good = {Scalar.BOOLEAN: "true", Scalar.TIMESTAMP: '"2024-01-01T00:00"', Scalar.DATE: '"2024-01-01"'}.get(of, "7")
    values = [f'{{"c":{value}}}'.encode() for value in ODD]
    usual = [f'{{"c":{good if of is not Scalar.STRING else chr(34) + "x" + chr(34)}}}'.encode()] * (3 * len(values))

    assert_as_slow(contract, [*usual, *values])

    assert len(usual) <= len(by_pattern(contract, [*usual, *values])) < len(usual) + len(values)


@pytest.mark.parametrize(
    "value",
    [
        b'{"id":1,"note":"x","id":2}',
        b'{"id":1,"id":2,"note":"x"}',
        b'{"note":"x","id":1}',
        b'{"id":1}',
        b'{"id":1,"note":"x"}{"id":2,"note":"y"}',
        b'{"id":1,"note":"x"}\n{',
        b'{"id":1,"note":"x"}\n',
        b' {"id":1,"note":"x"}',
        b'{"id":1,"note":"x",}',
        b'{"id":1,"note":"a\x00b"}',
        b'{"id":1,"note":"a\x1fb"}',
        b'{"id":1,"note":"a\\u0062c"}',
        b'{"\\u0069d":1,"note":"x"}',
        b'{"id":01,"note":"x"}',
        b'{"id":-0,"note":"x"}',
        b'{"id":1.0,"note":"x"}',
        b'{"id":99999999999999999999,"note":"x"}',
        b'{"id":null,"note":"x"}',
        b'{"id":"1","note":"x"}',
        b'{"id":1,"note":null,"note":"x"}',
        b'{"id":1,"note":"x","more":{"a":[1,2]}}',
        b'{"id":1,"note":"' + b"x" * 100_000 + b'"',
    ],
    ids=lambda value: value[:40],
)
def test_a_record_that_is_not_certain_is_read_alone(value: bytes) -> None:
    values = [GOOD, GOOD, GOOD, value]
    assert_as_slow(TWO, values)
    assert by_pattern(TWO, values) == [0, 1, 2]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([b'{"id": %d, "note": "x"}' % k for k in range(4)], [0, 1, 2, 3]),
        ([b'{"id":9223372036854775807,"note":"x"}', GOOD, GOOD], [1, 2]),
        ([b'{"id":-999999999999999999,"note":"\xc3\xa9\xf0\x9f\x98\x80\x7f"}', GOOD], [0, 1]),
        ([b'{"id":1,"note":null}', GOOD], [0, 1]),
        # Both layouts have records enough.
        ([GOOD] * 40 + [b'{"note":"x","id":2}'] * 30, [*range(70)]),
        # Fields that the contract does not name are kept.
        ([b'{"z":"a","id":1,"b":[1],"note":"x"}', *[b'{"z":1.5,"id":1,"b":null,"note":"x"}'] * 3], [1, 2, 3]),
        # No two are alike.
        ([b'{"id":1,"note":"x"}', b'{"note":"x","id":1}'], []),
        ([b"{}", b"{}"], []),
        ([b"[1]", b"7"], []),
    ],
    ids=["blanks", "large", "not ascii", "null", "two", "extras", "none", "empty", "no object"],
)
def test_records_that_are_alike_are_read_by_a_pattern(values: list[bytes], found: list[int]) -> None:
    assert_as_slow(TWO, values)
    assert by_pattern(TWO, values) == found


def test_fields_that_a_contract_rejects_are_rejected_however_many_records_have_them() -> None:
    contract = a_contract({"id": Scalar.LONG}, extra_fields=ExtraFields.REJECT)
    values = [b'{"id":1,"more":2}'] * 3
    assert by_pattern(contract, values) == []
    assert decode(contract, values).errors.null_count == 0


@pytest.mark.parametrize("fields", [1, 15, 16])
def test_wide_records_are_decoded_as_slowly(fields: int) -> None:
    contract = a_contract({f"c{n}": Scalar.LONG for n in range(fields)})
    value = "{" + ",".join(f'"c{n}":{n}' for n in range(fields)) + "}"
    assert_as_slow(contract, [value.encode()] * 4)
    assert len(by_pattern(contract, [value.encode()] * 4)) == (0 if fields > 15 else 4)


def test_negative_zero_of_a_double_has_the_sign_that_it_has_alone() -> None:
    contract = a_contract({"c": Scalar.DOUBLE})
    values = [b'{"c":%s}' % text for text in (b"-0", b"-0.0", b"0", b"-0e5", b"1.5")]
    alone = [decode(contract, [value]).columns["c"][0].as_py().hex() for value in values]
    assert [value.as_py().hex() for value in decode(contract, values * 2).columns["c"]] == alone * 2


@pytest.mark.parametrize("length", [1_000, 400_000])
def test_names_that_would_make_a_pattern_too_large_are_read_alone(length: int) -> None:
    values = [b'{"id":1,"%s":2}' % (b"n" * length)] * 4
    assert decode(TWO, values).errors.null_count == 4
    assert by_pattern(TWO, values) == []
