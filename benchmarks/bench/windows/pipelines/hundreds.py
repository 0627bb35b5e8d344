"""Every hundred requests of a user."""

from tidemill import Count, CountPolicy, Pipeline, Sum, TumblingBuffer

with Pipeline("hundreds", every="1 minute", owner="bench", description=__doc__) as pipeline:
    requests = pipeline.read("bench.requests", contract="bench_events", event_time="ts", delay="10 seconds")
    by_user = requests.key_by("user").window(TumblingBuffer(CountPolicy(100)))
    by_user.aggregate(requests=Count(), bytes=Sum("bytes")).publish("hundreds", contract="hundreds")
