"""Records for property tests: good ones, odd ones, and both of them damaged."""

from __future__ import annotations

import json

from hypothesis import strategies as st

TIMES = [
    *("2024-01-01T00:00:00Z", "2024-02-29 23:59:59.999999+01:00", "2023-02-29T00:00:00Z", "2024-01-01T00:00"),
    *("2024-01-01T00:00:60Z", "2024-01-01T24:00:00Z", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+00:01"),
    *("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59-00:01", "10000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
    *("1969-12-31T23:59:59,5-2359", "2024-01-01T00:00:00.1234567890Z", "2024-01-01t00:00:00z", "2024-01-01", ""),
    *(
        "2024-13-01",
        "2024-02-30",
        "1900-02-29",
        "2000-02-29",
        "0000-01-01",
        "\uff12\uff10\uff12\uff14-01-01",
        "-2024-01-01",
        "null",
    ),
]
NUMBERS = [
    *("0", "-0", "-0.0", "1", "3.0", "1e2", "1E+2", "0.1", "5e-324", "1e-400", "1e400", "-1e400", "1e999999999"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "2147483647"),
    *("2147483648", "-2147483649", "18446744073709551616", "1" * 400, "0." + "0" * 60 + "1", "1." + "0" * 60),
    *("12345678.90", "123456789.0", "99.94", "99.95", "9" * 38, "9" * 39, "1e37", "1e38", "0e999999", "1700000000.5"),
    *("1700000000123", "253402300799", "253402300800", "-62135596800", "-62135596801", "-0.0000001", "1e-999999"),
]
NOT_NUMBERS = [
    "01",
    "1.",
    ".5",
    "+1",
    "-",
    "1e",
    "0x10",
    "NaN",
    "Infinity",
    "-Infinity",
    "1_000",
    " 1",
    "٣",
    "1 2",
    "inf",
]
ESCAPES = ['"\\ud800"', '"\\ud83d\\ude00"', '"\\udc00x"', '"\\u0000"', '"\\x"', '"a\nb"', '"\x00"', '"\\u00e9\\n"', '"']
OTHERS = ["true", "false", "null", "True", "{}", "[]", "[null]", "[1]", '{"lat":1}', '{"lat":1,"lon":2}', "nul", "[1,]"]

texts = st.text(st.characters(codec="utf-8"), max_size=8)
written_values = st.one_of(
    st.sampled_from(NUMBERS + NOT_NUMBERS + ESCAPES + OTHERS),
    st.sampled_from(TIMES + NUMBERS + NOT_NUMBERS).map(json.dumps),
    st.integers(-(2**65), 2**65).map(str),
    st.floats(allow_nan=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=2).map(lambda d: f"{d:f}"),
    st.datetimes(timezones=st.timezones()).map(lambda t: json.dumps(t.isoformat())),
    texts.map(lambda t: json.dumps(t, ensure_ascii=False)),
    st.recursive(
        st.sampled_from(NUMBERS + OTHERS), lambda inner: st.lists(inner, max_size=3).map(lambda v: f"[{','.join(v)}]")
    ),
)


def json_records(names: list[str]) -> st.SearchStrategy[bytes]:
    """Objects whose fields are mostly those named, with values of any kind."""
    keys = st.one_of(st.sampled_from([json.dumps(n) for n in names]), texts.map(json.dumps), st.just('"\\u0061t"'))
    member = st.tuples(keys, st.sampled_from([":", " : "]), written_values).map("".join)
    return st.lists(member, max_size=6).map(lambda m: "{" + ",".join(m) + "}").map(encoded)


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@st.composite
def damaged(draw: st.DrawFn, records: st.SearchStrategy[bytes]) -> bytes:
    """A record that is cut, or has bytes replaced, put in or taken out; or is whole."""
    record = bytearray(draw(records))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(record)))
        piece = draw(
            st.sampled_from(
                [
                    b"",
                    b'"',
                    b"\\",
                    b"{",
                    b"}",
                    b"[",
                    b",",
                    b" ",
                    b"\n",
                    b"\r\n",
                    b"\0",
                    b"\xff",
                    b"\xed\xa0\x80",
                    b"0",
                    b"-",
                ]
            )
        )
        match draw(st.sampled_from(["put in", "replace", "cut", "prepend"])):
            case "put in":
                record[at:at] = piece
            case "replace":
                record[at : at + 1] = piece
            case "cut":
                del record[at:]
            case "prepend":
                record[:0] = draw(st.sampled_from([b"\xef\xbb\xbf", b" ", piece]))
    return bytes(record)
