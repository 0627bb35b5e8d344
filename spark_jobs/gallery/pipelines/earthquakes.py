"""Earthquakes of a region in an hour: published before the hour ends, when it has ended, and revised by later reports.

Seismologists report a quake minutes to weeks after it happened. Records of the topic are in the order of `updated`.
"""

from tidemill import AfterCount, AfterWatermark, Average, Count, Max, Pipeline, Tumbling

with Pipeline("earthquakes", every="1 hour", owner="seismology", description=__doc__) as pipeline:
    quakes = (
        pipeline.read("quakes", contract="quakes", event_time="time", delay="10 minutes")
        .filter("type = 'earthquake'")
        .with_columns(after_comma="trim(element_at(split(place, ', '), -1))")
        # Some networks abbreviate what others write out.
        .with_columns(
            region="CASE after_comma WHEN 'CA' THEN 'California' WHEN 'NV' THEN 'Nevada' WHEN 'MX' THEN 'Mexico' "
            "ELSE after_comma END"
        )
    )
    (
        quakes.key_by("region")
        .window(Tumbling("1 hour"), allowed_lateness="30 days")
        .aggregate(quakes=Count(), strongest=Max("mag"), mean=Average("mag"), reported_at=Max("updated"))
        .publish(
            "quake_hours",
            contract="quake_hours",
            trigger=AfterWatermark(early=AfterCount(5), late=AfterCount(1)),
            accumulation="accumulating_and_retracting",
            operation="operation",
            index="nth",
            timing="timing",
        )
    )
