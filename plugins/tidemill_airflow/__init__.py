"""Tidemill in Airflow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidemill_airflow.tasks.lag_sensor import LagSensor

__all__ = ["LagSensor"]


def __getattr__(name: str) -> Any:
    # Airflow is imported only by those who ask for a part of it.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tidemill_airflow.tasks.lag_sensor import LagSensor

    return LagSensor
