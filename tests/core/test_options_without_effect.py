"""What a declaration says and what could have no effect is refused, with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from tidemill import (
    Count,
    CountPolicy,
    Global,
    Pipeline,
    SlidingBuffer,
    TimePolicy,
    TumblingBuffer,
)
from tidemill.core.errors import DeclarationError

BUFFERS = (TumblingBuffer(CountPolicy(3)), SlidingBuffer(CountPolicy(3)))


def windowed(window: Any, **said: Any) -> None:
    with Pipeline("p", every="1 minute") as pipeline:
        stream = pipeline.read("t", contract="events", event_time="ts")
        stream.window(window, **said).aggregate(n=Count()).publish("counts", contract="counts")


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"start": "a b"}, "no columns for its bounds, but start is 'a b'"),
        ({"start": None}, "no columns for its bounds, but start is None"),
        ({"end": 17}, "no columns for its bounds, but end is 17"),
        ({"allowed_lateness": "rubbish"}, "allowed_lateness: not a duration: 'rubbish'"),
        ({"allowed_lateness": "1 s"}, "there is no allowed lateness"),
    ],
)
@pytest.mark.parametrize("window", [Global(), *BUFFERS], ids=str)
def test_windows_refuse_options_that_they_do_not_have(window: Any, said: dict[str, Any], says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        windowed(window, **said)


@pytest.mark.parametrize("window", [Global(), *BUFFERS], ids=str)
def test_windows_take_what_is_true_of_them(window: Any) -> None:
    windowed(window, allowed_lateness="0 s", start="window_start", end=None)


def test_buffers_of_time_have_columns_for_their_bounds() -> None:
    windowed(TumblingBuffer(TimePolicy("1 minute", clock="batch_clock")), start="since", end="until")
