"""JSON records for the bench: the same ones for a seed, whoever asks and in whatever order."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

USERS = 5_000
SKEW = 1.1
START = datetime(2026, 1, 1, tzinfo=UTC)
EVENT_TIME_PER_BATCH = timedelta(seconds=60)
OUT_OF_ORDER = timedelta(seconds=5)
_MOST_BEFORE = 500_000
STATUSES = (200, 304, 404, 500)
STATUS_WEIGHTS = (0.86, 0.07, 0.05, 0.02)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Requests of 5,000 users, a few of whom make most of them, in batches of `size` records.

    Each batch covers one minute of event time, whatever its size, so that it closes six windows of ten
    seconds. A record stands at most five seconds before an earlier one of its batch or of the batch before.
    The first batch also has the records of the time `before`, but not more than `_MOST_BEFORE`.
    """

    size: int
    before: timedelta = timedelta()
    seed: int = 20260101

    def batch(self, index: int) -> pa.Table:
        """The records of batch `index` (from 0): binary columns `key` and `value`, in arrival order."""
        rng, times = np.random.default_rng((self.seed, self.size, index)), self._event_times(index)
        count = len(times)
        users = np.searchsorted(_user_distribution(), rng.random(count), side="right")
        early = rng.integers(0, OUT_OF_ORDER // timedelta(milliseconds=1), count)
        columns = pl.DataFrame(
            {
                "ts": pl.Series(times - early).cast(pl.Datetime("ms")),
                "user": users,
                "page": rng.integers(0, 1_000, count),
                "status": rng.choice(STATUSES, count, p=STATUS_WEIGHTS),
                "bytes": rng.integers(200, 100_000, count),
                "ms": rng.gamma(2.0, 40.0, count).astype(np.int64) + 1,
            }
        )
        return columns.select(
            _user().cast(pl.Binary).alias("key"),
            _as_json().cast(pl.Binary).alias("value"),
        ).to_arrow(compat_level=pl.CompatLevel.oldest())

    def _event_times(self, index: int) -> np.ndarray:
        """Milliseconds, evenly spread over the time of the batch: each record arrives up to 5 s after its own."""
        start = START + index * EVENT_TIME_PER_BATCH
        of_batch = _spread(self.size, start, EVENT_TIME_PER_BATCH)
        if index or not self.before:
            return of_batch
        count = min(int(self.size * (self.before / EVENT_TIME_PER_BATCH)), _MOST_BEFORE)
        return np.concatenate([_spread(count, start - self.before, self.before), of_batch])


def _spread(count: int, start: datetime, span: timedelta) -> np.ndarray:
    steps = np.arange(count, dtype=np.int64) * (span // timedelta(milliseconds=1)) // max(count, 1)
    return int(start.timestamp()) * 1000 + steps


def _user_distribution() -> np.ndarray:
    """The cumulative distribution of a Zipf law over the users; its last value is 1."""
    weights = 1.0 / np.arange(1, USERS + 1) ** SKEW
    return np.cumsum(weights / weights.sum())


def _as_json() -> pl.Expr:
    ts = pl.col("ts").dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
    parts = ('{"ts":"', ts, '","user":"', _user(), '","page":"/p/', "page", '","status":', "status")
    tail = (',"bytes":', "bytes", ',"ms":', "ms", "}")
    return pl.concat_str([_text(part) for part in (*parts, *tail)])


def _text(part: str | pl.Expr) -> pl.Expr:
    """A column by its name or an expression as it is; any other text stands for itself."""
    if isinstance(part, pl.Expr):
        return part
    return pl.col(part).cast(pl.String) if part.isidentifier() else pl.lit(part)


def _user() -> pl.Expr:
    return pl.concat_str(pl.lit("u"), pl.col("user").cast(pl.String).str.zfill(4))
