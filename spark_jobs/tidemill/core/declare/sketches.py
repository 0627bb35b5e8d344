"""Aggregates whose state is values, or a sketch of them, rather than numbers.

The sketches are those of Apache DataSketches that Spark has built in; they merge in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidemill.core.declare.aggregates import Aggregate, Triple, single
from tidemill.core.errors import DeclarationError, shown
from tidemill.core.given import check_whole

ORDER = "_time, _topic, _partition, _offset"
"""Hidden columns of every row that put records in order: by event time, then by their place in the log."""


@dataclass(frozen=True, slots=True)
class First(Aggregate):
    """The value of the first record by event time, then topic, partition and offset; it may be null.

    Args:
        expression: Spark SQL over one row.
    """

    expression: str

    @property
    def triple(self) -> Triple:  # noqa: D102
        return single(f"min(struct({ORDER}, {self.expression} AS value))", "min({value})", "{value}.value")


@dataclass(frozen=True, slots=True)
class Last(Aggregate):
    """The value of the last record by event time, then topic, partition and offset; it may be null.

    Args:
        expression: Spark SQL over one row.
    """

    expression: str

    @property
    def triple(self) -> Triple:  # noqa: D102
        return single(f"max(struct({ORDER}, {self.expression} AS value))", "max({value})", "{value}.value")


@dataclass(frozen=True, slots=True)
class ApproxDistinct(Aggregate):
    """An estimate of the number of distinct values that are not null (HyperLogLog; Apache DataSketches).

    The empty text does not count, because sketches of DataSketches leave it out; `Distinct` counts it.

    Args:
        expression: Spark SQL over one row; values count as the texts that they cast to.
        precision: the base-2 logarithm of the number of buckets, 4 to 21. The relative standard error is about
            `1.04 / sqrt(2 ** precision)`, 1.6 % at 12.

    Raises:
        DeclarationError: the precision is no whole number within these bounds.
    """

    expression: str
    precision: int = 12

    def __post_init__(self) -> None:
        Aggregate.__post_init__(self)
        check_whole(self.precision, "the precision of ApproxDistinct", 4, 21)

    @property
    def triple(self) -> Triple:  # noqa: D102
        return single(
            f"hll_sketch_agg(CAST({self.expression} AS STRING), {self.precision})",
            "hll_union_agg({value})",
            # A sketch that was filled value by value is estimated by another formula than one that was merged, so the
            # number would depend on how batches cut the log. Merged with itself, it is always the second.
            "hll_sketch_estimate(hll_union({value}, {value}))",
        )


@dataclass(frozen=True, slots=True)
class Quantiles(Aggregate):
    """The values at given ranks, as an array of doubles in their order (KLL sketch; Apache DataSketches).

    The rank of a value is off by about 1.3 %; small inputs are exact. The sketch is randomised: when a batch is
    computed again, values may differ within that error.

    Args:
        expression: Spark SQL over one row that gives a number.
        ranks: at least one, each from 0 (the least value) to 1 (the greatest); 0.5 is the median.

    Raises:
        DeclarationError: there is no rank, or one is out of bounds.
    """

    approximate_each_time: ClassVar[bool] = True

    expression: str
    ranks: tuple[float, ...] = (0.5, 0.95, 0.99)

    def __post_init__(self) -> None:
        Aggregate.__post_init__(self)
        given: object = self.ranks
        ranks = tuple(given) if isinstance(given, list | tuple) else ()
        if not ranks or not all(map(_is_rank, ranks)):
            raise DeclarationError(
                f"Quantiles: ranks lie between 0 and 1, at least one, found {shown(given)}",
                fix="write for example ranks=(0.5, 0.99)",
            )
        object.__setattr__(self, "ranks", ranks)

    @property
    def triple(self) -> Triple:  # noqa: D102
        ranks = ", ".join(f"{float(r)!r}D" for r in self.ranks)
        return single(
            f"kll_sketch_agg_double(try_cast({self.expression} AS DOUBLE))",
            "kll_merge_agg_double({value})",
            f"CASE WHEN kll_sketch_get_n_double({{value}}) > 0 THEN "
            f"kll_sketch_get_quantile_double({{value}}, array({ranks})) END",
        )


@dataclass(frozen=True, slots=True)
class HeavyHitters(Aggregate):
    """The most frequent values with estimated counts: an array of structs (item, count), most frequent first.

    Counts are exact while fewer than `tracked` distinct values occur (frequent-items sketch; Apache DataSketches).

    Args:
        expression: Spark SQL over one row.
        k: how many values, 1 to `tracked`.
        tracked: how many values the sketch follows, at most 1,000,000.

    Raises:
        DeclarationError: a number is out of bounds, or none.
    """

    approximate_each_time: ClassVar[bool] = True

    expression: str
    k: int = 10
    tracked: int = 1000

    def __post_init__(self) -> None:
        Aggregate.__post_init__(self)
        check_whole(self.tracked, "tracked of HeavyHitters", 1, 1_000_000)
        check_whole(self.k, "k of HeavyHitters, which is not above tracked,", 1, self.tracked)

    @property
    def triple(self) -> Triple:  # noqa: D102
        return single(
            f"approx_top_k_accumulate({self.expression}, {self.tracked})",
            f"approx_top_k_combine({{value}}, {self.tracked})",
            f"approx_top_k_estimate({{value}}, {self.k})",
        )


@dataclass(frozen=True, slots=True)
class Distinct(Aggregate):
    """The exact number of distinct values that are not null; state keeps every one of them.

    Args:
        expression: Spark SQL over one row.
    """

    expression: str

    @property
    def triple(self) -> Triple:  # noqa: D102
        return single(
            f"collect_set({self.expression})",
            "array_distinct(flatten(collect_list({value})))",
            "CAST(size({value}) AS BIGINT)",
        )


@dataclass(frozen=True, slots=True)
class Collect(Aggregate):
    """All values that are not null, as an array ordered by event time, then topic, partition and offset.

    Args:
        expression: Spark SQL over one row.
    """

    expression: str

    @property
    def triple(self) -> Triple:  # noqa: D102
        entry = f"struct({ORDER}, {self.expression} AS value)"
        return single(
            f"collect_list(CASE WHEN ({self.expression}) IS NOT NULL THEN {entry} END)",
            "flatten(collect_list({value}))",
            "transform(array_sort({value}), entry -> entry.value)",
        )


def _is_rank(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
