"""CSV records become typed rows by position, or an error that names the column."""

from __future__ import annotations

import csv
import datetime as dt
import io
from decimal import Decimal as Number

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.decode.decoding import a_contract, assert_as_slow, decode, error, row, rows
from engine.decode.generated import NOT_NUMBERS, NUMBERS, TIMES, damaged, encoded, texts
from tidemill.core.contract.contract import Format
from tidemill.core.contract.schema import Array, Decimal, Scalar
from tidemill.core.errors import ContractError
from tidemill.engine.read.decode import decoder_for

MANY = settings(max_examples=120, deadline=None)
SALE = {"id": Scalar.LONG, "item": Scalar.STRING, "price": Decimal(6, 2), "day": Scalar.DATE}
SALES = a_contract(SALE, Format.CSV)
THREE = a_contract({"a": Scalar.STRING, "b": Scalar.STRING, "c": Scalar.LONG}, Format.CSV)


def test_fields_are_typed_by_position():
    assert row(SALES, "7,pen,1.20,2024-02-29") == {
        "id": 7,
        "item": "pen",
        "price": Number("1.20"),
        "day": dt.date(2024, 2, 29),
    }


def test_every_type_that_is_written_as_text_is_read():
    kinds = {"i": Scalar.INTEGER, "x": Scalar.DOUBLE, "b": Scalar.BOOLEAN, "t": Scalar.TIMESTAMP}
    contract = a_contract(kinds, Format.CSV, options={"delimiter": ";", "timestamp": "epoch_ms", "null": "NA"})

    when = dt.datetime(2023, 11, 14, 22, 13, 20, tzinfo=dt.UTC)
    assert row(contract, "-5;.5e1;TRUE;1700000000000") == {"i": -5, "x": 5.0, "b": True, "t": when}
    assert row(contract, "NA;NA;NA;NA") == dict.fromkeys(kinds)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b,1", ["a", "b", 1]),
        (",,", [None, None, None]),
        ('"","",1', ["", "", 1]),
        ('"a,""b""\r\n",c,"2"', ['a,"b"\r\n', "c", 2]),
        ('"""","é",3', ['"', "é", 3]),
        (" a , b ,1", [" a ", " b ", 1]),
        ("a,b,1\r\n", ["a", "b", 1]),
        ("a,b,1\n", ["a", "b", 1]),
        ("a\0,b,1", ["a\0", "b", 1]),
    ],
)
def test_quotes_keep_delimiters_line_breaks_and_quotes(text, expected):
    assert list(row(THREE, text).values()) == expected
    assert_as_slow(THREE, [text.encode()])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b", "expected 3 columns, found 2"),
        ("a,b,1,", "expected 3 columns, found 4"),
        ("a", "expected 3 columns, found 1"),
        ('"a,b,1', "column 1: a quote is not closed"),
        ('a,"b,1', "column 2: a quote is not closed"),
        ('a,b"c,1', "column 2: a quote inside a value that is not quoted"),
        ('a,"b"c,1', "column 2: text after the closing quote"),
        ('a,"b" ,1', "column 2: text after the closing quote"),
        ('a, "b",1', "column 2: a quote inside a value that is not quoted"),
        ("a\nb,c,1", "column 1: a line break outside quotes"),
        ("a,b,1\n\n", "column 3: a line break outside quotes"),
        ("a,b,x", '`c`: expected an integer, found "x"'),
        ("a,b, 1", '`c`: expected an integer, found " 1"'),
        ("a,b,1.0", '`c`: expected an integer, found "1.0"'),
        ("a,b,9223372036854775808", "`c`: number 9223372036854775808 does not fit 64 bits"),
        ('a,b,""', '`c`: expected an integer, found ""'),
        ("", "empty value"),
        ("\n", "empty value"),
        ("\ufeffa,b,x", '`c`: expected an integer, found "x"'),
    ],
)
def test_an_error_says_what_was_expected_and_found(text, expected):
    assert error(THREE, text) == expected
    assert_as_slow(THREE, [text.encode()])


def test_bad_records_leave_their_neighbours_alone():
    values = ["a,b,1", 'x"', '"q",,2', '"', ",,", 'c"d",e,4', "f", 'g,"h",5', None, b"\xff", "", '"i",j,6']

    found = rows(THREE, [v.encode() if isinstance(v, str) else v for v in values])

    assert [r and list(r.values()) for r in found] == [
        *(["a", "b", 1], None, ["q", None, 2], None, [None, None, None], None, None, ["g", "h", 5]),
        *(None, None, None, ["i", "j", 6]),
    ]


def test_an_empty_last_field_is_null_before_a_record_that_starts_with_a_quote():
    assert [r["c"] for r in rows(THREE, [b"a,b,", b'"c",d,', b'"",e,1'])] == [None, None, 1]


def test_null_in_a_required_field_is_an_error():
    contract = a_contract(SALE, Format.CSV, required=["item"])

    assert error(contract, "1,,1,2024-01-01") == "`item`: required, but null"
    assert row(contract, '1,"",1,2024-01-01')["item"] == ""


def test_a_quoted_null_text_is_text():
    contract = a_contract({"a": Scalar.STRING, "b": Scalar.STRING}, Format.CSV, options={"null": "-"})

    assert row(contract, '-,"-"') == {"a": None, "b": "-"}
    assert row(contract, ",") == {"a": "", "b": ""}


def test_one_column_needs_no_delimiter():
    contract = a_contract({"a": Scalar.STRING}, Format.CSV)

    assert [r and r["a"] for r in rows(contract, [b"x", b'"y,"', b"p,q", b'""'])] == ["x", "y,", None, ""]


def test_large_batches_are_cut_in_parts_with_the_same_rows():
    values = [b'"%b",b,%d' % (b"x" * 1_000_000, n) for n in range(40)]
    values[25] = b"bad"

    found = decode(THREE, values)

    assert found.columns["c"].to_pylist() == [n if n != 25 else None for n in range(40)]
    assert [n for n in range(40) if found.errors[n].is_valid] == [25]


@pytest.mark.parametrize(
    ("contract", "named"),
    [
        (a_contract({"x": Array(Scalar.LONG)}, Format.CSV), "`x` has type array<bigint>"),
        (a_contract({"x": Scalar.BINARY}, Format.CSV), "`x` has type binary"),
        (a_contract(SALE, Format.CSV, options={"delimiter": ";;"}), "';;'"),
        (a_contract(SALE, Format.CSV, options={"delimiter": '"'}), "`delimiter`"),
        (a_contract(SALE, Format.CSV, options={"delimiter": "é"}), "`delimiter`"),
        (a_contract(SALE, Format.CSV, options={"header": "true"}), "`header`"),
    ],
)
def test_what_csv_cannot_carry_is_refused_when_the_decoder_is_made(contract, named):
    with pytest.raises(ContractError, match="contract orders") as refused:
        decoder_for(contract)
    assert named in str(refused.value)


KINDS = [
    Scalar.STRING,
    Scalar.LONG,
    Scalar.INTEGER,
    Scalar.DOUBLE,
    Scalar.BOOLEAN,
    Scalar.DATE,
    Scalar.TIMESTAMP,
    Decimal(10, 2),
]
fields = st.one_of(
    st.sampled_from([*NUMBERS, *NOT_NUMBERS, *TIMES, "true", "False", '""', '"a""b"', '"x,y"', '"a\n"', '"', 'a"b']),
    texts,
)


@pytest.mark.parametrize(
    "options", [{}, {"delimiter": ";", "null": "NA", "timestamp": "epoch_s"}], ids=["iso", "epoch"]
)
@given(st.data())
@MANY
def test_any_record_is_decoded_as_slowly(options, data):
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    contract = a_contract({f"c{n}": k for n, k in enumerate(kinds)}, Format.CSV, options=options)
    delimiter = options.get("delimiter", ",")
    records = st.lists(fields, min_size=1, max_size=5).map(delimiter.join).map(encoded)
    right = st.tuples(*[fields] * len(kinds)).map(delimiter.join).map(encoded)
    assert_as_slow(contract, data.draw(st.lists(damaged(st.one_of(records, right)), max_size=8)))


@pytest.mark.parametrize("unit", ["iso", "epoch_s", "epoch_us"])
def test_every_odd_number_and_time_is_decoded_as_slowly_in_every_type(unit):
    for kind in [*KINDS, Decimal(38, 0), Decimal(38, 38), Decimal(1, 1)]:
        contract = a_contract({"x": kind}, Format.CSV, options={"timestamp": unit})
        assert_as_slow(contract, [t.encode() for t in [*NUMBERS, *NOT_NUMBERS, *TIMES, "TRUE", "K"]])


@given(
    st.lists(
        st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6), min_size=3, max_size=3)
    )
)
@MANY
def test_what_the_csv_module_writes_is_read_back(table):
    contract = a_contract({"a": Scalar.STRING, "b": Scalar.STRING, "c": Scalar.STRING}, Format.CSV)
    out = [io.StringIO() for _ in table]
    for line, record in zip(out, table, strict=True):
        csv.writer(line, quoting=csv.QUOTE_ALL).writerow(record)

    found = rows(contract, [line.getvalue().encode() for line in out])

    assert [list(r.values()) for r in found] == table
