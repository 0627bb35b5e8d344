"""Tables of firings whose rows are sent: those of a key come in their order, under this key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka.conftest import Cluster
from support.firings import CONTRACT, TOLD
from support.projects import EVENTS_CONTRACT, NO_SPARK, Mill, a_project, an_event, rows_of
from tidemill.log.reading import read_topic

pytestmark = pytest.mark.kafka

PIPELINE = """
from tidemill import *

with Pipeline("firings", every="1 minute") as pipeline:
    (
        pipeline.read("IN", contract="events", event_time="ts")
        .key_by("user")
        .window(Global())
        .aggregate(n=Count(), amount=Sum("amount"))
        .publish(
            "firings",
            contract="firings",
            topic="IN-out",
            trigger=Repeatedly(AfterCount(1)),
            accumulation="accumulating_and_retracting",
            index="nth",
            operation="operation",
        )
    )
"""


def a_mill(
    folder: Path, session: Any, cluster: Cluster, *, replacing: bool = False, **settings: Any
) -> tuple[Mill, str]:
    topic = cluster.topic()
    cluster.topic(3, name=f"{topic}-out")
    contract = CONTRACT + TOLD["index"] + ("" if replacing else TOLD["operation"])
    contract = "".join(line for line in contract.splitlines(keepends=True) if "amounts" not in line)
    contracts = {"events": EVENTS_CONTRACT.replace("EXTRA", "keep"), "firings": contract}
    text = PIPELINE.replace("IN", topic)
    if replacing:
        text = text.replace("and_retracting", "and_replacing").replace('operation="operation",', "")
        text = text.replace(".publish(", '.filter("amount < 100").publish(')
    project = a_project(folder, text, contracts, log={"kafka": cluster.broker.servers}, **settings)
    return Mill(project, session, "firings"), topic


def check(mill: Mill, topic: str, cluster: Cluster) -> None:
    for batch in range(2):
        cluster.feed(topic, [an_event(n, "abcd"[n % 4], n + 1) for n in range(40 * batch, 40 * batch + 40)])
        mill.run()
    sent = list(read_topic(cluster.log, f"{topic}-out"))
    assert len(sent) == len(rows_of(mill.project.published_uri("firings"))) == 80 + 76
    for user in "abcd":
        own = [record for record in sent if record.key == json.dumps({"user": user}, separators=(",", ":")).encode()]
        assert len({record.partition for record in own}) == 1
        rows = [json.loads(record.value or b"") for record in own]
        total, expected = 0, []
        for number in range(20):
            nth = {"user": user, "nth": number}
            if number:
                expected.append({**nth, "n": number, "amount": total, "operation": "delete"})
            total += 4 * number + "abcd".index(user) + 1
            expected.append({**nth, "n": number + 1, "amount": total, "operation": "insert"})
        assert rows == [{name: row[name] for name in rows[0]} for row in expected]


def test_firings_of_a_key_are_sent_in_their_order_and_under_it(tmp_path: Path, cluster: Cluster) -> None:
    check(*a_mill(tmp_path, NO_SPARK, cluster), cluster)


@pytest.mark.spark
@pytest.mark.long
def test_firings_that_spark_writes_are_sent_in_their_order(tmp_path: Path, spark: Any, cluster: Cluster) -> None:
    check(*a_mill(tmp_path, spark, cluster, writer="spark"), cluster)


def test_a_row_that_a_firing_updates_is_sent_under_its_key_and_one_that_is_removed_without_a_value(
    tmp_path: Path, cluster: Cluster
) -> None:
    mill, topic = a_mill(tmp_path, NO_SPARK, cluster, replacing=True)
    for amounts in ([1, 2], [98], [-50]):
        cluster.feed(topic, [an_event(1, "a", amount) for amount in amounts])
        mill.run()
    sent = [
        (record.key, record.value and json.loads(record.value)) for record in read_topic(cluster.log, f"{topic}-out")
    ]
    of_a = b'{"user":"a"}'
    first, last = ({"user": "a", "nth": n, "n": n + 1, "amount": amount} for n, amount in ((1, 3), (3, 51)))
    assert sent == [(of_a, first), (of_a, None), (of_a, last)]
    assert mill.published() == [last]
