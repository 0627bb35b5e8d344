"""Tidemill: exactly-once stream processing in micro-batches, on Airflow, Spark and Delta.

What declares a pipeline is here at once. What runs one is loaded when it is first used, so that a file of pipelines
needs no Spark.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tidemill.core.declare.aggregates import Average, Count, CountIf, Custom, Max, Min, StdDev, Sum, Variance
from tidemill.core.declare.bitmaps import Bitmap, BloomFilter
from tidemill.core.declare.pipeline import Pipeline
from tidemill.core.declare.sketches import ApproxDistinct, Collect, Distinct, First, HeavyHitters, Last, Quantiles
from tidemill.core.ordered.buffers import SlidingBuffer, TumblingBuffer
from tidemill.core.ordered.evictors import CountEvictor, DeltaEvictor, TimeEvictor
from tidemill.core.ordered.policies import CountPolicy, DeltaPolicy, PunctuationPolicy, TimePolicy
from tidemill.core.ordered.record_windows import RecordWindows
from tidemill.core.ordered.triggers import (
    AfterAll,
    AfterAny,
    AfterCount,
    AfterEach,
    AfterProcessingTime,
    AfterWatermark,
    DefaultTrigger,
    Never,
    OrFinally,
    Repeatedly,
)
from tidemill.core.time.windows import Calendar, Global, Session, Sliding, Tumbling

__all__ = [
    "AfterAll",
    "AfterAny",
    "AfterCount",
    "AfterEach",
    "AfterProcessingTime",
    "AfterWatermark",
    "ApproxDistinct",
    "Average",
    "Bitmap",
    "BloomFilter",
    "Calendar",
    "Collect",
    "Count",
    "CountEvictor",
    "CountIf",
    "CountPolicy",
    "Custom",
    "DefaultTrigger",
    "DeltaEvictor",
    "DeltaPolicy",
    "Distinct",
    "First",
    "Global",
    "HeavyHitters",
    "Last",
    "Max",
    "Min",
    "Never",
    "OrFinally",
    "Pipeline",
    "PunctuationPolicy",
    "Quantiles",
    "RecordWindows",
    "Repeatedly",
    "Session",
    "Sliding",
    "SlidingBuffer",
    "StdDev",
    "Sum",
    "TimeEvictor",
    "TimePolicy",
    "Tumbling",
    "TumblingBuffer",
    "Variance",
]
__version__ = "0.1.0"

if TYPE_CHECKING:
    from tidemill.core.errors import TidemillError as TidemillError
    from tidemill.log.memory import MemoryLog as MemoryLog
    from tidemill.log.producer import Producer as Producer
    from tidemill.log.records import NewRecord as NewRecord
    from tidemill.project.project import Project as Project
    from tidemill.run.loop import Order as Order
    from tidemill.run.loop import run_batches as run_batches

_LATER = {
    "MemoryLog": "tidemill.log.memory",
    "NewRecord": "tidemill.log.records",
    "Order": "tidemill.run.loop",
    "Producer": "tidemill.log.producer",
    "Project": "tidemill.project.project",
    "TidemillError": "tidemill.core.errors",
    "run_batches": "tidemill.run.loop",
}
"""Where what runs a pipeline is; `from tidemill import *` leaves it out."""


def __getattr__(name: str) -> Any:
    """Load what runs a pipeline.

    Raises:
        AttributeError: there is no such name.
    """
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_LATER, "__version__"})
