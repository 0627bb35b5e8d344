"""Requests, bytes and the slowest answer per ten seconds, three times over: by user, by page and by status."""

from tidemill import Count, Max, Pipeline, Sum, Tumbling

with Pipeline("wide", every="1 minute", owner="bench", description=__doc__) as pipeline:
    requests = pipeline.read("bench.requests", contract="bench_events", event_time="ts", delay="10 seconds")
    served = requests.filter("status < 500")
    for key in ("user", "page", "status"):
        windows = served.key_by(key).window(Tumbling("10 seconds"))
        totals = windows.aggregate(requests=Count(), bytes=Sum("bytes"), slowest_ms=Max("ms"))
        totals.publish(f"requests_by_{key}", contract=f"requests_by_{key}")
