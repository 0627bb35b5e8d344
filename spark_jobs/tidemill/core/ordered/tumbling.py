"""The fold of a tumbling buffer that count, delta or punctuation flushes: a piece is a whole buffer."""

from __future__ import annotations

from tidemill.core.ordered.firing import Dropped, Firing, Folded, Reason, State, Wake
from tidemill.core.ordered.kept import check_state, kept
from tidemill.core.ordered.policies import CountPolicy, DeltaPolicy, PunctuationPolicy
from tidemill.core.ordered.records import Moment, Number, Records, is_number
from tidemill.core.time.timing import Timing
from tidemill.core.time.watermarks import END

_MACHINE = "tumbling"


class _Buffer:
    """The buffer of one key: its piece, how many records it holds, and the value of its oldest."""

    __slots__ = ("held", "oldest", "piece")

    def __init__(self, state: State | None, first_piece: int) -> None:
        self.piece, self.held = first_piece, 0
        self.oldest: Number | None = None
        if state is not None:
            check_state(state, _MACHINE)
            self.piece, self.held, self.oldest = state["piece"], state["held"], state["oldest"]

    def flush(self, folded: Folded, position: int | None) -> None:
        """Fire what is there, and begin anew; each flush is a window of its own."""
        pieces = range(self.piece, self.piece + (self.held > 0))
        folded.firings.append(Firing(None, Timing.ON_TIME, 0, 0, True, pieces, position))
        self.piece += len(pieces)
        self.held, self.oldest = 0, None

    def kept(self) -> State | None:
        """The state, if there are records."""
        return kept(_MACHINE, piece=self.piece, held=self.held, oldest=self.oldest) if self.held else None


class TumblingFold:
    """Folds records into tumbling buffers."""

    def __init__(self, policy: CountPolicy | DeltaPolicy | PunctuationPolicy) -> None:
        self._policy = policy

    def fold(  # noqa: D102
        self,
        state: State | None,
        records: Records,
        before: Moment,
        after: Moment,
        first_piece: int = 0,
    ) -> Folded:
        folded, buffer = Folded(), _Buffer(state, first_piece)
        match self._policy:
            case CountPolicy(count):
                _by_count(count, buffer, records, folded)
            case DeltaPolicy(_, threshold):
                _by_delta(threshold, buffer, records, folded)
            case PunctuationPolicy():
                _by_marker(buffer, records, folded)
                ends = before.watermark < END <= after.watermark
                if ends and buffer.held:
                    buffer.flush(folded, None)
                # After the end of the log there is nothing to wait for but markers.
                folded.wake = Wake(watermark=END if buffer.held and after.watermark < END else None)
        folded.state = buffer.kept()
        return folded


def _by_count(count: int, buffer: _Buffer, records: Records, folded: Folded) -> None:
    """Insert, and flush when the buffer is full. Records are taken by the bufferful, so each costs next to nothing."""
    positions = records.data()
    folded.positions.extend(positions)
    at, end, pieces = 0, len(positions), folded.pieces
    while at < end:
        taken = min(count - buffer.held, end - at)
        pieces.extend([buffer.piece] * taken)
        buffer.held += taken
        at += taken
        if buffer.held == count:
            buffer.flush(folded, positions[at - 1])


def _by_delta(threshold: Number, buffer: _Buffer, records: Records, folded: Folded) -> None:
    """Flush when the new value is more than the threshold above the oldest, then insert."""
    values, pieces, positions = records.values, folded.pieces, folded.positions
    for position in records.data():
        value = values[position]
        if value is None or not is_number(value):
            folded.dropped.append(Dropped(position, Reason.NO_VALUE))
            continue
        if buffer.oldest is not None and value - buffer.oldest > threshold:
            buffer.flush(folded, position)
        if buffer.oldest is None:
            buffer.oldest = value
        buffer.held += 1
        positions.append(position)
        pieces.append(buffer.piece)


def _by_marker(buffer: _Buffer, records: Records, folded: Folded) -> None:
    """Flush at each marker, also when nothing is there."""
    for position, marker in enumerate(records.markers):
        if marker:
            buffer.flush(folded, position)
        else:
            buffer.held += 1
            folded.positions.append(position)
            folded.pieces.append(buffer.piece)
