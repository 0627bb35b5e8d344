"""Requests and bytes per user so far, some minutes after the user asked for something."""

from tidemill import AfterProcessingTime, Count, Global, Pipeline, Repeatedly, Sum

with Pipeline("at_interval", every="1 minute", owner="bench", description=__doc__) as pipeline:
    requests = pipeline.read("bench.requests", contract="bench_events", event_time="ts", delay="10 seconds")
    (
        requests.key_by("user")
        .window(Global())
        .aggregate(requests=Count(), bytes=Sum("bytes"))
        .publish(
            "at_interval",
            contract="at_interval",
            trigger=Repeatedly(AfterProcessingTime("3 minutes")),
            accumulation="accumulating_and_replacing",
        )
    )
