"""Sessions on a Spark Connect server that a second attempt finds again."""

from __future__ import annotations

import atexit
import os
import socket
import uuid
from contextlib import suppress
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidemill.core.errors import EngineError, EngineUnreachable

_CHOSEN = "session_id="
_RENEWALS = 100
_PORT = 15002
_PATIENCE = 10.0
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
_CLOSED = ("INVALID_HANDLE.SESSION_CLOSED", "INVALID_HANDLE.SESSION_CHANGED", "SESSION_NOT_FOUND")

_open: dict[tuple[str, str], SparkSession] = {}


def connect_session(remote: str, identity: str) -> SparkSession:
    """The session of this identity, with nothing running in it.

    The session stays on the server until it is idle for as long as the server allows, or until the server ends. Then
    the identity's next session gets another id, which is the same for every process. If the address names a session,
    that one is used; others may use it at the same time, so nothing in it is interrupted.

    Raises:
        EngineUnreachable: the server cannot be reached.
        EngineError: the server has closed too many sessions of this identity.
        Exception: an error of Spark's client, for example if behind a proxy the server cannot be reached.
    """
    _probe(remote)
    if _CHOSEN in remote:
        session = _open[remote, ""] = SparkSession.builder.remote(remote).getOrCreate()
        return session
    known = _open.get((remote, identity))
    if known is not None and _is_free(known):
        return known
    for number in range(_RENEWALS):
        session = _create(remote, str(uuid.uuid5(uuid.UUID(identity), str(number))))
        if _is_free(session):
            _open[remote, identity] = session
            return session
    raise EngineError(f"{remote}: {_RENEWALS} sessions of {identity} were closed", fix="restart the server")


def leave(session: SparkSession) -> None:
    """Close the connection, but keep the session on the server for the next process that wants it."""
    for key in [key for key, known in _open.items() if known is session]:
        del _open[key]
    session.client.close()


@atexit.register
def _leave_all() -> None:
    """Close all clients before Python ends: one that is closed later may wait for ever for a thread that is gone."""
    for session in list(_open.values()):
        # Python is ending: nobody would see an error.
        with suppress(Exception):
            leave(session)


def _probe(remote: str) -> None:
    """Check that a server listens: Spark's client would try for ten minutes. With a proxy, nothing is checked.

    Raises:
        EngineUnreachable: no server listens there.
    """
    if any(os.environ.get(name) for name in _PROXIES):
        return
    address = urlsplit(remote)
    try:
        with socket.create_connection((address.hostname or "", address.port or _PORT), timeout=_PATIENCE):
            return
    except OSError as error:
        raise EngineUnreachable(
            f"nobody listens at {address.netloc}: {error.strerror or error}",
            fix="start the Spark Connect server, or correct [spark] remote",
        ) from None


def _create(remote: str, session_id: str) -> SparkSession:
    separator = ";" if "/;" in remote else "/;"
    return SparkSession.builder.remote(f"{remote.rstrip('/;')}{separator}{_CHOSEN}{session_id}").create()


def _is_free(session: SparkSession) -> bool:
    """Whether the server knows the session, or can make it; everything that runs in it is interrupted."""
    try:
        session.interruptAll()
    except PySparkException as error:
        if any(text in str(error) for text in _CLOSED):
            return False
        raise
    return True
