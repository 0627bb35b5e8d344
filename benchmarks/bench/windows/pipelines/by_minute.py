"""Requests and bytes per user and minute."""

from tidemill import Count, Pipeline, Sum, Tumbling

with Pipeline("by_minute", every="1 minute", owner="bench", description=__doc__) as pipeline:
    requests = pipeline.read("bench.requests", contract="bench_events", event_time="ts", delay="10 seconds")
    (
        requests.key_by("user")
        .window(Tumbling("1 minute"))
        .aggregate(requests=Count(), bytes=Sum("bytes"))
        .publish("by_minute", contract="by_minute")
    )
