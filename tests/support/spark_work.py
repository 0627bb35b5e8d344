"""What Spark did in a part of a test, as its own metrics tell it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

_SIZES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@dataclass
class Work:
    """The metrics of all queries, by the operator of their plan and by name."""

    metrics: list[tuple[str, str, int]] = field(default_factory=list)

    def sum(self, name: str, *, of: str = "") -> int:
        """A metric over all operators whose name begins with `of`; the metric must be there."""
        found = [value for node, metric, value in self.metrics if metric == name and node.startswith(of)]
        assert found, sorted({(node, metric) for node, metric, _ in self.metrics})
        return sum(found)


@contextmanager
def watched(spark: Any) -> Iterator[Work]:
    """Collects what Spark does inside."""
    work, seen = Work(), {query.executionId() for query in _queries(spark)}
    yield work
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    for query in _queries(spark):
        if query.executionId() not in seen:
            work.metrics += _metrics(spark, query)


def _store(spark: Any) -> Any:
    return spark._jsparkSession.sharedState().statusStore()


def _queries(spark: Any) -> list[Any]:
    found = _store(spark).executionsList()
    return [found.apply(i) for i in range(found.size())]


def _metrics(spark: Any, query: Any) -> Iterator[tuple[str, str, int]]:
    store, number = _store(spark), query.executionId()
    values = store.executionMetrics(number)
    nodes = store.planGraph(number).allNodes()
    for i in range(nodes.size()):
        node = nodes.apply(i)
        metrics = node.metrics()
        for j in range(metrics.size()):
            metric = metrics.apply(j)
            value = values.get(metric.accumulatorId())
            if value.isDefined():
                yield node.name(), metric.name(), _number(value.get())


def _number(text: str) -> int:
    """The total of a metric as Spark shows it: a count, or a size after a line about tasks."""
    shown = text.strip().splitlines()[-1]
    found = re.match(r"([\d.,]+)\s*(B|KiB|MiB|GiB)?", shown)
    if found is None:
        return 0
    return round(float(found[1].replace(",", "")) * _SIZES[found[2] or "B"])
