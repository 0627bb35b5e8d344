"""How much is written about companies: who leads every five minutes, and whether the newest value is unusual.

Each topic `tweets.COMPANY` holds the counts of one company, one for every five minutes.
"""

from tidemill import Average, Collect, Count, Last, Max, Pipeline, Sliding, StdDev, Tumbling

with Pipeline("social_volume", every="5 minutes", owner="research", description=__doc__) as pipeline:
    tweets = pipeline.read(
        pattern="tweets[.].+", contract="tweets", event_time="timestamp", delay="1 minute"
    ).with_columns(company="substr(_topic, 8)")
    (
        tweets.window(Tumbling("5 minutes"))
        .aggregate(counts=Collect("struct(value, company)"))
        .with_columns(companies="array_distinct(transform(counts, c -> c.company))")
        .with_columns(
            ranking="slice(sort_array(transform(companies, name -> struct("
            "aggregate(filter(counts, c -> c.company = name), 0L, (sum, c) -> sum + c.value) AS tweets, "
            "name AS company)), false), 1, 10)"
        )
        .with_columns(leader="element_at(ranking, 1).company")
        .select("window_start", "window_end", "leader", "ranking")
        .publish("top_companies", contract="top_companies")
    )
    (
        tweets.key_by("company")
        .window(Sliding("1 day", "5 minutes"))
        .aggregate(
            newest=Last("value"),
            newest_at=Max("timestamp"),
            counts=Count(),
            mean=Average("value"),
            deviation=StdDev("value"),
        )
        # At least half a day of counts, not all equal, and the newest one is of the last five minutes.
        .filter("counts >= 144 AND deviation > 0 AND newest_at >= window_end - INTERVAL 5 MINUTES")
        .with_columns(z_score="(newest - mean) / deviation")
        .publish("volume_scores", contract="volume_scores")
    )
