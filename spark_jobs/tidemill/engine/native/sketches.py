"""Sketches in the driver: HyperLogLog of Apache DataSketches, whose bytes Spark's own sketches share.

Only what does not depend on the order of rows is translated: merging, and the estimate of a sketch that is merged with
itself. The estimate of any other sketch says something of how it was filled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]
from sqlglot import exp

from tidemill.core.contract.schema import Scalar
from tidemill.engine.native.values import Of, Value, refuse

if TYPE_CHECKING:
    import datasketches  # type: ignore[import-untyped]
    import duckdb

_FILLED, _MERGED, _ESTIMATE = "sketch_of_texts", "merged_sketches", "estimate_of_sketch"
_PRECISION = 12
"""Of a sketch of texts, and of one that is made of no sketches, as in Spark."""


def _union(of: Of, node: exp.Anonymous) -> Value:
    if len(node.expressions) != 1:
        return refuse(node)
    value = _sketch(of, node.expressions[0])
    return Value(f"{_MERGED}(list({value.text}))", Scalar.BINARY)


def _estimate(of: Of, node: exp.Anonymous) -> Value:
    union = node.expressions[0] if len(node.expressions) == 1 else None
    if not isinstance(union, exp.Anonymous) or union.name.lower() != "hll_union" or len(union.expressions) != 2:
        return refuse(node)
    left, right = (_sketch(of, part) for part in union.expressions)
    return Value(f"{_ESTIMATE}({left.text})", Scalar.LONG) if left == right else refuse(node)


def _of_texts(of: Of, node: exp.Anonymous) -> Value:
    value, precision = of(node.expressions[0]), node.expressions[-1]
    if len(node.expressions) != 2 or value.type is not Scalar.STRING or precision.name != str(_PRECISION):
        return refuse(node)
    return Value(f"{_FILLED}(list(DISTINCT {value.text}))", Scalar.BINARY)


def _sketch(of: Of, node: exp.Expr) -> Value:
    value = of(node)
    return value if value.type is Scalar.BINARY else refuse(node)


FUNCTIONS_OF_SKETCHES: Mapping[str, Callable[[Of, Any], Value]] = {
    "hll_sketch_agg": _of_texts,
    "hll_union_agg": _union,
    "hll_sketch_estimate": _estimate,
}


def teach(connection: duckdb.DuckDBPyConnection) -> None:
    """Give a database the functions that translated statements call."""
    both = {"type": "arrow", "null_handling": "special"}
    connection.create_function(_FILLED, _fill_all, ["VARCHAR[]"], "BLOB", **both)  # type: ignore[call-overload]
    connection.create_function(_MERGED, _merge_all, ["BLOB[]"], "BLOB", **both)  # type: ignore[call-overload]
    connection.create_function(_ESTIMATE, _estimate_all, ["BLOB"], "BIGINT", **both)  # type: ignore[call-overload]


def _fill_all(lists: pa.ChunkedArray) -> pa.Array:
    return pa.array([_filled(each) for each in lists.to_pylist()], pa.binary())


def _filled(texts: Sequence[str | None]) -> bytes:
    """A sketch of these texts. As in Spark, null is none of them."""
    import datasketches

    sketch = datasketches.hll_sketch(_PRECISION, datasketches.tgt_hll_type.HLL_8)
    for text in texts:
        if text is not None:
            sketch.update(text)
    found: bytes = sketch.serialize_updatable()
    return found


def _merge_all(lists: pa.ChunkedArray) -> pa.Array:
    import datasketches

    kind = datasketches.tgt_hll_type.HLL_8
    return pa.array([_merged(each).get_result(kind).serialize_updatable() for each in lists.to_pylist()], pa.binary())


def _estimate_all(sketches: pa.ChunkedArray) -> pa.Array:
    found = (None if each is None else _merged([each, each]).get_estimate() for each in sketches.to_pylist())
    # As Java rounds.
    return pa.array([None if each is None else math.floor(each + 0.5) for each in found], pa.int64())


def _merged(sketches: Sequence[bytes | None]) -> datasketches.hll_union:
    """All sketches in one.

    Raises:
        ValueError: they have different precisions, or one is damaged; Spark says so by name.
    """
    import datasketches

    found = [datasketches.hll_sketch.deserialize(each) for each in sketches if each is not None]
    precisions = {each.lg_config_k for each in found} or {_PRECISION}
    if len(precisions) > 1:
        raise ValueError(f"sketches of different precisions: {sorted(precisions)}")
    union = datasketches.hll_union(precisions.pop())
    for each in found:
        union.update(each)
    return union
