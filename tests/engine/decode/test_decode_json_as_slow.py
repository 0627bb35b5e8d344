"""The fast JSON decoder says what the slow one says, whatever the bytes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.decode.decoding import ORDER, a_contract, assert_as_slow, decode, rows
from engine.decode.generated import NOT_NUMBERS, NUMBERS, TIMES, damaged, json_records
from tidemill.core.contract.contract import ExtraFields
from tidemill.core.contract.schema import Decimal, Scalar

MANY = settings(max_examples=80, deadline=None)
CONTRACTS = [
    a_contract(ORDER),
    a_contract(ORDER, required=["id", "at", "price", "tags"]),
    a_contract(ORDER, extra_fields=ExtraFields.REJECT, options={"timestamp": "epoch_s"}),
    a_contract(ORDER, required=["at"], options={"timestamp": "epoch_ms"}),
]


@pytest.mark.parametrize("contract", CONTRACTS, ids=["kept", "required", "rejected", "epoch"])
@given(st.data())
@MANY
def test_any_record_is_decoded_as_slowly(contract, data):
    assert_as_slow(contract, data.draw(st.lists(damaged(json_records(list(ORDER))), max_size=4)))


@given(st.lists(st.one_of(st.none(), st.binary(max_size=40)), max_size=5))
@MANY
def test_any_bytes_are_decoded_as_slowly(values):
    assert_as_slow(CONTRACTS[0], values)


@pytest.mark.parametrize("unit", ["iso", "epoch_s", "epoch_ms", "epoch_us"])
def test_every_odd_number_and_time_is_decoded_as_slowly_in_every_type(unit):
    types = [*Scalar, Decimal(10, 2), Decimal(38, 0), Decimal(38, 38), Decimal(1, 1)]
    contract = a_contract({f"c{n}": t for n, t in enumerate(types)}, options={"timestamp": unit})
    written = [*NUMBERS, *NOT_NUMBERS, *(f'"{t}"' for t in [*TIMES, *NUMBERS, *NOT_NUMBERS])]

    found = assert_as_slow(contract, [f'{{"{n}": {t}}}'.encode() for n in contract.columns for t in written])

    assert sum(r is not None for r in found) > 100
    assert sum(r is None for r in found) > 100


@given(st.lists(damaged(json_records(["id", "note"])), min_size=1, max_size=6), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_how_records_are_cut_into_calls_does_not_show(values, cuts):
    contract = a_contract({"id": Scalar.LONG, "note": Scalar.STRING})
    alone = [rows(contract, [v])[0] for v in values]
    errors = [decode(contract, [v]).errors[0].as_py() for v in values]

    often = values * (100 * cuts)

    assert rows(contract, often) == alone * (100 * cuts)
    assert decode(contract, often).errors.to_pylist() == errors * (100 * cuts)
