"""Requests, bytes and the slowest answer per user and ten seconds."""

from tidemill import Count, Max, Pipeline, Sum, Tumbling

with Pipeline("bench_requests", every="1 minute", owner="bench", description=__doc__) as pipeline:
    requests = pipeline.read("bench.requests", contract="bench_events", event_time="ts", delay="10 seconds")
    (
        requests.filter("status < 500")
        .key_by("user")
        .window(Tumbling("10 seconds"))
        .aggregate(requests=Count(), bytes=Sum("bytes"), slowest_ms=Max("ms"))
        .publish("requests_by_user", contract="requests_by_user")
    )
