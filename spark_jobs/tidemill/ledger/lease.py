"""The lease of a claim: renewed by the run that executes a batch, checked by a run that wants to take it over."""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from contextlib import suppress
from datetime import timedelta
from types import TracebackType

from tidemill.core.errors import LedgerDamaged, TidemillError
from tidemill.core.protocol.codec import from_json, to_json
from tidemill.core.protocol.leases import Beat, Clock, Holder, beat_every, holder_of, watch_for
from tidemill.core.protocol.view import OpenBatch
from tidemill.ledger.process import clock
from tidemill.stores.interface import Store

_PATIENCE = 5.0
_LOOKS = 12
_NO_BEAT = Beat(number=0, every=10.0, clock=Clock(kernel="", seconds=0.0))
_logger = logging.getLogger(__name__)


class Lease:
    """Protects a run from takeover: renewed in the background from `hold` until the context ends.

    The renewing thread ends when the process ends, however it ends, and stops while the process is stopped. It writes
    nothing but the lease's object.
    """

    def __init__(self, store: Store, folder: str, *, takeover_after: timedelta) -> None:
        self._store, self._folder, self._takeover_after = store, folder, takeover_after
        self._every = beat_every(takeover_after)
        self._name: str | None = None
        self._process = os.getpid()
        self._ended, self._writing = threading.Event(), threading.Lock()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def hold(self) -> str | None:
        """Write the lease and start to renew it. Call this before writing the claim that names it.

        Returns the name of the lease, or None if the store refuses it: then others judge the claim by its age.
        """
        if self._name is None:
            name = uuid.uuid4().hex
            try:
                self._beat(name, 1)
            except TidemillError as error:
                _logger.warning("the claim has no lease, and is judged by its age: %s", error.message)
                return None
            self._name = name
            threading.Thread(target=self._renew, args=(name,), name="tidemill-lease", daemon=True).start()
        return self._name

    def release(self) -> None:
        """End the lease: the next run that finds the batch open can continue it at once."""
        # A forked process inherits this object, but not the lease.
        if self._name is None or os.getpid() != self._process:
            return
        self._ended.set()
        # A write that hangs must not delay the end of a batch: the lease expires by itself.
        if self._writing.acquire(timeout=_PATIENCE):
            try:
                self.forget(self._name)
            finally:
                self._writing.release()

    def forget(self, name: str | None) -> None:
        """Delete the lease of an attempt that has ended or was taken over."""
        with suppress(TidemillError):
            if name is not None:
                self._store.delete(self._object(name))

    def sweep(self, older: timedelta, *, keep: str | None, dry_run: bool = False) -> int:
        """Delete leases of runs killed right after their commit: those not renewed for `older`. Return how many.

        `keep` names the lease of the open batch, which stays.
        """
        left = []
        for name in self._store.list(self._folder):
            with suppress(FileNotFoundError, TidemillError):
                if name != keep and self._store.aged(self._object(name)).age > older:
                    left.append(name)
        for name in () if dry_run else left:
            self.forget(name)
        return len(left)

    def look(self, batch: OpenBatch) -> Holder:
        """Judge from its lease whether the holder of an open batch is alive. May watch it for several beats."""
        if batch.lease is None:
            return Holder.UNKNOWN
        try:
            aged = self._store.aged(self._object(batch.lease))
            beat = _read(aged.data)
            found = holder_of(beat, age=aged.age, here=clock(), takeover_after=self._takeover_after)
            return self._watched(batch.lease, beat, aged.data) if found is Holder.DOUBTFUL else found
        except FileNotFoundError:
            return Holder.STOPPED

    def _watched(self, name: str, beat: Beat, data: bytes) -> Holder:
        for _ in range(_LOOKS):
            time.sleep(watch_for(beat).total_seconds() / _LOOKS)
            if self._store.read(self._object(name)) != data:
                return Holder.WORKS
        return Holder.STOPPED

    def _renew(self, name: str) -> None:
        number = 1
        while not self._ended.wait(self._every.total_seconds()):
            with self._writing:
                if self._ended.is_set():
                    return
                number += 1
                # Whatever is wrong with the store now, the next beat may succeed.
                with suppress(Exception):
                    self._beat(name, number)

    def _beat(self, name: str, number: int) -> None:
        beat = Beat(number=number, every=self._every.total_seconds(), clock=clock())
        self._store.replace(self._object(name), to_json(beat).encode())

    def _object(self, name: str) -> str:
        return f"{self._folder}/{name}"


def _read(data: bytes) -> Beat:
    try:
        return from_json(Beat, data.decode(errors="replace"))
    except LedgerDamaged:
        # Unreadable: only the store's clock can tell its age.
        return _NO_BEAT
