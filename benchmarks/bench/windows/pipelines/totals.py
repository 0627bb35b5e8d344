"""Requests and bytes per user so far."""

from tidemill import Count, Pipeline, Sum

with Pipeline("totals", every="1 minute", owner="bench", description=__doc__) as pipeline:
    requests = pipeline.read("bench.requests", contract="bench_events", event_time="ts", delay="10 seconds")
    (requests.key_by("user").aggregate(requests=Count(), bytes=Sum("bytes")).publish("totals", contract="totals"))
