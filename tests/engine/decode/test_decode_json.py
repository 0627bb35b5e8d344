"""JSON records become typed rows, or an error that names the field."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal as Number

import pytest

from engine.decode.decoding import ORDER, PAGE, a_contract, assert_as_slow, decode, error, row, rows
from tidemill.core.contract.contract import ExtraFields, Format
from tidemill.core.contract.schema import Array, Decimal, Field, Object, Scalar
from tidemill.core.errors import ContractError
from tidemill.engine.read.decode import decoder_for

PAGES = a_contract(PAGE)
STRICT = a_contract(PAGE, extra_fields=ExtraFields.REJECT)
ORDERS = a_contract(ORDER)


def at(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)


def test_good_extra_cut_and_not_utf8_make_two_rows_and_two_errors():
    good = b'{"ts":"2024-01-01T00:00:00.123Z","user":"u1","page":"/p/42","bytes":1234,"status":200}'
    values = [good, good[:-1] + b',"ref":"x"}', good[:40], b"\xff"]

    found = decode(PAGES, values)

    expected = {"ts": at(2024, 1, 1, 0, 0, 0, 123_000), "user": "u1", "page": "/p/42", "bytes": 1234, "status": 200}
    good_row, extra_row, *bad = found.columns.to_pylist()
    assert good_row == {**expected, "_extra": None}
    assert extra_row == {**expected, "_extra": '{"ref":"x"}'}
    assert [set(r.values()) for r in bad] == [{None}, {None}]
    assert found.errors.to_pylist() == [None, None, "cut JSON at byte 40", "not UTF-8 at byte 0"]


def test_every_type_is_read_exactly():
    text = """{"id": 9223372036854775807, "small": -2147483648, "ratio": 3, "paid": true, "at": "1969-12-31 23:59:59.5",
        "day": "0001-01-01", "price": 12345678.90, "huge": "99999999999999999999999999999999999999", "note": "\\u0000é",
        "blob": "AP8=", "tags": ["a", null], "times": ["2024-01-01T00:00Z", null], "place": {"lat": -0.5, "tax": "1e2"},
        "lines": [{"sku": "x", "n": [1.5, null]}, null, {}]}"""

    assert row(ORDERS, text) == {
        "id": 2**63 - 1,
        "small": -(2**31),
        "ratio": 3.0,
        "paid": True,
        "at": at(1969, 12, 31, 23, 59, 59, 500_000),
        "day": dt.date(1, 1, 1),
        "price": Number("12345678.90"),
        "huge": Number(10**38 - 1),
        "note": "\0é",
        "blob": b"\0\xff",
        "tags": ["a", None],
        "times": [at(2024, 1, 1), None],
        "place": {"lat": -0.5, "tax": Number("100.0")},
        "lines": [{"sku": "x", "n": [Number("1.5"), None]}, None, {"sku": None, "n": None}],
        "_extra": None,
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"id": "abc"}', '`id`: expected an integer, found "abc"'),
        ('{"id": 3.0}', "`id`: expected an integer, found 3.0"),
        ('{"id": 1e2}', "`id`: expected an integer, found 1e2"),
        ('{"id": 9223372036854775808}', "`id`: number 9223372036854775808 does not fit 64 bits"),
        ('{"id": -9223372036854775809}', "`id`: number -9223372036854775809 does not fit 64 bits"),
        ('{"small": 2147483648}', "`small`: number 2147483648 does not fit 32 bits"),
        ('{"ratio": 1e400}', "`ratio`: number 1e400 does not fit 64 bits"),
        ('{"ratio": "1"}', '`ratio`: expected a number, found "1"'),
        ('{"paid": 1}', "`paid`: expected true or false, found 1"),
        ('{"at": 5}', "`at`: expected a time like 2024-01-31T23:59:59Z, found 5"),
        ('{"at": "2024-02-30T00:00:00Z"}', "`at`: expected a time like 2024-01-31T23:59:59Z, found"),
        ('{"day": "2024-1-1"}', '`day`: expected a date like 2024-01-31, found "2024-1-1"'),
        ('{"price": 1.234}', "`price`: expected a number of at most 10 digits, 2 of them after the point, found 1.234"),
        ('{"price": "x"}', '2 of them after the point, found "x"'),
        ('{"price": "1_000"}', 'found "1_000"'),
        ('{"note": 1}', "`note`: expected text, found 1"),
        ('{"blob": "?"}', '`blob`: expected bytes as base64 text, found "?"'),
        ('{"tags": "x"}', '`tags`: expected an array, found "x"'),
        ('{"tags": ["a", 1]}', "`tags[1]`: expected text, found 1"),
        ('{"times": [null, "x"]}', '`times[1]`: expected a time like 2024-01-31T23:59:59Z, found "x"'),
        ('{"place": []}', "`place`: expected an object, found an array"),
        ('{"place": {}}', "`place.lat`: required, but missing"),
        ('{"place": {"lat": null}}', "`place.lat`: required, but null"),
        ('{"place": {"lat": 1, "tax": 1.25}}', "`place.tax`: expected a number of at most 4 digits"),
        ('{"lines": [{}, {"n": [1, 1.25]}]}', "`lines[1].n[1]`: expected a number of at most 4 digits"),
        ("[]", "expected a JSON object, found an array"),
        ("null", "expected a JSON object, found null"),
        ('"x"', 'expected a JSON object, found "x"'),
        ('{"id": 1}}', 'malformed JSON at byte 9: trailing characters, found "}"'),
        ('{"id": 1} {"id": 2}', 'malformed JSON at byte 10: trailing characters, found "{\\"id\\": 2}"'),
        ('{"id": 01}', "malformed JSON at byte 8: invalid number"),
        ('{"ratio": NaN}', 'malformed JSON at byte 10: invalid character, found "NaN}"'),
        ('{"ratio": -Infinity}', "malformed JSON at byte"),
        ("{'id': 1}", "malformed JSON at byte 1"),
        ('{"id": 1', "cut JSON at byte 8"),
        ('{"note": "\\ud800"}', "unpaired surrogate escape"),
        ('\ufeff{"id": 1}', "malformed JSON at byte 0: a byte order mark"),
        (" \n", "empty value"),
        ("", "empty value"),
    ],
)
def test_an_error_says_what_was_expected_and_found(text, expected):
    assert expected in error(ORDERS, text)
    assert_as_slow(ORDERS, [text.encode()])


def test_a_tombstone_is_an_error():
    assert error(ORDERS, None) == "tombstone (no value)"


@pytest.mark.parametrize("kind", [Scalar.STRING, Scalar.LONG, Decimal(4, 1), Scalar.TIMESTAMP, Array(Scalar.LONG)])
@pytest.mark.parametrize("unit", ["iso", "epoch_s"])
def test_a_required_field_must_be_there_and_not_null(kind, unit):
    contract = a_contract({"x": kind}, required=["x"], options={"timestamp": unit})

    assert error(contract, "{}") == "`x`: required, but missing"
    assert error(contract, '{"x": null}') == "`x`: required, but null"
    assert (
        row(a_contract({"x": kind}), "{}") == row(a_contract({"x": kind}), '{"x": null}') == {"x": None, "_extra": None}
    )


def test_of_a_field_that_occurs_twice_the_last_value_counts():
    assert row(PAGES, '{"bytes": 1, "bytes": 2, "z": 1, "z": 2}') == dict.fromkeys(PAGE) | {
        "bytes": 2,
        "_extra": '{"z":2}',
    }
    assert "expected an integer" in error(PAGES, '{"bytes": "x", "bytes": 2}')


def test_extra_fields_are_kept_as_written_in_the_order_of_their_names():
    text = '{"z": 1.0e5, "bytes": 1, "a b": [1,  {"c": "\\u00e9"}], "\\u0061": 1e400}'

    assert row(PAGES, text)["_extra"] == '{"a":1e400,"a b":[1,  {"c": "\\u00e9"}],"z":1.0e5}'


def test_a_field_with_unknown_fields_further_down_is_kept_whole():
    place = '{"lat": 1, "lon": 2}'

    found = row(ORDERS, f'{{"place": {place}, "lines": [{{"sku": "x", "qty": 3}}], "tags": ["a"]}}')

    assert found["place"] == {"lat": 1.0, "tax": None}
    assert json.loads(found["_extra"]) == {"lines": [{"sku": "x", "qty": 3}], "place": json.loads(place)}


def test_extra_fields_can_be_rejected_at_any_depth():
    strict = a_contract(ORDER, extra_fields=ExtraFields.REJECT)

    assert error(STRICT, '{"bytes": 1, "x": 2}') == "unknown field `x`"
    assert error(strict, '{"place": {"lat": 1, "lon": 2}}') == "unknown field `place.lon`"
    assert "_extra" not in decoder_for(strict).schema.names
    assert row(strict, '{"id": 1}')["id"] == 1


@pytest.mark.parametrize(("every", "names"), [(1, 2), (5, 2), (300, 2), (2, 60)])
def test_common_and_rare_extra_fields_are_kept_alike(every, names):
    extras = ",".join(f'"x{n}": {n}' for n in range(names))
    values = [
        b'{"bytes": %d, %b}' % (i, extras.encode()) if i % every == 0 else b'{"bytes": %d}' % i for i in range(700)
    ]
    values[7] = b'{"bytes": 1, "rare": true}'
    values[8] = b'{"bytes": "no", "x1": true}'

    found = rows(PAGES, values)

    assert found[0]["_extra"].keys() == {f"x{n}" for n in range(names)}
    assert found[7]["_extra"] == {"rare": True}
    assert found[8] is None
    assert [r and r["bytes"] for r in found] == [i if i != 8 else None for i in range(8 - 1)] + [1, None] + [
        *range(9, 700)
    ]
    assert found == [rows(PAGES, [v])[0] for v in values]


@pytest.mark.parametrize(
    ("unit", "text", "expected"),
    [
        ("epoch_s", "1700000000", at(2023, 11, 14, 22, 13, 20)),
        ("epoch_s", "1700000000.1234567", at(2023, 11, 14, 22, 13, 20, 123_456)),
        ("epoch_s", "-0.0000001", at(1969, 12, 31, 23, 59, 59, 999_999)),
        ("epoch_s", "1.7e9", at(2023, 11, 14, 22, 13, 20)),
        ("epoch_ms", "1700000000123", at(2023, 11, 14, 22, 13, 20, 123_000)),
        ("epoch_ms", "-1.5", at(1969, 12, 31, 23, 59, 59, 998_500)),
        ("epoch_us", "253402300799999999", at(9999, 12, 31, 23, 59, 59, 999_999)),
        ("epoch_us", "-62135596800000000", at(1, 1, 1)),
    ],
)
def test_times_can_be_numbers_since_1970(unit, text, expected):
    contract = a_contract({"at": Scalar.TIMESTAMP, "all": Array(Scalar.TIMESTAMP)}, options={"timestamp": unit})

    assert row(contract, f'{{"at": {text}, "all": [null, {text}]}}') == {
        "at": expected,
        "all": [None, expected],
        "_extra": None,
    }


@pytest.mark.parametrize("text", ['"2024-01-01T00:00:00Z"', '"1"', "true", "253402300800000000", "1e999999999", "[1]"])
def test_a_number_since_1970_is_a_number_in_years_1_to_9999(text):
    contract = a_contract({"at": Scalar.TIMESTAMP}, options={"timestamp": "epoch_us"})

    assert error(contract, f'{{"at": {text}}}').startswith("`at`: expected microseconds since 1970, found ")
    assert_as_slow(contract, [f'{{"at": {text}}}'.encode()])


def test_minus_zero_and_small_exponents_are_numbers():
    contract = a_contract({"x": Scalar.DOUBLE, "n": Scalar.LONG, "d": Decimal(3, 1)})

    assert row(contract, '{"x": -0.0, "n": -0, "d": -0.0}') == {"x": 0.0, "n": 0, "d": Number("0.0"), "_extra": None}
    assert math.copysign(1, row(contract, '{"x": -0.0}')["x"]) == -1
    assert row(contract, '{"x": 5e-324}')["x"] == 5e-324
    assert row(contract, '{"x": 1e-400}')["x"] == 0.0


@pytest.mark.parametrize("levels", [127, 128, 500, 900, 930, 960, 990, 10_000, 1_000_000])
@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_nesting_has_one_limit_and_never_crashes(levels, brackets):
    opening = brackets[0] if brackets == "[]" else '{"a":'
    value = f'{{"k": {opening * levels}1{brackets[1] * levels}}}'.encode()

    found = decode(PAGES, [value, value[: len(value) // 2], b"[" * levels])

    wanted = None if levels < 128 else "nested deeper than 128 levels"
    assert found.errors[0].as_py() == wanted
    assert found.errors[1].is_valid
    assert found.errors[2].is_valid


def test_brackets_in_text_are_not_nesting():
    text = "[{" * 1000 + '\\"' + "\\\\"

    assert row(a_contract({"note": Scalar.STRING}), f'{{"note": "{text}"}}')["note"] == "[{" * 1000 + '"\\'


def test_a_value_of_ten_megabytes_is_read_and_its_error_stays_short():
    big = b"x" * 10_000_000

    assert len(row(PAGES, b'{"user": "%b"}' % big)["user"]) == len(big)
    assert len(error(PAGES, b'{"bytes": "%b"}' % big)) < 200
    assert len(error(PAGES, b'{"bytes": %b}' % (b"9" * 10_000_000))) < 200
    assert len(error(PAGES, b'{"%b": 1' % big)) < 200
    assert "does not fit" in error(PAGES, b'{"status": %b}' % (b"1" * 5000))


def test_a_cut_record_never_swallows_the_next_one():
    values = [b'{"user": "a', b'b"}', b'{"bytes": 1},{"bytes": 2}', b'{"bytes": 3}', b'{"z": [{"a": 1}', b'{"b": 2}]}']

    assert [r and r["bytes"] for r in rows(PAGES, values)] == [None, None, None, 3, None, None]


@pytest.mark.parametrize(
    ("contract", "named"),
    [
        (a_contract({"_extra": Scalar.STRING}), "_extra"),
        (a_contract({'a"b': Scalar.STRING}), "quote"),
        (a_contract({"o": Object((Field(name="a\nb", type=Scalar.LONG),))}), "control character"),
        (a_contract(PAGE, options={"timestamp": "unix"}), "unix"),
        (a_contract(PAGE, options={"delimiter": ","}), "`delimiter`"),
        (a_contract(PAGE, format=None), "no format"),
        (a_contract({}), "no fields"),
    ],
)
def test_a_contract_that_cannot_be_decoded_is_refused_when_the_decoder_is_made(contract, named):
    with pytest.raises(ContractError, match="contract orders") as refused:
        decoder_for(contract)
    assert named in str(refused.value)
    assert refused.value.fix


def test_a_column_may_be_called_extra_where_extra_fields_are_rejected():
    contract = a_contract({"_extra": Scalar.LONG}, extra_fields=ExtraFields.REJECT)

    assert row(contract, '{"_extra": 5}') == {"_extra": 5}


def test_field_names_may_be_words_of_any_language():
    contract = a_contract({"class": Scalar.LONG, "user-agent": Scalar.STRING, "größe": Scalar.LONG, "f1": Scalar.LONG})

    text = '{"class": 1, "user-agent": "x", "größe": 3, "f1": 4, "x0": 5}'
    assert row(contract, text) == {"class": 1, "user-agent": "x", "größe": 3, "f1": 4, "_extra": '{"x0":5}'}
    assert contract.format is Format.JSON
