"""A job without SQL ends when the process that waits for it is interrupted."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tidemill.engine.spark.cancelling import collected

PATIENCE = 30.0


class Interrupted(BaseException):
    """What a handler of a signal raises, as Airflow's does."""


def wait(done: Any) -> bool:
    end = time.monotonic() + PATIENCE
    while not done() and time.monotonic() < end:
        time.sleep(0.1)
    return bool(done())


@pytest.mark.spark
def test_an_interrupted_job_does_not_go_on(spark: Any, tmp_path: Path) -> None:
    context, begun = spark.sparkContext, tmp_path / "begun"

    def work(_: Any) -> Any:
        begun.touch()
        time.sleep(10 * PATIENCE)
        yield 1

    def interrupt() -> None:
        wait(begun.exists)
        os.kill(os.getpid(), signal.SIGUSR1)

    def handle(*_: Any) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        threading.Thread(target=interrupt).start()
        with pytest.raises(Interrupted):
            collected(context.parallelize([0], 1).mapPartitions(work))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert wait(lambda: not context.statusTracker().getActiveJobsIds())
    assert not list(context.getJobTags())
