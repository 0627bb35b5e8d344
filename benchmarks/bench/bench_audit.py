"""What the audit of a batch costs: 30 rules on 2,000 staged rows, in milliseconds.

python benchmarks/bench/bench_audit.py [--rows 2000] [--rules 30] [--statistics 5] [--runs 50] [--out FILE]

`first_ms` is the first audit of the process, with all that it imports. `warm_ms` is the median of the runs after it,
`worst_ms` the slowest of them. `broken_ms` is the median where every rule is broken, so that rows have to be shown.
`statistics_ms` is the median where some of the rules are statistics, which Great Expectations computes, and
`statistics_first_ms` the first audit of these, with its import.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import time
from pathlib import Path
from statistics import median

import pyarrow as pa

from tidemill.contracts.audit import audit
from tidemill.core.contract.contract import (
    Between,
    Check,
    Compare,
    Contract,
    Expectation,
    LengthBetween,
    Matches,
    NotNull,
    OneOf,
    RowCountBetween,
    TableRule,
    Unique,
)
from tidemill.core.contract.schema import DataType, Decimal, Field, Scalar

LIMIT = 60
"""What a warm audit of 30 rules on 2,000 rows may take, in milliseconds."""

TYPES: dict[str, DataType] = {
    "window_start": Scalar.TIMESTAMP,
    "window_end": Scalar.TIMESTAMP,
    "shop": Scalar.STRING,
    "state": Scalar.STRING,
    "orders": Scalar.LONG,
    "cents": Scalar.LONG,
    "mean": Scalar.DOUBLE,
    "price": Decimal(12, 2),
}


def main() -> int:
    """Measure, write and print; fails when a warm audit takes longer than its limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--rules", type=int, default=30)
    parser.add_argument("--statistics", type=int, default=5)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--out", type=Path, default=Path("build/bench_audit.json"))
    given = parser.parse_args()
    good, bad = staged(given.rows), staged(given.rows, worst=True)
    first, *warm = [measured(good, contract(given.rules), passed=True) for _ in range(given.runs + 1)]
    broken = [measured(bad, contract(given.rules), passed=False) for _ in range(given.runs)]
    mixed = contract(given.rules, statistics=given.statistics)
    first_of_mixed, *of_mixed = [measured(good, mixed, passed=True) for _ in range(given.runs + 1)]
    found = {
        "rows": given.rows,
        "rules": given.rules,
        "first_ms": round(first, 1),
        "warm_ms": round(median(warm), 1),
        "worst_ms": round(max(warm), 1),
        "broken_ms": round(median(broken), 1),
        "statistics": given.statistics,
        "statistics_first_ms": round(first_of_mixed, 1),
        "statistics_ms": round(median(of_mixed), 1),
        "limit_ms": LIMIT,
    }
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found))
    return 0 if found["warm_ms"] <= LIMIT else 1


def staged(count: int, *, worst: bool = False) -> pa.Table:
    """Windows of a minute by shop; with `worst`, rows that break every rule but the first."""
    start = dt.datetime(2024, 1, 31, tzinfo=dt.UTC)
    starts = pa.array([start + dt.timedelta(minutes=n % 60) for n in range(count)], pa.timestamp("us", "UTC"))
    ends = pa.array([start + dt.timedelta(minutes=n % 60 + 1) for n in range(count)], pa.timestamp("us", "UTC"))
    return pa.table(
        {
            "window_start": ends if worst else starts,
            "window_end": starts if worst else ends,
            "shop": ["!" if worst else f"shop-{n}" for n in range(count)],
            "state": pa.array([None if worst else "open"] * count, pa.string()),
            "orders": [-1 if worst else n for n in range(count)],
            "cents": [-2 if worst else n * 100 for n in range(count)],
            "mean": [float("nan") if worst else 1.0] * count,
            "price": pa.array([-1 if worst else 1] * count, pa.decimal128(12, 2)),
        }
    )


STATISTICS = [(column, kind) for kind in ("stdev", "median") for column in ("orders", "cents", "mean")]
"""What Great Expectations computes, of which column."""


def contract(count: int, *, statistics: int = 0) -> Contract:
    """A contract with so many rules, of all kinds by turns. The last of them are `statistics`."""
    kinds: list[Check] = [
        RowCountBetween(minimum=1),
        NotNull(column="state"),
        Unique(columns=("shop",)),
        Unique(columns=("window_start", "shop")),
        Between(column="orders", minimum=0),
        Between(column="mean", minimum=0, maximum=1_000_000),
        Between(column="price", minimum=0.01),
        Matches(column="shop", pattern="[a-z]+-[0-9]+"),
        LengthBetween(column="shop", minimum=3, maximum=40),
        OneOf(column="cents", values=tuple(range(0, 200_100, 100))),
        Compare(left="window_start", operator="<", right="window_end"),
    ]
    stated = [_statistic(*STATISTICS[n % len(STATISTICS)]) for n in range(statistics)]
    checks = [*(kinds[n % len(kinds)] for n in range(count - statistics)), *stated]
    rules = tuple(TableRule(name=f"rule{n}", check=check) for n, check in enumerate(checks))
    fields = tuple(Field(name=name, type=of) for name, of in TYPES.items())
    return Contract(name="orders", version="1.0.0", fields=fields, table_rules=rules)


def _statistic(column: str, kind: str) -> Expectation:
    bounds = (("column", column), ("max_value", 1_000_000), ("min_value", 0))
    return Expectation(column=column, kind=f"expect_column_{kind}_to_be_between", arguments=bounds)


def measured(rows: pa.Table, by: Contract, *, passed: bool) -> float:
    """Milliseconds of one audit; `passed` is what all of its rules but those about the number of rows must say."""
    began = time.perf_counter()
    results = audit("orders", rows, by)
    took = (time.perf_counter() - began) * 1_000
    told = [
        r.passed for r, rule in zip(results, by.table_rules, strict=True) if rule.check != RowCountBetween(minimum=1)
    ]
    assert all(told) if passed else not any(told), results
    return took


if __name__ == "__main__":
    raise SystemExit(main())
