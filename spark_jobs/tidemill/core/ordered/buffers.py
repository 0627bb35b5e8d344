"""Buffers of records in their order, for each key: SPL's tumbling and sliding windows."""

from __future__ import annotations

from dataclasses import dataclass

from tidemill.core.errors import DeclarationError
from tidemill.core.ordered.policies import (
    CountPolicy,
    DeltaPolicy,
    Policy,
    PunctuationPolicy,
    TimePolicy,
)


@dataclass(frozen=True, slots=True)
class TumblingBuffer:
    """A buffer that is flushed as a whole; each flush is a result, and then the buffer is empty.

    By count it flushes after the insertion that fills it; by delta before the insertion of the record that grew more
    than the threshold above the oldest; by punctuation at each marker, also when it is empty, and at the end of the
    log. By time, records go into windows that start at whole multiples of the length since 1970, each of which flushes
    when the watermark or the clock of batches reaches its end.

    Args:
        flush: the policy.
        emit_empty: whether windows of time without records are results, too, from a key's first record on.

    Raises:
        DeclarationError: that is no policy, or only windows of time could be empty.
    """

    flush: Policy
    emit_empty: bool = False

    def __post_init__(self) -> None:
        _check_policy(self.flush, "flush")
        if self.emit_empty and not isinstance(self.flush, TimePolicy):
            raise DeclarationError(
                f"a buffer that flushes by {self.flush} has no empty windows to emit",
                fix='leave out emit_empty, or flush by TimePolicy("1 minute")',
            )

    def __str__(self) -> str:
        return f"tumbling by {self.flush}{', also empty' if self.emit_empty else ''}"


_EACH_RECORD = CountPolicy(1)


@dataclass(frozen=True, slots=True)
class SlidingBuffer:
    """A buffer that evicts its oldest records, and whose whole content is a result each time it triggers.

    For each record, in this order: a time trigger that is due, a delta trigger, eviction, insertion, a count trigger.
    A count policy evicts the oldest record of a full buffer. A delta policy evicts the oldest while the new record is
    more than the threshold above it; its trigger compares with the record that triggered last, or with the first one.
    A time policy evicts what is older than its length, seen from the newest record or the watermark, whichever is
    later; older records that arrive are late. A time trigger fires at whole multiples of its length since 1970, as
    long as there are records.

    Args:
        evict: the eviction policy.
        trigger: the trigger policy; by default each record triggers.

    Raises:
        DeclarationError: that is no policy, or the two do not go together.
    """

    evict: Policy
    trigger: Policy = _EACH_RECORD

    def __post_init__(self) -> None:
        for name, policy in (("evict", self.evict), ("trigger", self.trigger)):
            _check_policy(policy, name)
            if isinstance(policy, PunctuationPolicy):
                raise DeclarationError(
                    f"{name} is {policy}, but markers say where a buffer ends, and a sliding buffer has no end",
                    fix=f'write TumblingBuffer(PunctuationPolicy("{policy.marker}"))',
                )
        if isinstance(self.trigger, TimePolicy) and not self.trigger.uses_clock:
            raise DeclarationError(
                f"trigger is {self.trigger}, but a buffer in order of arrival cannot wait for records that come out of "
                "order",
                fix='write .window(Sliding(size, slide)) for event time, or TimePolicy(..., clock="batch_clock")',
            )
        deltas = {each.attribute for each in (self.evict, self.trigger) if isinstance(each, DeltaPolicy)}
        if len(deltas) > 1:
            raise DeclarationError(
                f"evict and trigger compare different attributes: {' and '.join(sorted(deltas))}",
                fix="compare the same attribute in both, or choose another policy for one of them",
            )

    def __str__(self) -> str:
        return f"sliding, evict by {self.evict}, trigger by {self.trigger}"


def _check_policy(policy: object, name: str) -> None:
    if not isinstance(policy, CountPolicy | DeltaPolicy | TimePolicy | PunctuationPolicy):
        raise DeclarationError(
            f"{name} is no policy: {policy!r}", fix="write CountPolicy(100), DeltaPolicy(...), TimePolicy(...) or such"
        )
