"""`tidemill run --follow`: batches until a signal asks to stop."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic, sleep
from types import FrameType

from tidemill.cli.failures import failed, show_error
from tidemill.cli.views.log import print_json
from tidemill.core.errors import EngineError, TidemillError

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LOOK = 0.1
"""Seconds after which a pause looks whether a signal has come."""


@dataclass
class SignalledFollower:
    """Stops after the present batch when a signal asks for it (`tidemill.run.following.Follower`).

    `errors` is where standard error was when it began: while Spark starts, it goes elsewhere. `forget` is called when
    an engine fails: the next batch that needs it opens a new one.
    """

    as_json: bool
    errors: int
    signals: int = 0
    forget: Callable[[], None] = lambda: None

    def stopping(self) -> bool:
        """Whether a signal has come."""
        return self.signals > 0

    def failed(self, error: TidemillError) -> None:
        """Print what failed, as a command that ends with it does."""
        if isinstance(error, EngineError):
            self.forget()
        if self.as_json:
            print_json(failed(error))
        show_error(error)
        print("waiting, then trying again", file=sys.stderr, flush=True)

    def pause(self, seconds: float) -> None:
        """Sleep, until a signal comes."""
        end = monotonic() + seconds
        while not self.signals and (left := end - monotonic()) > 0:
            sleep(min(left, _LOOK))

    def asked(self, _number: int, _frame: FrameType | None) -> None:
        """A signal has come; a second one interrupts whatever goes on."""
        self.signals += 1
        if self.signals > 1:
            raise KeyboardInterrupt
        # Whatever goes on may be printing, too.
        os.write(self.errors, b"stopping after the present batch; another signal stops at once\n")

    def listen(self) -> None:
        """Be told of signals. Spark's package listens to Ctrl-C from when it starts: call this again then."""
        for number in _SIGNALS:
            signal.signal(number, self.asked)


@contextmanager
def stopped_by_signals(*, as_json: bool) -> Iterator[SignalledFollower]:
    """A follower that SIGINT (Ctrl-C) and SIGTERM stop."""
    follower = SignalledFollower(as_json, os.dup(2))
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        follower.listen()
        yield follower
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(follower.errors)
