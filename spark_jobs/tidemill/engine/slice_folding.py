"""Folds the slices of some batches into one: less to read, with the same content."""

from __future__ import annotations

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.plan.amendments import Fold
from tidemill.engine.publish.firings import Firings
from tidemill.engine.publish.window_results import Windows
from tidemill.engine.slice_writer import SliceWriter
from tidemill.engine.steps import StateWritten


def fold_slices(flow: Flow, fold: Fold, windows: Windows, firings: Firings, slices: SliceWriter) -> StateWritten:
    """Append the state of the folded batches as one slice, for every table that has state."""
    written = StateWritten()
    for sink in flow.sinks:
        if isinstance(sink, WindowedSink):
            nodes = windows.folded_nodes(sink, fold)
            slices.nodes(sink, nodes, windows.merged.get(sink.table))
            if (staged := windows.folded(sink, fold)) is not None:
                slices.state(sink, staged, written)
        elif isinstance(sink, FiringSink):
            slices.keys(sink, firings.folded(sink, slices.plan.position.slices_of_firings.only(fold.batches)))
    return written
