"""The written forms of buffers, policies, triggers and evictors."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from tidemill.core.identity.forms import Form, Part
from tidemill.core.ordered import evictors, policies, triggers
from tidemill.core.ordered.buffers import SlidingBuffer, TumblingBuffer
from tidemill.core.ordered.record_windows import RecordWindows

_SEVERAL = {"triggers": Part("triggers")}
_NO_TIME = timedelta(0)
_BUFFER = {
    "idle_timeout": Part("idle_timeout_us", None),
    "most_keys": Part("most_keys", None),
    "order": Part("order", "arrival"),
}

ORDERED_FORMS: Mapping[type, Form] = {
    TumblingBuffer: Form(
        "tumbling_buffer",
        {"flush": Part("flush"), "emit_empty": Part("emit_empty", default=False), **_BUFFER},
    ),
    SlidingBuffer: Form(
        "sliding_buffer",
        {"evict": Part("evict"), "trigger": Part("trigger", policies.CountPolicy(1)), **_BUFFER},
    ),
    RecordWindows: Form("record_windows", {"size": Part("size_us")}),
    policies.CountPolicy: Form("count_policy", {"count": Part("count")}),
    policies.DeltaPolicy: Form("delta_policy", {"attribute": Part("attribute"), "threshold": Part("threshold")}),
    policies.TimePolicy: Form("time_policy", {"length": Part("length_us"), "clock": Part("clock", "event_time")}),
    policies.PunctuationPolicy: Form("punctuation_policy", {"marker": Part("marker")}),
    triggers.DefaultTrigger: Form("default_trigger"),
    triggers.AfterWatermark: Form("after_watermark", {"early": Part("early", None), "late": Part("late", None)}),
    triggers.AfterCount: Form("after_count", {"count": Part("count")}),
    triggers.AfterProcessingTime: Form("after_processing_time", {"delay": Part("delay_us", _NO_TIME)}),
    triggers.AfterEach: Form("after_each", _SEVERAL),
    triggers.AfterAny: Form("after_any", _SEVERAL),
    triggers.AfterAll: Form("after_all", _SEVERAL),
    triggers.Repeatedly: Form("repeatedly", {"trigger": Part("trigger")}),
    triggers.OrFinally: Form("or_finally", {"trigger": Part("trigger"), "until": Part("until")}),
    triggers.Never: Form("never"),
    evictors.CountEvictor: Form("count_evictor", {"count": Part("count"), "after": Part("after", default=False)}),
    evictors.TimeEvictor: Form("time_evictor", {"length": Part("length_us"), "after": Part("after", default=False)}),
    evictors.DeltaEvictor: Form(
        "delta_evictor",
        {"attribute": Part("attribute"), "threshold": Part("threshold"), "after": Part("after", default=False)},
    ),
}
