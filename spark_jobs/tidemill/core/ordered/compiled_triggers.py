"""From a declared trigger to the rule that runs it."""

from __future__ import annotations

from typing import assert_never

from tidemill.core.ordered import triggers as declared
from tidemill.core.ordered.composite_rules import Each, Parallel, Repeat, Watermark
from tidemill.core.ordered.simple_rules import Count, Delay, Nothing
from tidemill.core.ordered.trigger_rules import Rule


def rule_of(trigger: declared.Trigger) -> Rule:  # noqa: C901  a case for each trigger
    """The rule that runs this trigger."""
    match trigger:
        case declared.DefaultTrigger():
            return Watermark(Nothing(), Count(1))
        case declared.AfterWatermark(early, late):
            return Watermark(Nothing() if early is None else rule_of(early), None if late is None else rule_of(late))
        case declared.AfterCount(count):
            return Count(count)
        case declared.AfterProcessingTime():
            return Delay(trigger.micros)
        case declared.AfterEach(triggers=several):
            return Each(tuple(map(rule_of, several)))
        case declared.AfterAny(triggers=several):
            return Parallel(tuple(map(rule_of, several)), any)
        case declared.AfterAll(triggers=several):
            return Parallel(tuple(map(rule_of, several)), all)
        case declared.OrFinally(one, until):
            return Parallel((rule_of(one), rule_of(until)), any)
        case declared.Repeatedly(one):
            return Repeat(rule_of(one))
        case declared.Never():
            return Nothing()
        case _:
            assert_never(trigger)
