"""Buffers of records in their order, for each key: SPL's tumbling and sliding windows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from tidemill.core.errors import DeclarationError
from tidemill.core.given import check_flag
from tidemill.core.ordered.buffer_rules import (
    Order,
    check_most,
    check_policy,
    forgotten,
    order_of,
    sorted_by,
    timeout_of,
)
from tidemill.core.ordered.policies import CountPolicy, DeltaPolicy, Policy, PunctuationPolicy, TimePolicy
from tidemill.core.time.times import duration, micros


@dataclass(frozen=True, slots=True)
class TumblingBuffer:
    """A buffer that is flushed as a whole; each flush is a result, and then the buffer is empty.

    By count it flushes after the insertion that fills it; by delta before the insertion of the record that grew more
    than the threshold above the oldest; by punctuation at each marker, also when it is empty, and by the batch that
    reaches the end of the log. By time, records go into windows that start at whole multiples of the length since 1970,
    each of which flushes when the watermark or the clock of batches reaches its end.

    Args:
        flush: the policy.
        emit_empty: whether windows of time without records are results, too, from a key's first record on. Where a
            batch would fire more than 10,000 in a row for a key, it fires none of these: the key was idle.
        idle_timeout: a key without records for longer than this, by the clock of batches, is forgotten, with what its
            buffer holds. None: no key is.
        most_keys: after a batch, at most so many keys keep something, from 1 to 10,000,000. Of more, those are
            forgotten whose last record came first, with what their buffers hold. None: all are kept.
        order: "arrival", by batch and then by topic, partition and offset; or "event_time": a record waits until the
            watermark has passed it, and the buffer takes those that waited by event time, then topic, partition and
            offset. Batches then do not decide how records follow one another. A record that comes behind the watermark
            is late, a marker, too.

    Raises:
        DeclarationError: that is no policy, or only windows of time could be empty; or the timeout is no such duration,
            or not one for this policy; or that is no such number of keys, or no key keeps anything after a batch; or
            there is no such order, or not in such a buffer.
    """

    flush: Policy
    emit_empty: bool = False
    idle_timeout: str | timedelta | None = None
    most_keys: int | None = None
    order: str = Order.ARRIVAL

    def __post_init__(self) -> None:
        check_policy(self.flush, "flush")
        check_flag(self.emit_empty, "emit_empty")
        if self.emit_empty and not isinstance(self.flush, TimePolicy):
            raise DeclarationError(
                f"a buffer that flushes by {self.flush} has no empty windows to emit",
                fix='leave out emit_empty, or flush by TimePolicy("1 minute")',
            )
        by_clock = isinstance(self.flush, TimePolicy) and self.flush.uses_clock and not self.emit_empty
        ends = by_clock or self.flush == CountPolicy(1)
        object.__setattr__(self, "idle_timeout", timeout_of(self.idle_timeout, self.flush, ends=ends))
        check_most(self.most_keys)
        if self.sorts and isinstance(self.flush, TimePolicy):
            raise DeclarationError(
                f"a buffer that flushes by {self.flush} holds the same records in any order", fix="leave out order"
            )
        object.__setattr__(self, "order", order_of(self.order, self.flush, self.idle_timeout, self.most_keys))
        if self.most_keys is not None and self.flush == CountPolicy(1):
            raise DeclarationError(f"no key keeps anything in a buffer by {self.flush}", fix="leave out most_keys")

    @property
    def sorts(self) -> bool:
        """Whether records wait for the watermark, and are taken in order of event time."""
        return self.order == Order.EVENT_TIME

    @property
    def timeout(self) -> int | None:
        """`idle_timeout` in microseconds."""
        return None if self.idle_timeout is None else micros(duration(self.idle_timeout))

    def __str__(self) -> str:
        empty = ", also empty" if self.emit_empty else ""
        return f"tumbling by {self.flush}{empty}{forgotten(self.idle_timeout, self.most_keys)}{sorted_by(self.order)}"


_EACH_RECORD = CountPolicy(1)


@dataclass(frozen=True, slots=True)
class SlidingBuffer:
    """A buffer that evicts its oldest records, and whose whole content is a result each time it triggers.

    For each record, in this order: a time trigger that is due, a delta trigger, eviction, insertion, a count trigger.
    A count policy evicts the oldest record of a full buffer. A delta policy evicts the oldest while the new record is
    more than the threshold above it; its trigger compares with the record that triggered last, or with the first one.
    A time policy evicts what is older than its length, seen from the newest record of the key or the watermark,
    whichever is later, or from the clock of batches. A record that is too old when it comes is evicted at once: it
    counts for the trigger, but is in no result. A buffer without records is no result. A time trigger fires at whole
    multiples of its length since 1970, as long as there are records; where a batch comes so late that these are more
    than 10,000, only at the last. In order of event time, what a record makes too old is evicted before anything else,
    because a batch in between would have evicted it.

    Args:
        evict: the eviction policy.
        trigger: the trigger policy; by default each record triggers.
        idle_timeout: a key without records for longer than this, by the clock of batches, is forgotten, with what its
            buffer holds. None: no key is.
        most_keys: after a batch, at most so many keys keep something, from 1 to 10,000,000. Of more, those are
            forgotten whose last record came first, with what their buffers hold. None: all are kept.
        order: "arrival", by batch and then by topic, partition and offset; or "event_time": a record waits until the
            watermark has passed it, and the buffer takes those that waited by event time, then topic, partition and
            offset. Batches then do not decide how records follow one another. A record that comes behind the watermark
            is late, a marker, too.

    Raises:
        DeclarationError: that is no policy, or the two do not go together; or the timeout is no such duration, or not
            one for these policies; or that is no such number of keys; or there is no such order, or not in such a
            buffer.
    """

    evict: Policy
    trigger: Policy = _EACH_RECORD
    idle_timeout: str | timedelta | None = None
    most_keys: int | None = None
    order: str = Order.ARRIVAL

    def __post_init__(self) -> None:
        for name, policy in (("evict", self.evict), ("trigger", self.trigger)):
            check_policy(policy, name)
            if isinstance(policy, PunctuationPolicy):
                raise DeclarationError(
                    f"{name} is {policy}, but markers say where a buffer ends, and a sliding buffer has no end",
                    fix=f'write TumblingBuffer(PunctuationPolicy("{policy.marker}"))',
                )
        object.__setattr__(self, "order", order_of(self.order, self.evict, self.idle_timeout, self.most_keys))
        if isinstance(self.trigger, TimePolicy) and not self.trigger.uses_clock:
            why = "is triggered by its records, or by the clock" if self.sorts else "cannot wait for those out of order"
            raise DeclarationError(
                f"trigger is {self.trigger}, but a buffer in order of {self.order.replace('_', ' ')} {why}",
                fix='write .window(Sliding(size, slide)) for event time, or TimePolicy(..., clock="batch_clock")',
            )
        deltas = {each.attribute for each in (self.evict, self.trigger) if isinstance(each, DeltaPolicy)}
        if len(deltas) > 1:
            raise DeclarationError(
                f"evict and trigger compare different attributes: {' and '.join(sorted(deltas))}",
                fix="compare the same attribute in both, or choose another policy for one of them",
            )
        ends = isinstance(self.evict, TimePolicy)
        object.__setattr__(self, "idle_timeout", timeout_of(self.idle_timeout, self.evict, self.trigger, ends=ends))
        check_most(self.most_keys)

    @property
    def sorts(self) -> bool:
        """Whether records wait for the watermark, and are taken in order of event time."""
        return self.order == Order.EVENT_TIME

    @property
    def timeout(self) -> int | None:
        """`idle_timeout` in microseconds."""
        return None if self.idle_timeout is None else micros(duration(self.idle_timeout))

    def __str__(self) -> str:
        said = forgotten(self.idle_timeout, self.most_keys) + sorted_by(self.order)
        return f"sliding, evict by {self.evict}, trigger by {self.trigger}{said}"
