"""Access logs: real ones, cut ones and broken ones."""

from __future__ import annotations

import datetime as dt
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.decode.decoding import ACCESS, a_contract, assert_as_slow, decode, error, row, rows
from engine.decode.generated import damaged
from tidemill.core.contract.contract import Format
from tidemill.core.contract.schema import Scalar
from tidemill.core.errors import ContractError
from tidemill.engine.read.decode import decoder_for

LOG = a_contract(ACCESS, Format.ACCESS_LOG)
START = 'h - - [23/Mar/2014:15:07:00 -0700] "GET /a HTTP/1.1" 200'


def test_ten_thousand_real_lines_are_decoded_as_slowly(shared_data):
    lines = (shared_data / "apache_logs.log").read_bytes().splitlines()

    found = assert_as_slow(LOG, lines)

    assert len(found) == 10_000
    assert None not in found
    assert sum(r["bytes"] or 0 for r in found) == 2_747_282_740
    assert Counter(r["status"] for r in found)[404] == 213
    hours = Counter(r["ts"].replace(minute=0, second=0) for r in found)
    assert len(hours) == 84
    assert [hours[dt.datetime(2015, 5, 17, h, tzinfo=dt.UTC)] for h in (10, 11, 12)] == [74, 111, 115]


def test_cut_lines_of_a_real_log_have_null_bytes(shared_data):
    lines = (shared_data / "access_20.log").read_bytes().splitlines()

    found = assert_as_slow(LOG, lines)

    cut = [n for n, line in enumerate(lines) if line.endswith((b" 200", b" 304"))]
    assert len(found) == 20
    assert len(cut) == 2
    assert [found[n]["bytes"] for n in cut] == [None, None]
    assert sum(r["bytes"] or 0 for r in found) == 754_671
    assert Counter(r["status"] for r in found) == {200: 11, 304: 9}
    minutes = Counter(r["ts"].minute for r in found)
    assert minutes == {7: 9, 8: 10, 9: 1}
    assert {r["ts"].hour for r in found} == {22}
    assert Counter(r["path"] for r in found).most_common(1) == [("/documentation.html", 3)]


def test_a_combined_line_has_all_columns():
    line = '203.0.113.9 id joe [29/Feb/2024:23:59:59 +0530] "POST /a?b=c HTTP/2.0" 201 5 "http://r/" "curl/8 (x)"'

    assert row(LOG, line) == {
        "client": "203.0.113.9",
        "ident": "id",
        "user": "joe",
        "ts": dt.datetime(2024, 2, 29, 18, 29, 59, tzinfo=dt.UTC),
        "method": "POST",
        "path": "/a?b=c",
        "protocol": "HTTP/2.0",
        "request": "POST /a?b=c HTTP/2.0",
        "status": 201,
        "bytes": 5,
        "referrer": "http://r/",
        "agent": "curl/8 (x)",
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"{START} -", {"bytes": None, "user": None, "ident": None}),
        (START, {"status": 200, "bytes": None}),
        (f"{START} ", {"status": 200, "bytes": None}),
        (f"{START} 7\r\n", {"bytes": 7}),
        (f"{START} 9223372036854775807", {"bytes": 2**63 - 1}),
        (f"{START} 000000000000000000000000012", {"bytes": 12}),
        (f'{START} 7 "http://r', {"bytes": 7, "referrer": None, "agent": None}),
        (f'{START} 7 "http://r"', {"referrer": "http://r", "agent": None}),
        (f'{START} 7 "r" "Mozilla', {"referrer": "r", "agent": None}),
        (f'{START} 7 "r" "x\\', {"referrer": "r", "agent": None}),
        (f'{START} 7 "-" "-"', {"referrer": None, "agent": None}),
        (f'{START} 7 "" ""', {"referrer": "", "agent": ""}),
        (f'{START} 7 "a\\"b\\\\" "\\xc3\\xa9\\t\\q"', {"referrer": 'a"b\\', "agent": "é\t\\q"}),
        (f'{START} 7 "\\xe4\\xe5" "x"', {"referrer": "\\xe4\\xe5"}),
        (START.replace("GET /a", "GET /a b"), {"method": "GET", "path": "/a b", "protocol": "HTTP/1.1"}),
        (START.replace(" HTTP/1.1", ""), {"path": "/a", "protocol": None, "request": "GET /a"}),
        (START.replace("GET /a", 'GET /\\"a'), {"path": '/"a', "request": 'GET /"a HTTP/1.1'}),
        (START.replace("GET /a HTTP/1.1", "-") + ' 1 "\\"" "x"', {"path": None, "referrer": '"', "agent": "x"}),
        (START.replace("GET /a HTTP/1.1", "-"), {"request": None, "method": None, "path": None, "protocol": None}),
    ],
)
def test_unusual_and_cut_lines_are_read(line, expected):
    found = row(LOG, line)
    assert {name: found[name] for name in expected} == expected
    assert_as_slow(LOG, [line.encode()])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", "empty value"),
        ("x", "`ident`: expected text before a blank"),
        ("\n", "`client`: expected text before a blank"),
        (START.replace("[", "("), '`time`: expected [23/Mar/2014:15:07:00 -0700], found "(23/Mar'),
        (
            START.replace("23/Mar", "31/Feb"),
            '`time`: expected [23/Mar/2014:15:07:00 -0700], found "[31/Feb/2014:15:07:00 -0700]"',
        ),
        (START.replace("15:07:00", "24:07:00"), "`time`: expected"),
        (START.replace("15:07:00", "15:07:60"), "`time`: expected"),
        (START.replace("Mar", "mar"), "`time`: expected"),
        (START.replace("2014", "0000"), "`time`: expected"),
        (
            START.replace("23/Mar/2014:15:07:00 -0700", "-"),
            '`time`: expected [23/Mar/2014:15:07:00 -0700], found "[-]"',
        ),
        (START.replace(" -0700", ""), "`time`: expected"),
        (START.replace("GET /a HTTP/1.1", "\\x16\\x03"), '`request`: expected "GET /page HTTP/1.1", found'),
        (START.replace("GET /a HTTP/1.1", ""), '`request`: expected "GET /page HTTP/1.1", found ""'),
        (START[: START.index("HTTP")], "`request`: expected"),
        (START[:-1], '`status`: expected three digits, found "20"'),
        (START.replace("200", "20x"), "`status`: expected three digits"),
        (f"{START}0", "`status`: expected three digits"),
        (f"{START} 1x", '`bytes`: expected a number or -, found "1x"'),
        (f"{START} 9223372036854775808", "`bytes`: number 9223372036854775808 does not fit 64 bits"),
        (f"{START} 1 r", '`referrer`: expected quoted text, found "r"'),
        (f'{START} 1 "a"b" "c"', "`referrer`: expected quoted text"),
        (f'{START} 1 "a" b', '`agent`: expected quoted text, found "b"'),
        (f'{START} 1 "a" "b" c', 'expected the end of the line after `agent`, found "c"'),
        (f"{START} 1\n{START} 2", "expected one line, found a line break in it"),
    ],
)
def test_an_error_names_the_part_that_is_wrong(line, expected):
    assert expected in error(LOG, line)
    assert_as_slow(LOG, [line.encode()])


def test_bytes_that_are_not_utf8_are_named():
    line = f'{START} 7 "r" "caf'.encode() + b'\xe9"'

    assert error(LOG, line) == f"not UTF-8 at byte {len(line) - 2}"


def test_rows_keep_their_order_around_unusual_and_broken_lines():
    lines = [f"{START} {n}".encode() for n in range(200)]
    lines[3], lines[50], lines[120] = lines[3] + b"\r\n", b"broken", f"{START} 120  ".encode()

    assert [r and r["bytes"] for r in rows(LOG, lines)] == [n if n != 50 else None for n in range(200)]


@pytest.mark.parametrize("names", [["bytes"], ["ts"], ["request"], ["path", "agent"], ["status", "client"]])
def test_what_is_wrong_with_a_line_does_not_depend_on_the_columns_asked_for(names):
    contract = a_contract({n: ACCESS[n] for n in names}, Format.ACCESS_LOG)
    lines = [
        f'{START} 5 "r" "a"',
        START,
        START.replace("23/Mar", "31/Feb"),
        f"{START} 99999999999999999999",
        START[:-1],
    ]
    lines += [START.replace("GET /a", "GETa")]
    values = [line.encode() for line in lines]

    assert decode(contract, values).errors == decode(LOG, values).errors
    assert rows(contract, values) == [r and {n: r[n] for n in names} for r in rows(LOG, values)]


def test_a_required_part_must_be_there():
    contract = a_contract({"bytes": Scalar.LONG, "user": Scalar.STRING}, Format.ACCESS_LOG, required=["bytes"])

    assert error(contract, START) == "`bytes`: required, but null"
    assert row(contract, f"{START} 0") == {"bytes": 0, "user": None}


def test_status_may_be_a_bigint():
    assert row(a_contract({"status": Scalar.LONG}, Format.ACCESS_LOG), START) == {"status": 200}


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"verb": Scalar.STRING}, "field `verb` is not in an access log, which has client"),
        ({"bytes": Scalar.INTEGER}, "field `bytes` has type int, expected bigint"),
        ({"status": Scalar.STRING}, "field `status` has type string, expected int or bigint"),
        ({"ts": Scalar.STRING}, "field `ts` has type string, expected timestamp"),
    ],
)
def test_an_impossible_column_is_refused_when_the_decoder_is_made(fields, named):
    with pytest.raises(ContractError, match="contract orders") as refused:
        decoder_for(a_contract(fields, Format.ACCESS_LOG))
    assert named in str(refused.value)


words = st.sampled_from(["-", "::1", "10.0.0.1", "joe", "é", "a b", ""])
times = st.sampled_from(
    ["23/Mar/2014:15:07:00 -0700", "29/Feb/2023:00:00:00 +0000", "01/Jan/0001:00:00:00 +0100", "x", "-"]
)
requests = st.sampled_from(
    ["GET / HTTP/1.1", "GET /a b HTTP/1.0", "-", "GET", 'A \\"\\\\ \\x41', "G /x HTTP/y", "GET HTTP/1.1", "G  x"]
)
ends = st.sampled_from(
    ["", " 1", " -", " 12 ", ' 1 "r" "a"', ' 1 "r', ' 1 "r" "a', ' 1 "\\xff" "\\""', " 1 2", ' 1 "r" "a" b']
)
lines = st.builds(
    lambda c, i, u, t, r, s, e: f'{c} {i} {u} [{t}] "{r}" {s}{e}'.encode(),
    *(words, words, words, times, requests, st.sampled_from(["200", "20", "2000"]), ends),
)


@given(st.lists(damaged(lines), max_size=6))
@settings(max_examples=150, deadline=None)
def test_any_line_is_decoded_as_slowly(values):
    assert_as_slow(LOG, values)


@given(
    st.integers(0, 9999),
    st.sampled_from(["Jan", "Feb", "Mar", "Apr", "Jun", "Nov", "Dec"]),
    st.integers(0, 32),
    st.integers(-2400, 2400),
)
@settings(max_examples=150, deadline=None)
def test_any_time_is_decoded_as_slowly(year, month, day, zone):
    line = f'h - - [{day:02}/{month}/{year:04}:23:30:00 {zone:+05}] "GET / HTTP/1.0" 200 1'
    assert_as_slow(LOG, [line.encode()])
