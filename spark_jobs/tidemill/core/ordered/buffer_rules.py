"""What a declared buffer must be, and what its texts say."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from tidemill.core.errors import DeclarationError
from tidemill.core.given import check_whole
from tidemill.core.ordered.policies import CountPolicy, DeltaPolicy, Policy, PunctuationPolicy, TimePolicy
from tidemill.core.time.times import duration, micros, positive_duration, show_duration

MOST_KEYS = 10_000_000
"""The greatest number of keys that `most_keys` may allow: drivers hold what all keys keep."""


class Order(StrEnum):
    """In which order a buffer takes records: as they arrive, or by event time, once the watermark has passed them."""

    ARRIVAL = "arrival"
    EVENT_TIME = "event_time"


def check_policy(policy: object, name: str) -> None:
    """Refuse what is no policy."""
    if not isinstance(policy, CountPolicy | DeltaPolicy | TimePolicy | PunctuationPolicy):
        raise DeclarationError(
            f"{name} is no policy: {policy!r}", fix="write CountPolicy(100), DeltaPolicy(...), TimePolicy(...) or such"
        )


def timeout_of(given: str | timedelta | None, *policies: Policy, ends: bool) -> timedelta | None:
    """The timeout as a duration, if there is something to forget, and if it is forgotten after it was due to fire.

    `ends` says that what a key keeps ends without a timeout.
    """
    if given is None:
        return None
    timeout, policy = positive_duration(given, "idle_timeout"), policies[0]
    if ends:
        raise DeclarationError(f"keys keep nothing for long in a buffer by {policy}", fix="leave out idle_timeout")
    for policy in (each for each in policies if isinstance(each, TimePolicy)):
        if not policy.uses_clock:
            raise DeclarationError(
                f"idle_timeout is by the clock of batches, and in a buffer by {policy} records wait for the watermark: "
                "they would be forgotten before they fire",
                fix="leave out idle_timeout",
            )
        if micros(timeout) < policy.micros:
            raise DeclarationError(
                f"idle_timeout is {show_duration(timeout)}, shorter than {policy}: keys would be forgotten before "
                "their time comes",
                fix=f'write at least idle_timeout="{show_duration(duration(policy.length))}"',
            )
    return timeout


def check_most(keys: int | None) -> None:
    """Refuse what is no number of keys."""
    if keys is not None:
        check_whole(keys, "most_keys", 1, MOST_KEYS)


def forgotten(timeout: str | timedelta | None, most: int | None) -> str:
    """What a text says of the keys that are forgotten; empty if none are."""
    idle = "" if timeout is None else f", a key forgotten after {show_duration(duration(timeout))} without records"
    return idle if most is None else f"{idle}, of {most:,} keys at most"


def order_of(given: str, policy: Policy, timeout: str | timedelta | None, most: int | None) -> Order:
    """The order, if `policy` goes with it, and if no record waits in vain."""
    try:
        order = Order(given)
    except ValueError:
        known = " or ".join(f'"{each.value}"' for each in Order)
        raise DeclarationError(
            f"the order of a buffer is {known}, found {given!r}", fix="leave out order for that of arrival"
        ) from None
    for name, bound in (("idle_timeout", timeout), ("most_keys", most)):
        if order is Order.EVENT_TIME and bound is not None:
            raise DeclarationError(
                f"{name} forgets keys, and in order of event time their records wait for the watermark: they would be "
                "forgotten before they are in the buffer",
                fix=f"leave out {name}, or the order",
            )
    if order is Order.EVENT_TIME and isinstance(policy, TimePolicy) and policy.uses_clock:
        raise DeclarationError(
            f"{policy} looks at when records arrive, and in order of event time that says nothing of a record",
            fix='leave out the order, or compare event times: TimePolicy("1 minute")',
        )
    return order


def sorted_by(order: str) -> str:
    """What a text says of the order, where it is not that of arrival."""
    return ", in order of event time" if order == Order.EVENT_TIME else ""
