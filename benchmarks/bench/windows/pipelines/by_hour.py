"""Requests and bytes per user and hour, every minute anew."""

from tidemill import Count, Pipeline, Sliding, Sum

with Pipeline("by_hour", every="1 minute", owner="bench", description=__doc__) as pipeline:
    requests = pipeline.read("bench.requests", contract="bench_events", event_time="ts", delay="10 seconds")
    (
        requests.key_by("user")
        .window(Sliding("1 hour", "1 minute"))
        .aggregate(requests=Count(), bytes=Sum("bytes"))
        .publish("by_hour", contract="by_hour")
    )
