"""A process that is forked beside Spark, as Airflow's listeners do it, leaves its parent's Java alone."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

PATIENCE = 30.0


def status(child: Callable[[], None]) -> int | None:
    """The exit status of a forked process; None if it does not end."""
    process = os.fork()
    if not process:
        try:
            child()
        finally:
            os._exit(0)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        done, code = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(code)
        time.sleep(0.02)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None


@contextmanager
def another_thread(does: Callable[[], None]) -> Iterator[None]:
    """A thread that has done something, and still lives."""
    ready, over = threading.Event(), threading.Event()

    def run() -> None:
        does()
        ready.set()
        over.wait(2 * PATIENCE)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        yield
    finally:
        over.set()
        thread.join()


def sockets(spark: Any) -> list[Any]:
    return [connection.socket for connection in spark._jvm._gateway_client.deque]


@pytest.mark.spark
def test_a_fork_leaves_the_connections_of_other_threads_open(spark: Any) -> None:
    def ask() -> None:
        assert spark._jvm.java.lang.Math.abs(-1) == 1

    with another_thread(ask):
        assert status(lambda: None) == 0
        opened = sockets(spark)
        assert len(opened) > 1
        for connection in opened:
            connection.setblocking(False)
            try:
                # One that is shut down would give b"" at once.
                with pytest.raises(BlockingIOError):
                    connection.recv(1)
            finally:
                connection.setblocking(True)


@pytest.mark.spark
def test_a_fork_ends_although_another_thread_writes_to_the_log(spark: Any) -> None:
    handler = logging.StreamHandler()
    logger = logging.getLogger("py4j.clientserver")

    def ask_and_begin_a_line() -> None:
        assert spark._jvm.java.lang.Math.abs(-1) == 1
        handler.acquire()  # What a child does before logging repairs its locks waits for this one.

    logger.addHandler(handler)
    before = logger.level
    logger.setLevel(logging.INFO)
    try:
        with another_thread(ask_and_begin_a_line):
            assert status(lambda: None) == 0
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


@pytest.mark.spark
def test_a_fork_that_asks_java_gets_a_connection_of_its_own(spark: Any) -> None:
    answers, told = os.pipe()

    def ask() -> None:
        os.write(told, b"%d" % spark._jvm.java.lang.Math.abs(-7))

    assert status(ask) == 0
    assert os.read(answers, 9) == b"7"
    assert spark._jvm.java.lang.Math.abs(-8) == 8
