"""Random pipelines over records of all types, and random records of every fate for them.

Pipelines that are drawn `wide` also have what only Spark computes: doubles, arrays and windows of the calendar.
"""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from support.drawn_expressions import AGGREGATES, COLUMNS, FILTERS, MAY_FAIL
from support.projects import NOW
from support.wide_expressions import WIDE_AGGREGATES, WIDE_COLUMNS, WIDE_FILTERS

CONTRACT = """
apiVersion: v3.1.0
kind: DataContract
id: readings
version: 1.0.0
status: active
schema:
  - name: readings
    logicalType: object
    customProperties:
      - {property: format, value: json}
    properties:
      - {name: ts, logicalType: timestamp, required: true}
      - {name: t, logicalType: string, logicalTypeOptions: {maxLength: 9}}
      - {name: u, logicalType: string, logicalTypeOptions: {pattern: "^[a-zä?]*$"}}
      - {name: i, logicalType: integer, physicalType: int}
      - {name: a, logicalType: integer, logicalTypeOptions: {minimum: -9000000000000000000}}
      - {name: f, logicalType: boolean}
      - {name: d, logicalType: date}
      - {name: p, logicalType: number, physicalType: "decimal(10,2)"}
    quality:
      - {type: custom, engine: tidemill, name: small, implementation: "i < 100 OR f"}
      - {type: custom, engine: tidemill, name: odd, implementation: "a & 1L = 1L", severity: warning}
"""

_WIDE_COLUMNS = """      - {name: r, logicalType: number}
      - {name: l, logicalType: array, items: {logicalType: string}}
"""
WIDE_CONTRACT = CONTRACT.replace("    quality:", f"{_WIDE_COLUMNS}    quality:")
TABLE = (
    CONTRACT[: CONTRACT.index("    customProperties")].replace("readings", "t")
    + """    properties:
      - {name: window_start, logicalType: timestamp}
      - {name: window_end, logicalType: timestamp}
COLUMNS"""
)

SECOND = 1_000_000


class Window(NamedTuple):
    """Windows of a `size` that start every `slide` from `offset`, or sessions with a `gap`; microseconds.

    Windows of the calendar are each `unit` in `zone`.
    """

    size: int = 0
    slide: int = 0
    offset: int = 0
    gap: int = 0
    unit: str = ""
    zone: str = ""


GLOBAL = "Global()"
WINDOWS = {
    'Tumbling("10 seconds")': Window(10 * SECOND, 10 * SECOND),
    'Tumbling("7 seconds", offset="3 seconds")': Window(7 * SECOND, 7 * SECOND, 3 * SECOND),
    'Sliding("10 seconds", "4 seconds")': Window(10 * SECOND, 4 * SECOND),
    'Sliding("9 seconds", "6 seconds", offset="1 seconds")': Window(9 * SECOND, 6 * SECOND, SECOND),
    'Sliding("60 seconds", "2 seconds")': Window(60 * SECOND, 2 * SECOND),
    'Session("5 seconds")': Window(gap=5 * SECOND),
    'Session("1 seconds")': Window(gap=SECOND),
    GLOBAL: Window(),
}
WIDE_WINDOWS = {
    f'Calendar("{unit}", "{zone}")': Window(unit=unit, zone=zone)
    for unit, zone in (("day", "Europe/Berlin"), ("week", "America/New_York"), ("month", "Asia/Kolkata"))
}
ALL_WINDOWS = {**WINDOWS, **WIDE_WINDOWS}
ALL_AGGREGATES = {**AGGREGATES, **WIDE_AGGREGATES}
TYPES = {
    "t": "string",
    "u": "string",
    "i": "integer, physicalType: int",
    "a": "integer",
    "f": "boolean",
    "d": "date",
    "x": "string",
    "y": "integer",
    "p": 'number, physicalType: "decimal(10,2)"',
}
KEYS = ((), (), ("t",), ("u", "f"), ("x",), ("d", "i"), ("y",), ("p", "f"))
TEXTS = (None, "", "a", "ab", "a?b", "ä", "aä?", "B", 'a"\n', "\u0001\u001f\x7f", "much too long")
CLOCKS = ('delay="3 seconds"', 'delay="3 seconds"', 'watermark="CASE WHEN f THEN ts END"')
DELAY = 3 * SECOND


class Table(NamedTuple):
    """A drawn table: its window as text, how many seconds late records may be, and its aggregates by column."""

    name: str
    keys: tuple[str, ...]
    window: str
    lateness: int
    trigger: str
    aggregates: dict[str, str]

    @property
    def bounded(self) -> bool:
        """Whether its windows have a start and an end."""
        return self.window != GLOBAL

    @property
    def columns(self) -> frozenset[str]:
        """The columns of records that it uses."""
        return frozenset({*self.keys, *(c for call in self.aggregates.values() for c in ALL_AGGREGATES[call].reads)})


class Drawn(NamedTuple):
    """A pipeline as a file, the contracts of what it reads and publishes, and its parts.

    `filters` come first, then `columns` are added. If `told`, records tell the watermark.
    """

    pipeline: str
    contracts: dict[str, str]
    filters: tuple[str, ...]
    columns: dict[str, str]
    told: bool
    tables: tuple[Table, ...]

    @property
    def may_fail(self) -> bool:
        """Whether a number that is too large fails a batch."""
        return self.columns["y"] == MAY_FAIL and any("y" in table.columns for table in self.tables)


def draw(chance: random.Random, *, wide: bool = False) -> Drawn:
    """A pipeline with one or two tables."""
    filters = tuple(chance.sample(sorted({**FILTERS, **(WIDE_FILTERS if wide else {})}), chance.randrange(3)))
    added = {**COLUMNS, **(WIDE_COLUMNS if wide else {})}
    columns = {name: chance.choice(sorted(texts)) for name, texts in added.items()}
    tables = tuple(_table(chance, f"table_{number}", wide=wide) for number in range(chance.choice((1, 1, 2))))
    clock = chance.choice(CLOCKS)
    steps = "".join(f".filter({text!r})" for text in filters)
    named = ", ".join(f'{name}="{text}"' for name, text in columns.items())
    read = f'readings = pipeline.read("events", contract="readings", event_time="ts", {clock})'
    body = "\n    ".join([read, f"rows = (readings{steps}.with_columns({named}))", *map(_text_of, tables)])
    text = f"from tidemill import *\n\nwith Pipeline('drawn', every='1 minute') as pipeline:\n    {body}\n"
    contracts = {
        "readings": WIDE_CONTRACT if wide else CONTRACT,
        **{table.name: _contract_of(table) for table in tables},
    }
    return Drawn(text, contracts, filters, columns, clock != CLOCKS[0], tables)


def _table(chance: random.Random, name: str, *, wide: bool) -> Table:
    keys, window = chance.choice(KEYS), chance.choice(sorted(ALL_WINDOWS if wide else WINDOWS))
    chosen = chance.sample(sorted(ALL_AGGREGATES if wide else AGGREGATES), chance.randrange(1, 6))
    aggregates = {f"v{number}": call for number, call in enumerate(chosen)}
    lateness = 0 if window == GLOBAL else chance.choice((0, 2, 20))
    trigger = "on_update" if window == GLOBAL else chance.choice(("on_close", "on_update"))
    return Table(name, keys, window, lateness, trigger, aggregates)


def _text_of(table: Table) -> str:
    named = ", ".join(f"{name}={call}" for name, call in table.aggregates.items())
    grouped = f".key_by({', '.join(map(repr, table.keys))})" if table.keys else ""
    late = f', allowed_lateness="{table.lateness} seconds"'
    windowed = f".window({table.window}{late})" if table.bounded else ""
    trigger = f', trigger="{table.trigger}"' if table.bounded else ""
    published = f'publish("{table.name}", contract="{table.name}"{trigger})'
    return f"rows{grouped}{windowed}.aggregate({named}).{published}"


def _contract_of(table: Table) -> str:
    types = {
        **({"window_start": "timestamp", "window_end": "timestamp"} if table.bounded else {}),
        **{key: TYPES[key] for key in table.keys},
        **{name: ALL_AGGREGATES[call].type for name, call in table.aggregates.items()},
    }
    columns = "".join(f"      - {{name: {name}, logicalType: {of}}}\n" for name, of in types.items())
    head = CONTRACT[: CONTRACT.index("    customProperties")].replace("readings", table.name)
    return f"{head}    properties:\n{columns}"


MISTYPED = {
    '"i": "7"': 'wrong_value(i): `i`: expected an integer, found "7"',
    '"f": 1': "wrong_value(f): `f`: expected true or false, found 1",
    '"p": 0.005': "wrong_value(p): `p`: expected a number of at most 10 digits, 2 of them after the point, found 0.005",
    '"d": "2026-02-30"': 'wrong_value(d): `d`: expected a date like 2024-01-31, found "2026-02-30"',
    '"t": ["a"]': "wrong_value(t): `t`: expected text, found an array",
    '"i": 2.0': "wrong_value(i): `i`: expected an integer, found 2.0",
    '"a": 9223372036854775808': "too_large(a): `a`: number 9223372036854775808 does not fit 64 bits",
    '"i": -2147483649, "t": 1': "too_large(i): `i`: number -2147483649 does not fit 32 bits",
}
BROKEN = {
    None: "tombstone: tombstone (no value)",
    b"": "empty: empty value",
    b"{": "cut_json: cut JSON at byte 1",
    b"\xff": "not_utf8: not UTF-8 at byte 0",
    b"[]": "not_an_object: expected a JSON object, found an array",
    b'{"ts": null}': "null(ts): `ts`: required, but null",
    b'{"ts": "2999-01-01T00:00:00Z"}': "future: event time in the future",
    **{f'{{"ts": "2026-01-01T00:00:09Z", {wrong}}}'.encode(): why for wrong, why in MISTYPED.items()},
}
"""Values of broken records, each with the reason why it is rejected."""

RARE = (
    b'{"ts": "1969-12-31T23:59:59.999999Z", "t": "a", "a": 3}',
    b'{"ts": "2026-01-01T01:00:10+01:00", "i": 5, "i": 3, "f": true}',
    b' {"a": 4611686018427387904, "ts": "2026-01-01T00:00:10Z", "t": "\\u00e4"}\n',
    b'{"ts": "2026-01-01T00:00:20Z", "z": {"i": 8}, "u": null}',
)
"""Good records as few write them: of 1969, with a field twice, with blanks around, with more fields."""


def records(chance: random.Random, count: int, until: int, *, wide: bool = False) -> list[bytes | None]:
    """Records of some `until` seconds: most are good, some are broken, early, late or far in the future.

    Those for `wide` pipelines have more fields, and are of as many hours.
    """
    return [_record(chance, until, wide=wide) for _ in range(count)]


def _record(chance: random.Random, until: int, *, wide: bool) -> bytes | None:
    if chance.random() < 0.08:
        return chance.choice([*BROKEN, *RARE])
    # Whole seconds let records meet the bounds of windows.
    micros = chance.choice((0, chance.randrange(1_000_000)))
    second = chance.randrange(-20, until)
    at = NOW + timedelta(hours=(second - max(SECONDS)) if wide else 0, seconds=second, microseconds=micros)
    values: dict[str, Any] = {
        "ts": at.astimezone(UTC).isoformat(),
        "t": chance.choice(TEXTS),
        "u": chance.choice(TEXTS if chance.random() < 0.1 else ("a", "b", "a?", None)),
        "i": chance.choice((None, 0, 1, -1, 7, 99, 5, 3, *([100, 2**31 - 1, -(2**31), 2**31][: chance.randrange(5)]))),
        "a": chance.choice((None, *range(9), 2**62, 2**63 - 1, -(2**63))),
        "f": chance.choice((None, True, False)),
        "d": chance.choice((None, *(str(date(y, 2, 28)) for y in (1, 1969, 2026)))),
        "p": chance.choice((None, 0, 0.05, -1.5, 99999999.99)),
    }
    if wide:
        values["r"] = chance.choice((None, 0, 0.25, -7.5, 1e3, 3))
        values["l"] = chance.choice((None, [], ["a"], ["b", None, "a"], [None], ["a", "b", "a", ""]))
    return json.dumps({name: value for name, value in values.items() if chance.random() < 0.95}).encode()


CLOCK = datetime(2026, 1, 1, 1, tzinfo=UTC)
"""The clock of all batches."""

SECONDS = (30, 60, 90)
"""How far the records of each batch come."""


def fed(seed: int, *, wide: bool = False) -> list[tuple[list[bytes | None], list[bytes | None]]]:
    """The records of three batches, each of two partitions."""
    chance = random.Random(seed)
    return [
        (records(chance, chance.randrange(1, 40), n, wide=wide), records(chance, chance.randrange(40), n, wide=wide))
        for n in SECONDS
    ]
