"""What the code makes of records and declarations: the SQL that it writes, and what its decoders answer.

python tests/golden/semantics.py        writes `semantics-N.json` for the version of now; if it is there,
                                        adds what is new to `semantics-N-newer.json`
python tests/golden/semantics.py --same takes the digests of now: for SQL that is written otherwise and answers the same

What stands in a file stays there as long as answers differ: plans that are open may name its version. What no plan
could ask for when the version was made, such as a new aggregate, changes no answer, so it needs no new version. Nor
does SQL that gives the same rows in another way; the commit that takes its digest says which tests hold the rows.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidemill.core.bind.flow import Flow
    from tidemill.core.declare.aggregates import Aggregate

PATH = Path(__file__).parents[1]

JSON_VALUES: tuple[bytes | None, ...] = (
    b'{"ts": "2026-01-01T10:00:00Z", "user": "a", "amount": 1, "price": 1.25, "tags": ["x", null]}',
    b'{"ts": "2026-01-01T10:00:00.123456+02:00", "user": "\xc3\xa4", "amount": -9223372036854775808}',
    b'{"ts": "2026-01-01 10:00:00Z", "amount": 9223372036854775808}',
    b'{"ts": "2026-01-01T10:00:00Z", "amount": 1.0, "price": 0.001}',
    b'{"ts": "2026-01-01T10:00:00Z", "amount": "1", "user": 5}',
    b'{"ts": "2026-02-30T10:00:00Z"}',
    b'{"ts": null, "user": "a"}',
    b'{"user": "a"}',
    b'{"ts": "2026-01-01T10:00:00Z", "more": {"b": [1, 2.0, "x"], "a": null}, "user": null}',
    b'{"ts": "2026-01-01T10:00:00Z", "user": "a", "user": "b"}',
    b'{"ts": "2026-01-01T10:00:00Z", "place": {"lat": 1, "tax": 1.5}, "at": 1e3, "day": "2026-01-01", "paid": true}',
    b'{"ts": "2026-01-01T10:00:00Z", "place": {"tax": 12345}, "day": "2026-13-01", "paid": 1, "blob": "!"}',
    b"{cut",
    b"[]",
    b"\xff\xfe",
    b"",
    None,
)
CSV_VALUES: tuple[bytes | None, ...] = (
    b"2026-01-01T10:00:00Z,a,1,1.25",
    b'2026-01-01T10:00:00Z,"a, ""b""",-1,',
    b"2026-01-01T10:00:00Z,,,",
    b"2026-01-01T10:00:00Z,a,1",
    b"2026-01-01T10:00:00Z,a,1,1,1",
    b"2026-01-01T10:00:00Z,a,1.5,NaN",
    b'2026-01-01T10:00:00Z,"a,1,1',
    b"yesterday,a,1,1",
    b"\xff,a,1,1",
    b"",
    None,
)
LINES: tuple[bytes | None, ...] = (
    b'1.2.3.4 - - [23/Mar/2014:15:07:00 -0700] "GET /a HTTP/1.1" 200 17 "http://x/" "agent"',
    b'1.2.3.4 - bob [31/Feb/2014:15:07:00 -0700] "GET /a HTTP/1.1" 200 17 "-" "-"',
    b'1.2.3.4 - - [23/Mar/2014:15:07:00 -0700] "\\x16\\x03" 400 - "-" "a \\"b\\""',
    b'1.2.3.4 - - [23/Mar/2014:15:07:00 -0700] "GET /a b HTTP/1.1" 20x 17',
    b"cut",
    b"\xff",
    b"",
    None,
)
RULES = """
apiVersion: v3.1.0
kind: DataContract
id: ruled
version: 1.0.0
status: active
schema:
  - name: ruled
    logicalType: object
    customProperties: [{property: format, value: json}]
    properties:
      - {name: ts, logicalType: timestamp, required: true, logicalTypeOptions: {minimum: "2020-01-01T00:00:00Z"}}
      - {name: day, logicalType: date, logicalTypeOptions: {exclusiveMaximum: "2030-01-01"}}
      - {name: n, logicalType: integer, logicalTypeOptions: {minimum: 0, exclusiveMaximum: 10, multipleOf: 2}}
      - {name: x, logicalType: number, logicalTypeOptions: {exclusiveMinimum: 0.1, maximum: 9}}
      - name: "the user"
        logicalType: string
        logicalTypeOptions: {minLength: 1, maxLength: 9, pattern: "[a-z]+$"}
        quality:
          - {name: known, metric: invalidValues, arguments: {validValues: ["a", "it's"]}, mustBe: 0}
"""


def semantics(folder: Path) -> dict[str, str]:
    """A digest of everything that decides an answer, by what it is."""
    found = {**dict(_statements()), **dict(_decoded()), **dict(_rules(folder))}
    return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in found.items()}


def _statements() -> Iterator[tuple[str, str]]:
    from support.declarations import AGGREGATES, CONTRACTS, NEWER_CONTRACTS, everything, newer
    from tidemill.core.bind.binding import bind
    from tidemill.core.bind.sinks import WindowedSink
    from tidemill.core.contract.schema import Array, Decimal, Scalar, cast_or_null

    flow = bind(everything().spec, CONTRACTS).reading(["shop-1"])
    yield from _of_flow(flow, "")
    for name, aggregate in AGGREGATES.items():
        yield from _of_aggregate(name, aggregate)
    for pipeline in newer():
        # As in `newer.json`: some tables of firings had keys that no declaration may have any more.
        contracts = {name: replace(contract, primary_key=()) for name, contract in NEWER_CONTRACTS.items()}
        flow = bind(pipeline.spec, contracts)
        yield from _of_flow(flow, f" in {flow.name}")
        for sink in flow.sinks:
            for name, aggregate in sink.aggregates.items() if isinstance(sink, WindowedSink) else ():
                yield from _of_aggregate(f"{name} in {flow.name}", aggregate)
    for number, kind in enumerate((*Scalar, Decimal(9, 2), Array(Scalar.LONG))):
        yield f"sql: cast {number}", cast_or_null("x", kind)


def _of_flow(flow: Flow, where: str) -> Iterator[tuple[str, str]]:
    from tidemill.core.bind.firing_sink import FiringSink
    from tidemill.core.bind.sinks import WindowedSink
    from tidemill.core.time.window_expressions import pane_start
    from tidemill.engine.aggregate.branches import branch_out, branches_of
    from tidemill.engine.aggregate.firing_sql import merged_firings
    from tidemill.engine.aggregate.node_sql import merged_nodes, spread_rows
    from tidemill.engine.aggregate.side_outputs import late_rows, rejected_rows
    from tidemill.engine.aggregate.window_sql import folded_state, merged_windows
    from tidemill.engine.read.typed_rows import ANY_TIME, checked
    from tidemill.engine.spark.query import ROWS

    for source in flow.inputs:
        ways = branches_of(flow, source)
        columns = [f.name for f in source.contract.fields]
        marked = source.watermark is not None
        yield (
            f"sql: rows of {source.topic}{where}",
            "\n".join(branch_out(checked(source, ANY_TIME), columns, ways, marked=marked)),
        )
        yield f"sql: rejected of {source.topic}{where}", rejected_rows(source)
        yield f"sql: late of {source.topic}{where}", late_rows([branch for branch, _ in ways])
    for sink in flow.sinks:
        if isinstance(sink, FiringSink):
            yield f"sql: firings of {sink.table}{where}", merged_firings(ROWS, sink)
            yield f"sql: folded state of {sink.table}{where}", folded_state(ROWS, sink, (), ("piece_id",))
        if isinstance(sink, WindowedSink):
            yield f"sql: panes of {sink.table}{where}", pane_start(sink.window.panes, "_time")
            yield f"sql: windows of {sink.table}{where}", merged_windows(ROWS, sink)
            yield f"sql: folded state of {sink.table}{where}", folded_state(ROWS, sink, (), ("pane_start",))
            if sink.merges_ahead:
                yield f"sql: nodes of {sink.table}{where}", merged_nodes(ROWS, sink, ())
                yield f"sql: rows for nodes of {sink.table}{where}", spread_rows(ROWS, sink)


def _of_aggregate(name: str, aggregate: Aggregate) -> Iterator[tuple[str, str]]:
    from tidemill.core.contract.schema import Decimal, Scalar, spark_type

    triple = aggregate.triple
    yield f"sql: aggregate {name}", _text([dict(triple.partial), dict(triple.merge), triple.finish])
    for kind in (Scalar.INTEGER, Scalar.LONG, Scalar.DOUBLE, Decimal(9, 2), Decimal(38, 4)):
        of_kind = [aggregate.finish_as(kind), aggregate.overflowed(kind)]
        yield f"sql: aggregate {name} as {spark_type(kind)}", _text(of_kind)


def _decoded() -> Iterator[tuple[str, str]]:
    from engine.decode.decoding import ACCESS, ORDER
    from tidemill.core.contract.contract import Contract, ExtraFields, Format
    from tidemill.core.contract.schema import Decimal, Field, Scalar
    from tidemill.engine.read.decode import decoder_for

    plain = {"ts": Scalar.TIMESTAMP, "user": Scalar.STRING, "amount": Scalar.LONG, "price": Decimal(10, 2)}
    cases: dict[str, tuple[Mapping[str, Any], dict[str, Any], tuple[bytes | None, ...]]] = {
        "json": ({**plain, **ORDER}, {"format": Format.JSON}, JSON_VALUES),
        "json, strictly": (plain, {"format": Format.JSON, "extra_fields": ExtraFields.REJECT}, JSON_VALUES),
        "json, seconds": (plain, {"format": Format.JSON, "options": {"timestamp": "epoch_s"}}, _SECONDS),
        "csv": (plain, {"format": Format.CSV}, CSV_VALUES),
        "csv, by semicolons": (plain, {"format": Format.CSV, "options": {"delimiter": ";"}}, _SEMICOLONS),
        "access log": (ACCESS, {"format": Format.ACCESS_LOG}, LINES),
        "text": ({"line": Scalar.STRING}, {"format": Format.TEXT}, LINES),
        "bytes": ({"line": Scalar.BINARY}, {"format": Format.BYTES}, LINES),
    }
    for name, (fields, more, values) in cases.items():
        import pyarrow as pa

        columns = tuple(Field(name=n, type=t, required=n == "ts") for n, t in fields.items())
        decoder = decoder_for(Contract(name="c", version="1", fields=columns, **more))
        found = decoder.decode(pa.array(values, pa.binary()))
        for number, row in enumerate(found.columns.to_pylist()):
            yield f"decoded: {name}, record {number}", _text([row, found.errors[number].as_py()])


_SECONDS = (b'{"ts": 1.5, "user": "a"}', b'{"ts": -1}', b'{"ts": "1"}', b'{"ts": 1e30}')
_SEMICOLONS = (b"2026-01-01T10:00:00Z;a;1;2", b"2026-01-01T10:00:00Z,a,1,2")


def _rules(folder: Path) -> Iterator[tuple[str, str]]:
    from tidemill.contracts.load import load_contract

    path = folder / "ruled.odcs.yaml"
    path.write_text(RULES)
    for rule in load_contract(path).row_rules:
        yield f"rule: {rule.name}", rule.predicate


def _text(value: Any) -> str:
    return json.dumps(value, default=repr, ensure_ascii=True)


def golden(version: int) -> Path:
    """The fixture of a version."""
    return Path(__file__).parent / f"semantics-{version}.json"


def newer_golden(version: int) -> Path:
    """What was added to the language while this was the version."""
    return Path(__file__).parent / f"semantics-{version}-newer.json"


def added(found: Mapping[str, str], version: int) -> dict[str, str]:
    """The digests that the fixture of a version does not have."""
    known = json.loads(golden(version).read_text())["digests"]
    return {name: digest for name, digest in found.items() if name not in known}


def main() -> None:
    """Write the fixture of the version of now, or add to it what is new."""
    import tempfile

    from tidemill.core.identity.semantics import PINNED, SEMANTICS

    with tempfile.TemporaryDirectory() as folder:
        found = semantics(Path(folder))
    if not golden(SEMANTICS).exists():
        _write(golden(SEMANTICS), {"pinned": dict(PINNED), "digests": found})
        return
    path, first = newer_golden(SEMANTICS), json.loads(golden(SEMANTICS).read_text())
    known = json.loads(path.read_text()) if path.exists() else {}
    new = added(found, SEMANTICS)
    if "--same" in sys.argv:
        _write(golden(SEMANTICS), {**first, "digests": {name: found[name] for name in first["digests"]}})
        known = {}
    _write(path, {**{name: new[name] for name in known if name in new}, **new, **known})


def _write(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n")


if __name__ == "__main__":
    sys.path[0] = str(PATH)
    main()
