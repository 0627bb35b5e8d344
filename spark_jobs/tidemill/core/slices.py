"""Which rows of a state table count.

Every row that a batch writes into state carries its slice: batch and attempt. A slice is visible only when the
ledger holds its commit; rows of crashed attempts and of zombies are never seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidemill.core.errors import ProtocolError

_ATTEMPTS = 2**20


def slice_number(batch: int, attempt: int) -> int:
    """One number for a slice: it grows with the batch, and within a batch with the attempt.

    Raises:
        ProtocolError: there were a million attempts.
    """
    if attempt >= _ATTEMPTS:
        raise ProtocolError(
            f"batch {batch}: attempt {attempt} is more than the {_ATTEMPTS - 1} that state can tell apart",
            fix="find out why the batch never commits, and build the pipeline again: `tidemill rebuild PIPELINE`",
        )
    return batch * _ATTEMPTS + attempt


def slice_of(number: int) -> tuple[int, int]:
    """The batch and the attempt of which `slice_number` made this number."""
    return divmod(number, _ATTEMPTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceSet:
    """The visible slices: of each batch up to `through`, the slice of one attempt.

    Nearly always the first attempt commits, so only other cases are listed: `exceptions` maps a batch to
    the attempt that committed it, or to 0 when none did (a cancelled batch).
    """

    through: int = 0
    exceptions: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if any(not 0 < batch <= self.through or attempt < 0 for batch, attempt in self.exceptions.items()):
            raise ValueError(f"an exception beyond batch {self.through}: {dict(self.exceptions)}")

    def __contains__(self, slice_: object) -> bool:
        match slice_:
            case (int(batch), int(attempt)):
                return 0 < batch <= self.through and self.exceptions.get(batch, 1) == attempt
            case _:
                return False

    def add(self, batch: int, attempt: int) -> SliceSet:
        """These slices and the one of `batch`, which must be later; batches skipped in between have none."""
        if batch <= self.through:
            raise ValueError(f"batch {batch} is not after {self.through}")
        skipped = dict.fromkeys(range(self.through + 1, batch), 0)
        exceptional = {} if attempt == 1 else {batch: attempt}
        return SliceSet(through=batch, exceptions={**self.exceptions, **skipped, **exceptional})

    def predicate(self, batch: str = "batch_id", attempt: str = "attempt") -> str:
        """The same set as an SQL predicate over two integer columns, true for visible rows."""
        cases = "".join(f" WHEN {b} THEN {a}" for b, a in sorted(self.exceptions.items()))
        expected = f"CASE {batch}{cases} ELSE 1 END" if cases else "1"
        return f"{batch} <= {self.through} AND {attempt} = {expected}"
