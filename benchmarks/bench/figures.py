"""The medians of one size, and how they stand to one another."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The medians of a series; of Structured Streaming, of the state store (`rival`, `tuned_rival`) that was faster."""

    size: int
    tidemill: float | None
    floor: float | None
    available_now: float | None
    rival: str
    available_now_tuned: float | None
    tuned_rival: str
    flink: float | None = None
    duckdb: float | None = None
    kafka: float | None = None

    @property
    def vs_available_now(self) -> float | None:
        """How many times faster than Structured Streaming."""
        return ratio(self.available_now, self.tidemill)

    @property
    def vs_tuned(self) -> float | None:
        """How many times faster than Structured Streaming with every setting that was found to help it."""
        return ratio(self.available_now_tuned, self.tidemill)

    @property
    def vs_flink(self) -> float | None:
        """How many times faster than Flink SQL."""
        return ratio(self.flink, self.tidemill)

    @property
    def vs_floor(self) -> float | None:
        """How many times faster than the bare job; below 1, slower."""
        return ratio(self.floor, self.tidemill)


def ratio(above: float | None, below: float | None) -> float | None:
    """How many times one median is as large as another; None where one of them was not measured."""
    return above / below if above is not None and below else None
