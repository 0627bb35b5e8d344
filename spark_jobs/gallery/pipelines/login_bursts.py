"""Attacks on a login: bursts of failures of one source, sessions of sources that attack, and waves over all sources.

Five failures within 60 seconds are suspicious, whoever they come from.
"""

from tidemill import Collect, Count, CountIf, Distinct, Max, Pipeline, Session, Sliding

with Pipeline("login_bursts", every="1 minute", owner="security", description=__doc__) as pipeline:
    logins = pipeline.read("logins", contract="logins", event_time="datetime", delay="1 minute")
    (
        logins.filter("NOT success")
        .key_by("source_ip")
        .window(Sliding("60 seconds", "10 seconds"))
        .aggregate(failures=Count(), usernames=Distinct("username"))
        .filter("failures >= 5")
        .publish("login_bursts", contract="login_bursts")
    )
    attempts = {
        "attempts": Count(),
        "failures": CountIf("NOT success"),
        "usernames": Distinct("username"),
        "last_attempt": Max("datetime"),
    }
    (
        logins.key_by("source_ip")
        .window(Session("60 seconds"))
        .aggregate(**attempts, moments=Collect("CASE WHEN NOT success THEN unix_micros(datetime) END"))
        .filter("failures >= 5")
        .with_columns(
            success_share="(attempts - failures) / attempts",
            # Of all runs of five failures, the one that took the shortest time, in seconds.
            fastest_five="array_min(transform(sequence(5, failures), n -> moments[n - 1] - moments[n - 5])) / 1e6D",
        )
        .filter("fastest_five <= 60")
        .select("window_start", "window_end", "source_ip", *attempts, "success_share", "fastest_five")
        .publish("attacker_sessions", contract="attacker_sessions")
    )
    (
        logins.window(Session("60 seconds"))
        .aggregate(**attempts, sources=Distinct("source_ip"))
        .filter("failures >= 5")
        .with_columns(success_share="(attempts - failures) / attempts")
        .publish("attack_waves", contract="attack_waves")
    )
