"""Batches of records on their way through a Python worker: which event times are accepted, and what is kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.builders import EVENTS, NOW, a_flow, tp
from tidemill import Sliding
from tidemill.core.log.offsets import OffsetRange
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import BEGINNING, END
from tidemill.engine.read.blocks import Blocks
from tidemill.engine.read.decode import decoder_for
from tidemill.engine.read.typed_rows import FAR_FUTURE, TOO_EARLY, DecodeBatches, EventTimes

SECOND = 1_000_000
YEAR_1 = micros(datetime(1, 1, 1, tzinfo=UTC))


def records(*times: datetime | None) -> pa.RecordBatch:
    values = [None if t is None else b'{"ts": "%s"}' % t.isoformat().encode() for t in times]
    columns = {
        "partition": pa.array([0] * len(values), pa.int32()),
        "offset": pa.array(range(10, 10 + len(values)), pa.int64()),
        "timestamp": pa.array([NOW] * len(values), pa.timestamp("us", "UTC")),
        "value": pa.array(values, pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)


def decode(*times: datetime | None, watermark: int = BEGINNING, only: bytes | None = None, **window: Any) -> pa.Table:
    flow = a_flow(delay="1 minute", **window)
    batches = DecodeBatches(
        decoder=decoder_for(EVENTS),
        event_time="ts",
        times=EventTimes.of(flow, flow.inputs[0], NOW),
        watermark=watermark,
        blocks=Blocks((OffsetRange(tp(), 10, 10 + len(times)),)),
        only=only,
    )
    return pa.Table.from_batches(list(batches.run(iter([records(*times)]))), schema=batches.schema)


def test_the_last_accepted_event_time_is_the_clock_and_the_tolerance():
    hour = timedelta(hours=1)
    found = decode(NOW + hour, NOW + hour + timedelta.resolution)
    assert found["_error"].to_pylist() == [None, FAR_FUTURE]


@pytest.mark.parametrize("window", [None, Sliding("1 hour", "7 minutes")])
def test_no_accepted_event_time_brings_a_window_or_the_watermark_before_year_one(window):
    flow = a_flow(delay="1 minute", window=window)
    (sink,) = flow.sinks
    earliest = EventTimes.of(flow, flow.inputs[0], NOW).earliest
    panes = sink.window.panes
    assert earliest - 60 * SECOND - 2 * panes.size >= YEAR_1
    assert min(w.start for w in panes.windows_of(earliest)) >= YEAR_1
    first = datetime(1, 1, 1, tzinfo=UTC)
    accepted = first + timedelta(microseconds=earliest - YEAR_1)
    found = decode(accepted - timedelta.resolution, accepted, first, window=window)
    assert found["_error"].to_pylist() == [TOO_EARLY, None, TOO_EARLY]


@pytest.mark.parametrize("watermark", [BEGINNING, micros(NOW), END])
def test_how_far_a_row_is_behind_the_watermark_fits_64_bits(watermark):
    found = decode(NOW, datetime(1969, 12, 31, tzinfo=UTC), watermark=watermark)
    behind = [b + t for b, t in zip(found["_behind"].to_pylist(), found["_time"].to_pylist(), strict=True)]
    assert behind == [min(max(watermark, -(2**62)), 2**62)] * 2


def test_values_are_kept_only_where_strays_are_looked_for():
    assert decode(NOW, None)["_raw"].to_pylist() == [None, None]
    bits = np.packbits(np.array([0, 1, 1] + [0] * 5, dtype=np.uint8), bitorder="little").tobytes()
    found = decode(NOW, None, NOW + timedelta(days=9), only=bits)
    assert found["_offset"].to_pylist() == [11, 12]
    assert [v is None for v in found["_raw"].to_pylist()] == [True, False]
    assert found["_error"].to_pylist() == ["tombstone: tombstone (no value)", "future: event time in the future"]
