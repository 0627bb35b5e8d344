"""Everything Tidemill raises on purpose.

Each error says what failed, where, what was expected and found, and what to do. `retryable` tells a
scheduler whether the same work may succeed without anybody's help. docs/reference/errors.md shows which error is a kind
of which.
"""

from __future__ import annotations

import re
from typing import ClassVar

from tidemill.core.exit_code import ExitCode

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters except line ends, and those of Unicode that change the direction of text or end lines."""

_SHOWN = 100
"""The most characters of a value that a text shows."""


def shown(value: object) -> str:
    """A value that somebody gave, as errors show it: as Python writes it, and cut if it is long."""
    return cut(repr(value))


def cut(text: str) -> str:
    """A text; of one with more than 100 characters the begin of it, and how many there are."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text):,} characters)"


def printable(text: str) -> str:
    """Text that people or records hold, safe for a terminal: control characters except line ends are escaped."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


class TidemillError(Exception):
    """Base of every error raised on purpose; its text is fit for a user, without a stack trace."""

    retryable: ClassVar[bool] = False
    exit_code: ClassVar[ExitCode] = ExitCode.WRONG

    def __init__(self, message: str, *, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.message}\n  fix: {self.fix}" if self.fix else self.message


class InputError(TidemillError):
    """What the user wrote or gave is wrong."""


class DeclarationError(InputError):
    """A pipeline declaration that is ambiguous, impossible or could lose data."""


class ContractError(InputError):
    """A data contract that cannot be read, or asks for something that cannot be run."""


class ConfigError(InputError):
    """A setting, a flag or an environment variable is missing or wrong."""


class KeysCollide(InputError, ValueError):
    """Rows that are published under different keys agree in all columns of the key, as their contract types them."""

    def __init__(self, message: str) -> None:
        super().__init__(
            message,
            fix="give the key's columns in the contract types that keep their values apart: text needs string; "
            "then `tidemill rebuild`",
        )


class LogInputError(InputError):
    """Records or arguments given to a log command are wrong."""


class AmendmentError(InputError):
    """A backfill, repair or rewind that cannot be done as asked; nothing was moved."""


class BackfillOpen(AmendmentError):
    """A backfill is not complete, and nothing else may go back before."""


class NothingRead(AmendmentError):
    """No committed batch has read anything of what is to be read again."""


class LogError(TidemillError):
    """The log does not hold what a plan needs; nothing was moved."""


class UnknownTopic(LogError):
    """No such topic in the log."""


class TooManyPartitions(LogError):
    """A topic has so many partitions that asking them would not end."""


class TopicRecreated(LogError):
    """A topic has the planned name but another identity: its offsets mean other records."""


class OffsetsLost(LogError):
    """Planned offsets are below the log's start, past its end, or in a hole."""


class LogUnreachable(LogError):
    """The log did not answer, or refused to; it may answer later."""

    exit_code = ExitCode.RETRY
    retryable = True


class LogRefused(LogError):
    """The log does not let in whoever asks: a name, a password or a certificate is wrong."""


class StoreError(TidemillError):
    """A folder or a store of objects does not do what the log or the lake needs of it."""


class StoreUnreachable(StoreError):
    """A store of objects did not answer, or refused to; it may answer later."""

    exit_code = ExitCode.RETRY
    retryable = True


class SegmentDamaged(LogError):
    """A segment file cannot be read as what its name promises."""


class ProtocolError(TidemillError):
    """Another attempt got there first; nothing was moved."""


class Busy(ProtocolError):
    """Another run holds the open batch, which is not old enough to be taken over."""

    exit_code = ExitCode.BUSY
    retryable = True


class Fenced(ProtocolError):
    """A newer claim on the batch exists: this attempt stops and nothing it wrote counts."""

    exit_code = ExitCode.BUSY


class CommitUnknown(ProtocolError):
    """A write may or may not have landed; the next attempt finds out by reading."""

    exit_code = ExitCode.RETRY
    retryable = True


class LedgerDamaged(TidemillError):
    """The ledger contradicts itself or lacks what its tables hold, or a newer version of Tidemill wrote it."""


class TableDamaged(TidemillError):
    """A table is gone, older than the ledger says, another one, or lost a file; nothing was moved."""


class ForeignTable(TidemillError):
    """A table that a pipeline would write or read as its own belongs to another one; nothing was written."""


class Incompatible(TidemillError):
    """The declaration changed in a way that the committed state cannot follow."""


class AuditBlocked(TidemillError):
    """Staged rows break a rule of severity error; nothing was published and no offset moved."""

    exit_code = ExitCode.BLOCKED


class Unbalanced(TidemillError):
    """The account of a batch does not add up; the batch does not commit."""


class EngineError(TidemillError):
    """Spark, Java or a table refused to work; the same work may succeed later."""

    exit_code = ExitCode.RETRY
    retryable = True


class EngineUnreachable(EngineError):
    """Spark did not answer; it may answer later."""
