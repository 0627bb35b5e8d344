"""Records of a key folded in their order, on the tiny engine: the fold is the product's own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from machine.tiny_rows import LONG, Row, of_key, partial_columns, partials, place_of
from tidemill.core.bind.firing_sink import FiringSink
from tidemill.engine.publish.firings import Firings
from tidemill.tables.keys import with_key_of


def pieces(sink: FiringSink, taken: Sequence[Row], firings: Firings) -> pa.Table:
    """Records folded into pieces, and what keys keep and fire."""
    kept, own = firings.kept(sink), ("user", "amount")
    rows = [
        dict(zip(("_topic", "_partition", "_offset"), place_of(row), strict=True))
        | {"_time": row.time, "user": row.user, "amount": row.amount, "_value": row.amount, "_marker": row.amount == -1}
        for row in taken
    ]
    places = [("_topic", pa.string()), *((name, LONG) for name in ("_partition", "_offset", "_time"))]
    fields = [*places, ("user", pa.string()), ("amount", LONG), ("_value", LONG), ("_marker", pa.bool_())]
    table = pa.Table.from_pylist(rows, pa.schema([*fields, ("_kept", pa.string())]))
    if kept is not None:
        old = firings.touched.get(sink.table)
        old = kept.keys if old is None else kept.keys.take(pa.array(with_key_of(kept.keys, old, sink.keys)))
        old = old.filter(old["_kept"].is_valid()).select([*sink.keys, "_kept"])
        if firings.folds_apart(sink):
            old = old.take(pa.array(with_key_of(old, table, sink.keys)))
        table = pa.concat_tables([table, old], promote_options="permissive")
    fold = firings.fold(sink, own, firings.history(sink))
    sums: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0, 0])
    for row in fold.over(table).to_pylist():
        found = sums[row["_row"], *(row[key] for key in sink.keys), row["_piece"], row["_told"]]
        found[0] += 1
        found[1] += row["amount"] or 0
    names = [("_row", pa.int32()), *of_key(sink), ("_piece", LONG), ("_told", pa.string()), *partial_columns(sink)]
    schema = pa.schema(names)
    values = [(*key, *partials(sink, found)) for key, found in sums.items()]
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in values], schema=schema)
