"""What is declared as windows and says itself when it fires: it takes no trigger."""

from __future__ import annotations

from typing import TypeAlias

from tidemill.core.ordered.buffers import SlidingBuffer, TumblingBuffer
from tidemill.core.ordered.record_windows import RecordWindows

SelfFiring: TypeAlias = TumblingBuffer | SlidingBuffer | RecordWindows
"""Buffers of records in their order, and windows that records define."""
