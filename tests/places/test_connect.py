"""Sessions of a Connect server: what a predecessor left running ends, and a server that ends is a retry."""

from __future__ import annotations

import os
import signal
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from spark_servers import ConnectServer

from places.conftest import RUN, Start, ended
from places.test_cluster import a_mill, whole
from support.projects import SHORT_LIVED
from tidemill.core.protocol.failpoints import VARIABLE

pytestmark = [pytest.mark.spark, pytest.mark.long]

MANAGER = "spark.connect.session.manager"
EVENTS = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false"}

BUSY = """
import sys
from tidemill.project.project import Project
from tidemill.run.sessions import project_session
session = project_session(Project.load(sys.argv[1]), "wide")
print("there", flush=True)
session.sql("SELECT count(DISTINCT a.id * b.id) FROM range(10000000) a CROSS JOIN range(10000000) b").collect()
"""

ENDING = """
import sys, threading, time
from tidemill.engine.spark.connect import connect_session
session = connect_session(sys.argv[1], sys.argv[2])
long = session.sql("SELECT count(DISTINCT a.id * b.id) FROM range(10000000) a CROSS JOIN range(10000000) b")
threading.Thread(target=long.collect, daemon=True).start()
time.sleep(3)
print("there")
"""

COMING = """
import sys
from tidemill.engine.spark.connect import connect_session
print(connect_session(sys.argv[1], sys.argv[2]).range(5).count())
"""

LOGIN = """
import sys
from tidemill.engine.spark.session import ConnectSpark, open_session
from tidemill.log.kafka_access import Access
access = Access(servers="b:9", protocol="SASL_SSL", user="miller", password="gr4in")
session = open_session(ConnectSpark(remote=sys.argv[1], identity=sys.argv[2]), name="t")
read = session.read.format("kafka").option("subscribe", "events-of-shop").option("startingOffsets", "earliest")
for name, value in access.java().items():
    read = read.option(f"kafka.{name}", value)
try:
    read.load().count()
except Exception as error:
    print(type(error))
"""

DOCTOR = """
import sys
from tidemill.cli.main import main
main(["--project", sys.argv[1], "doctor"])
"""

# In a process of its own: one that has opened such a session takes every session for one.
IDLE = """
import sys, time
from pyspark.errors import PySparkException
from tidemill.engine.spark.connect import connect_session, leave
server, identity = sys.argv[1:]
first = connect_session(server, identity)
print(first.range(5).count(), connect_session(server, identity) is first)
time.sleep(8)
try:
    first.range(5).count()
except PySparkException as error:
    print("released" if "SESSION" in str(error) else error)
second = connect_session(server, identity)
print(second is first, second.range(5).count())
for session in (first, second):
    leave(session)
"""


def test_what_a_dead_predecessor_left_running_is_interrupted(
    tmp_path: Path, spark: Any, server: ConnectServer, start: Start
) -> None:
    mill = a_mill(tmp_path, spark, {"remote": server.remote})
    first = start(BUSY, mill.project.folder)
    assert first.stdout is not None
    assert first.stdout.readline().strip() == "there"
    time.sleep(3)
    os.kill(first.pid, signal.SIGKILL)
    # Both cores are taken for hours: nothing else runs there before that has ended.
    ended(start(RUN, mill.project.folder))
    assert whole(mill)


def test_a_process_ends_though_the_server_still_works_for_it(server: ConnectServer, start: Start) -> None:
    identity = uuid.uuid4()
    assert "there" in ended(start(ENDING, server.remote, identity))
    assert ended(start(COMING, server.remote, identity)).split() == ["5"], "and what it left is interrupted"


def test_a_server_that_ends_in_a_batch_is_a_retry(
    tmp_path: Path, spark: Any, server: ConnectServer, start: Start
) -> None:
    mill, gate = a_mill(tmp_path, spark, {"remote": server.remote}, driver_rows=1), tmp_path / "gate"
    # With so few rows for the driver, the server still has panes to write.
    process = start(RUN, mill.project.folder, **{VARIABLE: f"before:panes:sums=pause:{gate}"})
    reached, end = Path(f"{gate}.reached"), time.monotonic() + 200
    while not reached.exists() and time.monotonic() < end:
        assert process.poll() is None, ended(process)
        time.sleep(0.1)
    assert reached.exists()
    server.kill()
    server.start()
    gate.touch()
    said = ended(process, 6)
    assert "Traceback" not in said
    ended(start(RUN, mill.project.folder))
    assert whole(mill)


def test_what_the_server_records_has_no_password(tmp_path: Path, start: Start) -> None:
    (tmp_path / "events").mkdir()
    conf = {**EVENTS, "spark.eventLog.dir": f"file://{tmp_path}/events", **SHORT_LIVED}
    with ConnectServer(tmp_path / "server", conf=conf) as server:
        ended(start(LOGIN, server.remote, uuid.uuid4()))
    told = b"".join(path.read_bytes() for path in (tmp_path / "events").rglob("*") if path.is_file())
    assert b"events-of-shop" in told
    assert b"gr4in" not in told


def test_doctor_says_what_the_server_and_its_workers_have(
    tmp_path: Path, spark: Any, server: ConnectServer, start: Start
) -> None:
    mill = a_mill(tmp_path, spark, {"remote": server.remote})
    said = " ".join(ended(start(DOCTOR, mill.project.folder)).split())
    for part in ("Spark Connect at sc://", "answers, its workers have Python 3", "everything is there"):
        assert part in said


def test_a_session_that_nobody_uses_is_released_and_the_next_batch_gets_another(tmp_path: Path, start: Start) -> None:
    conf = {f"{MANAGER}.defaultSessionTimeout": "3s", f"{MANAGER}.maintenanceInterval": "1s", **SHORT_LIVED}
    with ConnectServer(tmp_path / "server", conf=conf) as server:
        assert ended(start(IDLE, server.remote, uuid.uuid4())).split() == ["5", "True", "released", "False", "5"]
