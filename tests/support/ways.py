"""The ways in which a batch of few records may be aggregated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WAYS: Mapping[str, Mapping[str, Any]] = {
    "here": {"aggregate": "auto"},
    "workers": {"aggregate": "auto", "driver_records": 0},
    "spark": {"aggregate": "spark"},
}
"""What aggregates: the process of the batch, Spark's Python workers, Spark SQL; and the settings for it."""
