"""Requests and bytes per user and visit: no longer than 30 seconds without a request."""

from tidemill import Count, Pipeline, Session, Sum

with Pipeline("visits", every="1 minute", owner="bench", description=__doc__) as pipeline:
    requests = pipeline.read("bench.requests", contract="bench_events", event_time="ts", delay="10 seconds")
    (
        requests.key_by("user")
        .window(Session("30 seconds"))
        .aggregate(requests=Count(), bytes=Sum("bytes"))
        .publish("visits", contract="visits")
    )
