"""Random pipelines over records of all scalar types, and random records of every fate for them."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from support.projects import NOW

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

TABLE = (
    CONTRACT[: CONTRACT.index("    customProperties")].replace("readings", "t")
    + """    properties:
      - {name: window_start, logicalType: timestamp}
      - {name: window_end, logicalType: timestamp}
COLUMNS"""
)

TYPES = {"t": "string", "u": "string", "i": "integer, physicalType: int", "a": "integer", "f": "boolean", "d": "date"}
FILTERS = ("i > 0", "NOT f", "t LIKE 'a%' OR t IS NULL", "u <> t", "a IN (1, 2, 3, 5, 8)", "length(t) < 4", "p > i")
COLUMNS = {
    "x": (
        "split(t, '[?]')[0]",
        "coalesce(t, u, '')",
        "t || u",
        "CASE WHEN f THEN 'yes' ELSE u END",
        "CAST(i AS STRING)",
    ),
    "y": ("if(f, i, a)", "greatest(i, a, 0L)", "a div 7L", "pmod(a, 10L)", "CAST(f AS BIGINT)", "try_add(a, 1L)"),
}
AGGREGATES = {
    "Count()": "integer",
    'Count("t")': "integer",
    'CountIf("f")': "integer",
    'CountIf("y BETWEEN 0 AND 5")': "integer",
    'Sum("i")': "integer",
    'Sum("y", overflow="null")': "integer",
    'Sum("p")': 'number, physicalType: "decimal(20,2)"',
    'Min("x")': "string",
    'Max("u")': "string",
    'Max("d")': "date",
    'Min("i")': "integer, physicalType: int",
    'ApproxDistinct("x")': "integer",
}
KEYS = ((), ("t",), ("u", "f"), ("x",), ("d", "i"))
WINDOWS = (
    'Tumbling("10 seconds")',
    'Tumbling("7 seconds", offset="3 seconds")',
    'Sliding("10 seconds", "4 seconds")',
    'Sliding("60 seconds", "2 seconds")',
    'Session("5 seconds")',
    "Global()",
)
TEXTS = (None, "", "a", "ab", "a?b", "ä", "aä?", "B", 'a"\n', "\u0001\u001f\x7f", "much too long")


class Drawn(NamedTuple):
    """A pipeline as a file, and the contracts of what it reads and publishes."""

    pipeline: str
    contracts: dict[str, str]


def draw(chance: random.Random) -> Drawn:
    """A pipeline with one or two tables."""
    steps = "".join(f"    .filter({text!r})\n" for text in chance.sample(FILTERS, chance.randrange(3)))
    added = ", ".join(f'{name}="{chance.choice(texts)}"' for name, texts in COLUMNS.items())
    tables = [_table(chance, number) for number in range(chance.choice((1, 1, 2)))]
    clock = chance.choice(('delay="3 seconds"', 'delay="3 seconds"', 'watermark="CASE WHEN f THEN ts END"'))
    read = f'readings = pipeline.read("events", contract="readings", event_time="ts", {clock})'
    lines = [read, f"rows = (readings{steps.replace(chr(10), '').replace('    .', '.')}.with_columns({added}))"]
    body = "\n    ".join([*lines, *(text for text, _ in tables)])
    text = f"from tidemill import *\n\nwith Pipeline('drawn', every='1 minute') as pipeline:\n    {body}\n"
    outputs = {f"table_{number}": contract for number, (_, contract) in enumerate(tables)}
    return Drawn(text, {"readings": CONTRACT, **outputs})


def _table(chance: random.Random, number: int) -> tuple[str, str]:
    keys, window = chance.choice(KEYS), chance.choice(WINDOWS)
    chosen = chance.sample(sorted(AGGREGATES), chance.randrange(1, 6))
    named = ", ".join(f"v{n}={call}" for n, call in enumerate(chosen))
    grouped = f".key_by({', '.join(map(repr, keys))})" if keys else ""
    late = "" if window == "Global()" else f', allowed_lateness="{chance.choice((0, 2, 20))} seconds"'
    windowed = "" if window == "Global()" else f".window({window}{late})"
    trigger = "" if window == "Global()" else f', trigger="{chance.choice(("on_close", "on_update"))}"'
    text = f'rows{grouped}{windowed}.aggregate({named}).publish("table_{number}", contract="table_{number}"{trigger})'
    bounds = {} if window == "Global()" else {"window_start": "timestamp", "window_end": "timestamp"}
    types = {
        **bounds,
        **{k: TYPES.get(k, "string") for k in keys},
        **{f"v{n}": AGGREGATES[c] for n, c in enumerate(chosen)},
    }
    columns = "".join(f"      - {{name: {name}, logicalType: {of}}}\n" for name, of in types.items())
    head = CONTRACT[: CONTRACT.index("    customProperties")].replace("readings", f"table_{number}")
    return text, f"{head}    properties:\n{columns}"


def records(chance: random.Random, count: int, until: int) -> list[bytes | None]:
    """Records of some `until` seconds: most are good, some are broken, early, late or far in the future."""
    return [_record(chance, until) for _ in range(count)]


def _record(chance: random.Random, until: int) -> bytes | None:
    if chance.random() < 0.08:
        return chance.choice([None, b"", b"{", b"\xff", b"[]", b'{"ts": null}', b'{"ts": "2999-01-01T00:00:00Z"}'])
    at = NOW + timedelta(seconds=chance.randrange(-20, until), microseconds=chance.randrange(1_000_000))
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
    return json.dumps({name: value for name, value in values.items() if chance.random() < 0.95}).encode()


CLOCK = datetime(2026, 1, 1, 1, tzinfo=UTC)
