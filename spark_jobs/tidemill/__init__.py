"""Tidemill: exactly-once stream processing in micro-batches, on Airflow, Spark and Delta."""

from tidemill.core.declare.aggregates import Average, Count, CountIf, Custom, Max, Min, StdDev, Sum, Variance
from tidemill.core.declare.pipeline import Pipeline
from tidemill.core.declare.sketches import ApproxDistinct, Collect, Distinct, First, HeavyHitters, Last, Quantiles
from tidemill.core.time.windows import Sliding, Tumbling

__all__ = [
    "ApproxDistinct",
    "Average",
    "Collect",
    "Count",
    "CountIf",
    "Custom",
    "Distinct",
    "First",
    "HeavyHitters",
    "Last",
    "Max",
    "Min",
    "Pipeline",
    "Quantiles",
    "Sliding",
    "StdDev",
    "Sum",
    "Tumbling",
    "Variance",
]
__version__ = "0.1.0"
