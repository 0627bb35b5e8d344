"""Keeps a process that is forked beside Spark from the connections of its parent to Java.

Airflow's listeners fork the process of a task, OpenLineage's for each of its events. A child has only the thread that
forked it. As Python forgets the other threads there, Py4J closes their connections to Java, in a finalizer that runs
before anything else in the child: that ends the parent's connections, and the child waits forever if one of those
threads held a lock of logging at that moment.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from threading import get_ident
from typing import Any

from pyspark import SparkContext

_held: dict[int, Iterable[Any]] = {}
"""The connections that each thread holds while it forks."""


@cache
def part_forks() -> None:
    """From now on, a forked child has no connection to Java, and makes its own if it needs one."""
    os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_disown)


def _hold() -> None:
    """Keep connections alive while threads are forgotten, so that no finalizer runs."""
    if SparkContext._gateway is not None:
        _held[get_ident()] = SparkContext._gateway._gateway_client.deque.copy()


def _let_go() -> None:
    _held.pop(get_ident(), None)


def _disown() -> None:
    """Close the child's side of the connections only."""
    for connection in _held.pop(get_ident(), ()):
        connection.socket = connection.stream = None
