"""A real store of objects, a bucket for each test, and a proxy before it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest
from botocore.retries.standard import ExponentialBackoff
from gateway import gateway
from store import ObjectStore

from support.faults import Faults, proxy
from tidemill.stores.access import S3Access


@pytest.fixture(scope="session", autouse=True)
def _tries_again_soon() -> Iterator[None]:
    """What the client of S3 waits before it tries again, up to seconds, says nothing about us."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExponentialBackoff, "delay_amount", lambda backoff, context: 0.02)
        yield


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """One server for all tests of a process: moto's, or the one that the environment names."""
    second = os.environ.get("TIDEMILL_TEST_STORE") == "versitygw"
    with ObjectStore(tmp_path_factory.mktemp("store"), versitygw=gateway() if second else None) as store:
        yield store


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    """Moto's server, for what a store alone does not speak."""
    with ObjectStore(tmp_path_factory.mktemp("moto")) as store:
        yield store


@pytest.fixture
def bucket(server: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new bucket; who asks is in the environment."""
    for name, value in server.environ.items():
        monkeypatch.setenv(name, value)
    name = f"b{uuid.uuid4().hex[:12]}"
    server.make_bucket(name)
    return name


@pytest.fixture
def access(server: ObjectStore, bucket: str) -> S3Access:
    """How the server is reached."""
    return S3Access({"endpoint": server.endpoint})


@pytest.fixture(scope="session")
def before(server: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Faults]]:
    """A proxy before the server."""
    with proxy(server.endpoint, tmp_path_factory.mktemp("proxy")) as found:
        yield found


@pytest.fixture
def troubled(before: tuple[str, Faults], monkeypatch: pytest.MonkeyPatch) -> tuple[str, Faults]:
    """Its address, and what goes wrong there: nothing yet. Clients in this process wait only briefly to try again."""
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0.02)
    before[1].none()
    return before


@pytest.fixture
def faulty(troubled: tuple[str, Faults], bucket: str) -> tuple[S3Access, Faults]:
    """How the server is reached through the proxy, and what goes wrong there."""
    address, faults = troubled
    return S3Access({"endpoint": address}), faults


@pytest.fixture
def forged(server: ObjectStore, faulty: tuple[S3Access, Faults]) -> tuple[S3Access, Faults]:
    """The same, with requests that the proxy alters or makes up."""
    if server.versitygw is not None:
        pytest.skip("this server checks signatures, and refuses what a proxy has changed")
    return faulty
