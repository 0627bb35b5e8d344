"""What a declaration comes to: the settings of a pipeline, and the graph of its operators."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from tidemill.core.declare.graph import Graph
from tidemill.core.declare.guarantees import Guarantee, OnLoss


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSpec:
    """A declared pipeline. Durations are positive; with `idle_timeout` None, no partition ever counts as idle."""

    name: str
    every: timedelta
    owner: str
    description: str
    idle_timeout: timedelta | None
    future_tolerance: timedelta
    takeover_after: timedelta
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    on_loss: OnLoss = OnLoss.REFUSE
    max_drift: timedelta | None = None
    graph: Graph
