"""Requests, bytes, visitors and status classes per page and minute, from an access log."""

from tidemill import ApproxDistinct, Count, CountIf, Pipeline, Sum, Tumbling

with Pipeline("page_views", every="1 minute", owner="web", description=__doc__) as pipeline:
    hits = pipeline.read("web.access", contract="web_access", event_time="ts", delay="1 minute")
    (
        hits.with_columns(page="split(path, '[?]')[0]")
        .key_by("page")
        .window(Tumbling("1 minute"), allowed_lateness="1 hour")
        .aggregate(
            requests=Count(),
            bytes=Sum("bytes"),
            visitors=ApproxDistinct("client"),
            status_2xx=CountIf("status between 200 and 299"),
            status_3xx=CountIf("status between 300 and 399"),
            status_4xx=CountIf("status between 400 and 499"),
            status_5xx=CountIf("status between 500 and 599"),
        )
        .publish("page_views_by_minute", contract="page_views_by_minute")
    )
