"""What every decoder promises, whatever its format."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark import cloudpickle

from engine.decode.decoding import ACCESS, ORDER, PAGE, a_contract, decode
from tidemill.contracts.extensions import OPTIONS
from tidemill.core.contract.contract import ExtraFields, Format
from tidemill.core.contract.reasons import CODES, sort_of
from tidemill.core.contract.schema import Scalar
from tidemill.core.errors import ContractError
from tidemill.engine.read.decode import decoder_for
from tidemill.tables.arrow_types import arrow_schema

LINE = b'h - - [23/Mar/2014:15:07:00 -0700] "GET /a HTTP/1.1" 200 1'
EVERY = {
    "json": (a_contract(ORDER), b'{"id": 1, "x": 2}'),
    "json rejecting": (a_contract(ORDER, extra_fields=ExtraFields.REJECT), b'{"id": 1}'),
    "csv": (a_contract(PAGE, Format.CSV), b"2024-01-01T00:00:00Z,u,/p,1,200"),
    "access log": (a_contract(ACCESS, Format.ACCESS_LOG), LINE),
    "text": (a_contract({"line": Scalar.STRING}, Format.TEXT), b"any text"),
    "bytes": (a_contract({"value": Scalar.BINARY}, Format.BYTES), b"\xff"),
}
every = pytest.mark.parametrize(("contract", "good"), EVERY.values(), ids=EVERY)


@every
@given(
    st.lists(
        st.one_of(st.none(), st.binary(max_size=30), st.text(max_size=30).map(lambda t: t.encode("utf-8", "replace"))),
        max_size=8,
    )
)
@settings(max_examples=60, deadline=None)
def test_any_bytes_give_a_row_or_a_short_error(contract, good, values):
    decoded = decode(contract, [good, *values, good])

    assert decoded.errors[0].as_py() is None
    assert decoded.columns.slice(0, 1).equals(decoded.columns.slice(len(values) + 1))
    sorts = {sort_of(error) for error in decoded.errors.to_pylist() if error is not None}
    assert {sort.partition("(")[0] for sort in sorts} <= {code.name for code in CODES}


@every
def test_the_schema_has_the_columns_of_the_contract_all_nullable(contract, good):
    schema = decoder_for(contract).schema

    assert pa.schema([f for f in schema if f.name != "_extra"]) == arrow_schema(contract.fields)
    assert all(f.nullable for f in schema)
    keeps = contract.format is Format.JSON and contract.extra_fields is ExtraFields.KEEP
    assert (schema.names[-1] == "_extra") == keeps


@every
def test_no_values_give_no_rows(contract, good):
    assert decode(contract, []).columns.num_rows == 0


@every
def test_only_bad_values_give_only_nulls(contract, good):
    assert decode(contract, [None, None]).errors.null_count == 0


@every
def test_slices_chunks_and_large_arrays_are_decoded_alike(contract, good):
    decoder, values = decoder_for(contract), pa.array([b"\x00", good, None, good, b"\xfe"], pa.binary())
    expected = decoder.decode(values)

    for other in (
        pa.concat_arrays([values, values]).slice(5, 5),
        pa.chunked_array([values[:2], values[2:]]),
        pa.chunked_array([values]),
        values.cast(pa.large_binary()),
    ):
        found = decoder.decode(other)
        assert found.columns.equals(expected.columns)
        assert found.errors.equals(expected.errors)
    empty = decoder.decode(pa.chunked_array([], pa.binary()))
    assert empty.columns.schema == decoder.schema
    assert empty.columns.num_rows == 0


@every
def test_a_decoder_survives_pickling_and_use_before_it(contract, good):
    decoder = decoder_for(contract)
    expected = decoder.decode(pa.array([good], pa.binary()))

    for dumps in (pickle.dumps, cloudpickle.dumps):
        copy = pickle.loads(dumps(decoder))
        assert copy.decode(pa.array([good], pa.binary())).columns.equals(expected.columns)


def test_decoders_work_in_a_fresh_process():
    program = (
        "import pickle, sys, pyarrow as pa\n"
        "for decoder, value in pickle.load(sys.stdin.buffer):\n"
        "    decoded = decoder.decode(pa.array([value], pa.binary()))\n"
        "    assert decoded.errors.null_count == 1 and decoded.columns.schema == decoder.schema\n"
        "    print('decoded')\n"
    )
    pickled = cloudpickle.dumps([(decoder_for(contract), good) for contract, good in EVERY.values()])
    ended = subprocess.run([sys.executable, "-c", program], input=pickled, check=True, stdout=subprocess.PIPE)
    assert ended.stdout.split() == [b"decoded"] * len(EVERY)


def test_text_and_bytes_keep_values_as_they_are_also_empty_ones():
    values = [b"a\r\n\0", b"", b"\xff", None]

    text = decode(EVERY["text"][0], values)
    raw = decode(EVERY["bytes"][0], values)

    assert text.columns["line"].to_pylist() == ["a\r\n\0", "", None, None]
    assert text.errors.to_pylist() == [None, None, "not UTF-8 at byte 0", "tombstone (no value)"]
    assert raw.columns["value"].to_pylist() == values
    assert raw.errors.to_pylist() == [None, None, None, "tombstone (no value)"]


@pytest.mark.parametrize("format", [Format.TEXT, Format.BYTES])
@pytest.mark.parametrize("fields", [{"a": Scalar.LONG}, {"a": Scalar.STRING, "b": Scalar.BINARY}])
def test_text_and_bytes_have_exactly_one_column(format, fields):
    with pytest.raises(ContractError, match=r"contract orders: format .* exactly one field.*`a`"):
        decoder_for(a_contract(fields, format))


@pytest.mark.parametrize("where", [0, 5, 127, 128, 129, 400])
def test_every_record_that_is_not_utf8_is_found(where):
    values = [b"ok"] * 500
    values[where] = "é".encode()[:1]
    values[(where + 200) % 500] = b"a\xed\xa0\x80"

    errors = decode(EVERY["text"][0], values).errors.to_pylist()

    assert {n: e for n, e in enumerate(errors) if e} == {
        where: "not UTF-8 at byte 0",
        (where + 200) % 500: "not UTF-8 at byte 1",
    }


def test_every_format_has_a_decoder_and_says_its_options() -> None:
    # Each of these contracts got a decoder when the tests above ran.
    assert {contract.format for contract, _ in EVERY.values()} == set(Format) == set(OPTIONS)
