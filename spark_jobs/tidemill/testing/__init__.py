"""Tests of users' pipelines: a log in memory, a lake of their own, and a clock that the test sets.

    def test_turnover_is_counted_by_minute(trial):
        sales = trial("sales")
        sales.give("orders", {"ts": "2026-01-01T10:00:07Z", "shop": "north", "cents": 500})
        sales.end()
        assert [row["cents"] for row in sales.rows()] == [500]

pytest finds the fixture `trial` by itself if Tidemill is installed (`tidemill.testing.fixtures`).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidemill.testing.trial import Trial

__all__ = ["Trial"]


def __getattr__(name: str) -> Any:
    """Load what runs a pipeline only when a test needs it: pytest loads this package in every project."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tidemill.testing.trial import Trial

    return Trial
