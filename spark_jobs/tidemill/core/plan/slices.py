"""Which rows of a state table are visible.

Every row that a batch writes into state carries its slice: batch and attempt. A slice is visible only when the
ledger holds its commit, so rows of crashed attempts and of zombies never become visible.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tidemill.core.errors import ProtocolError

_ATTEMPTS = 2**20


def slice_number(batch: int, attempt: int) -> int:
    """A slice as one number: it grows with the batch, and within a batch with the attempt.

    Raises:
        ProtocolError: the attempt number is 2**20 or higher.
    """
    if attempt >= _ATTEMPTS:
        raise ProtocolError(
            f"batch {batch}: attempt {attempt} is more than the {_ATTEMPTS - 1} that state can tell apart",
            fix="find out why the batch never commits, and build the pipeline again: `tidemill rebuild PIPELINE`",
        )
    return batch * _ATTEMPTS + attempt


def slice_of(number: int) -> tuple[int, int]:
    """The batch and the attempt of a number that `slice_number` gave."""
    return divmod(number, _ATTEMPTS)


@dataclass(frozen=True, slots=True, order=True)
class BatchRange:
    """The batches with `from_batch <= batch_id < until_batch`."""

    from_batch: int
    until_batch: int

    def __post_init__(self) -> None:
        if not 0 < self.from_batch < self.until_batch:
            raise ValueError(f"not a range of batches: [{self.from_batch}, {self.until_batch})")

    def __contains__(self, batch: object) -> bool:
        return isinstance(batch, int) and self.from_batch <= batch < self.until_batch

    def __len__(self) -> int:
        return self.until_batch - self.from_batch

    @property
    def batches(self) -> range:
        """The ids of the batches."""
        return range(self.from_batch, self.until_batch)

    def __str__(self) -> str:
        last = self.until_batch - 1
        return f"batch {last}" if last == self.from_batch else f"batches {self.from_batch} to {last}"


def batch_ranges(batches: Iterable[int | BatchRange]) -> tuple[BatchRange, ...]:
    """These batches in as few ranges as possible, sorted."""
    found: list[BatchRange] = []
    for item in sorted(b if isinstance(b, BatchRange) else BatchRange(b, b + 1) for b in batches):
        if found and item.from_batch <= found[-1].until_batch:
            found[-1] = BatchRange(found[-1].from_batch, max(found[-1].until_batch, item.until_batch))
        else:
            found.append(item)
    return tuple(found)


def show_batches(ranges: Sequence[BatchRange]) -> str:
    """For example "batch 3", or "batches 1 and 3 to 4"."""
    parts = [str(r).partition(" ")[2] for r in ranges]
    several = len(parts) > 1 or any(len(r) > 1 for r in ranges)
    *first, last = parts
    return f"{'batches' if several else 'batch'} {', '.join(first)}{' and ' if first else ''}{last}"


def in_both(one: Iterable[BatchRange], other: Iterable[BatchRange]) -> tuple[BatchRange, ...]:
    """The batches that are in `one` and in `other`, in as few ranges as possible."""
    left, right, found = list(batch_ranges(one))[::-1], list(batch_ranges(other))[::-1], []
    while left and right:
        low = max(left[-1].from_batch, right[-1].from_batch)
        high = min(left[-1].until_batch, right[-1].until_batch)
        if low < high:
            found.append(BatchRange(low, high))
        (left if left[-1].until_batch == high else right).pop()
    return batch_ranges(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceSet:
    """The visible slices: one attempt of each batch up to `through` that is not `hidden`.

    The visible attempt is the first, which nearly always commits, unless `exceptions` names another one. Hidden are
    batches that never committed, those that a later batch supersedes, and those of a backfill that is not complete.
    """

    through: int = 0
    exceptions: Mapping[int, int] = field(default_factory=dict)
    hidden: tuple[BatchRange, ...] = ()

    def __post_init__(self) -> None:
        if any(not 0 < batch <= self.through or attempt < 1 for batch, attempt in self.exceptions.items()):
            raise ValueError(f"an exception beyond batch {self.through}: {dict(self.exceptions)}")
        if self.hidden and self.hidden[-1].until_batch > self.through + 1:
            raise ValueError(f"hidden beyond batch {self.through}: {self.hidden[-1]}")

    def __contains__(self, slice_: object) -> bool:
        match slice_:
            case (int(batch), int(attempt)):
                return self.attempt_of(batch) == attempt
            case _:
                return False

    @property
    def since(self) -> int:
        """No slice of an earlier batch is visible."""
        first = self.hidden[0] if self.hidden else None
        return first.until_batch if first is not None and first.from_batch == 1 else 1

    def attempt_of(self, batch: int) -> int | None:
        """The attempt of a batch whose slice is visible; None when the batch has no visible slice."""
        # Hidden ranges are sorted, and there may be hundreds: search, do not scan.
        at = bisect_right(self.hidden, batch, key=lambda r: r.from_batch) - 1
        if not 0 < batch <= self.through or (at >= 0 and batch in self.hidden[at]):
            return None
        return self.exceptions.get(batch, 1)

    def add(self, batch: int, attempt: int) -> SliceSet:
        """These slices and the one of `batch`, which must be later; batches skipped in between get none.

        Raises:
            ValueError: `batch` is not later.
        """
        if batch <= self.through:
            raise ValueError(f"batch {batch} is not after {self.through}")
        skipped = [BatchRange(self.through + 1, batch)] if batch > self.through + 1 else []
        exceptional = {} if attempt == 1 else {batch: attempt}
        return SliceSet(
            through=batch,
            exceptions={**self.exceptions, **exceptional},
            hidden=batch_ranges([*self.hidden, *skipped]),
        )

    def hide(self, batches: Iterable[BatchRange]) -> SliceSet:
        """These slices without those of `batches`."""
        hidden = batch_ranges([*self.hidden, *batches])
        left = {b: a for b, a in self.exceptions.items() if not any(b in r for r in hidden)}
        return SliceSet(through=self.through, exceptions=left, hidden=hidden)

    def since_batch(self, batch: int | None) -> SliceSet:
        """Those of these slices that belong to `batch` or a later one; all if it is None."""
        return self.hide([BatchRange(1, batch)]) if batch is not None and batch > 1 else self

    def only(self, batches: Iterable[BatchRange]) -> SliceSet:
        """Those of these slices that belong to `batches`."""
        edges = [1, *(e for r in batch_ranges(batches) for e in (r.from_batch, r.until_batch)), self.through + 1]
        gaps = zip(edges[::2], edges[1::2], strict=True)
        return self.hide(BatchRange(low, high) for low, high in gaps if low < high)

    def show(self, slices: Mapping[int, int]) -> SliceSet:
        """These slices, and hidden ones that become visible, given as the attempt of each batch."""
        hidden: list[BatchRange] = []
        for item in self.hidden:
            edge = item.from_batch
            for batch in sorted(b for b in slices if b in item):
                hidden += [BatchRange(edge, batch)] if edge < batch else []
                edge = batch + 1
            hidden += [BatchRange(edge, item.until_batch)] if edge < item.until_batch else []
        shown = {b: a for b, a in slices.items() if a != 1}
        return SliceSet(through=self.through, exceptions={**self.exceptions, **shown}, hidden=tuple(hidden))

    def predicate(self, batch: str = "batch_id", attempt: str = "attempt") -> str:
        """The set as an SQL predicate over two integer columns: true for visible rows."""
        cases = "".join(f" WHEN {b} THEN {a}" for b, a in sorted(self.exceptions.items()))
        expected = f"CASE {batch}{cases} ELSE 1 END" if cases else "1"
        hidden = "".join(f" AND NOT ({batch} >= {r.from_batch} AND {batch} < {r.until_batch})" for r in self.hidden)
        return f"{batch} > 0 AND {batch} <= {self.through} AND {attempt} = {expected}{hidden}"
