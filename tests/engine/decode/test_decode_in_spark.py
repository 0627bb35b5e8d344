"""A decoder runs inside a Spark job."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from engine.decode.decoding import PAGE, a_contract
from tidemill.core.contract.schema import spark_type
from tidemill.engine.read.decode import decoder_for


@pytest.mark.spark
def test_a_decoder_runs_in_map_in_arrow(spark):
    contract = a_contract(PAGE)
    decoder = decoder_for(contract)
    values = [b'{"ts":"2024-01-01T00:00:00.5Z","bytes":%d,"x":%d}' % (n, n) for n in range(300)]
    values[7], values[8] = b"cut", None

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            decoded = decoder.decode(batch["value"])
            yield decoded.columns.append_column("error", decoded.errors)

    schema = ", ".join(f"`{f.name}` {spark_type(f.type)}" for f in contract.fields) + ", _extra string, error string"
    records = spark.createDataFrame([(v,) for v in values], "value binary").repartition(2)
    found = records.mapInArrow(decode, schema)

    good, bad = found.where("error is null"), found.where("error is not null")
    assert good.selectExpr("sum(bytes)", "count(_extra)", "min(unix_micros(ts))").first() == (
        sum(range(300)) - 15,
        298,
        1_704_067_200_500_000,
    )
    assert sorted(r["error"] for r in bad.collect()) == [
        'malformed JSON at byte 0: invalid character, found "cut"',
        "tombstone (no value)",
    ]
    assert bad.where("ts is not null or bytes is not null or _extra is not null").count() == 0
