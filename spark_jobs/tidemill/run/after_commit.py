"""Keeps the thousandth batch as cheap as the first: folds small files and keeps internal Delta logs short.

Every batch adds a file or two to each of its tables, and everyone who opens a table reads the list of its files. So
every `EVERY` batches, after the commit, neighbouring small files are folded into larger ones. No row and no offset
changes. A process that is killed here leaves nothing to repair, and writers can go on meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import StatefulSink, WindowedSink
from tidemill.core.plan.position import Position
from tidemill.core.protocol.events import Committed
from tidemill.core.protocol.failpoints import boundary
from tidemill.core.time.times import micros, moment
from tidemill.core.time.watermarks import BEGINNING, END
from tidemill.engine.storage.state_table import State
from tidemill.engine.storage.table_layout import EVERY_ROW, Uris
from tidemill.ledger.ledger import Ledger
from tidemill.tables.handles import newest
from tidemill.tables.interface import Between
from tidemill.tables.keeping import KeptTable
from tidemill.tables.trim import trim_log

EVERY = 64
KEEP_VERSIONS = 200
"""Versions kept of tables that only Tidemill reads; of the ledger those of about 60 batches. A version is needed while
somebody who has opened it still writes. Those of published tables are for readers: `maintain` decides."""

_logger = logging.getLogger(__name__)


def tidy(flow: Flow, uris: Uris, ledger: Ledger, commit: Committed, *, before: int) -> None:
    """Fold small files if it is this batch's turn.

    It is its turn if a multiple of `EVERY` lies after batch `before`, the previous commit, and not after this batch.

    Failures are logged and never raised: the batch has committed, and a later batch tries again.
    """
    if commit.batch_id // EVERY == before // EVERY:
        return
    try:
        with boundary("upkeep", commit.batch_id):
            tidy_now(flow, uris, ledger, commit)
    except Exception:
        _logger.warning("%s: files were not folded after batch %s", flow.name, commit.batch_id, exc_info=True)


def tidy_now(flow: Flow, uris: Uris, ledger: Ledger, commit: Committed) -> None:
    """Fold small files, and shorten the logs of tables that only Tidemill reads, as of the last commit."""
    ledger.keep_short(keep=KEEP_VERSIONS)
    for table, within in _own_tables(flow, uris):
        table.compact(within)
        if table.spec.own:
            trim_log(table.spec, keep=KEEP_VERSIONS)
        else:
            table.forget_expired()
    for table, within in _published(flow, uris, commit.position):
        table.compact(within)
        table.forget_expired()


def foldable(flow: Flow, uris: Uris, commit: Committed) -> Iterator[tuple[str, int]]:
    """Yield each table and how many of its files `tidy_now` would fold."""
    for table, within in (*_own_tables(flow, uris), *_published(flow, uris, commit.position)):
        yield table.spec.name, table.foldable(within)


def _own_tables(flow: Flow, uris: Uris) -> Iterator[tuple[KeptTable, Between]]:
    for sink in flow.sinks:
        if not isinstance(sink, StatefulSink):
            continue
        merged = State.merged(uris, sink) if isinstance(sink, WindowedSink) and sink.merges_ahead else None
        for state in (State.of(uris, sink), merged):
            if state is not None:
                yield KeptTable(state.spec, opened=state.handle), Between(column="pane_start", low=None, high=None)
    for spec in (uris.quarantine(), uris.late()):
        if handle := newest(spec):
            yield KeptTable(spec, opened=handle), Between(column="batch_id", low=None, high=None)


def _published(flow: Flow, uris: Uris, position: Position) -> Iterator[tuple[KeptTable, Between]]:
    """The published tables, limited to windows that batches no longer replace."""
    for sink in flow.sinks:
        spec = uris.published_table(sink)
        handle = newest(spec)
        if handle is None:
            continue
        table, watermark = KeptTable(spec, opened=handle), position.watermark_of(sink.table)
        if not isinstance(sink, WindowedSink):
            yield table, Between(column="batch_id", low=None, high=None)
        elif sink.start is None:
            yield table, EVERY_ROW
        elif watermark != BEGINNING:
            settled = sink.window.panes.last_ending_by(watermark - micros(sink.allowed_lateness)).start
            high = None if watermark == END else moment(settled)
            yield table, Between(column=sink.start, low=None, high=high)
