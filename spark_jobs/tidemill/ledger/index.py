"""The index of a ledger: what readers need to know about old batches, in a few small objects beside the table.

The objects lie in `_index/` in the ledger's folder, which Delta ignores. A block holds up to `BLOCK` batches, one JSON
object per line. The list of zones names the newest blocks, gives bounds of their content, and says up to which event
the index goes. When there are more than `FANOUT` blocks, the oldest become one block of blocks: an object that names
them and gives their bounds. More than `FANOUT` of those are grouped again, and so on. So the list stays short however
long the ledger is, and a reader of a few batches reads a few objects.

Blocks are written before the list that names them. Their names say which events they cover, and a name is only ever
rewritten with the same content. So a process that is killed leaves at most an object that nobody reads.

The index is made of the events alone. If it is missing, damaged, or belongs to another ledger or another version of
Tidemill, readers read the events instead, and maintenance builds it again.
"""

from __future__ import annotations

import gzip
import hashlib
import logging
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow.fs as pafs  # type: ignore[import-untyped]
from deltalake.fs import DeltaStorageHandler

from tidemill.core.errors import LedgerDamaged
from tidemill.core.history.index import IndexedBatch
from tidemill.core.history.zones import Zone, whole_of, zone_of
from tidemill.core.protocol.codec import from_json, to_json

VERSION = 2
_READABLE = (1, VERSION)
"""Version 1 had only blocks of batches, all of them in the list."""

BLOCK = 128
"""Batches per block. A reader of a few of them decodes the whole block."""

FANOUT = 32
"""Blocks per block of blocks."""

_FOLDER = "_index"
_PIECE = 2**16
_LIST = re.compile(r"zones-(\d{20})\.json\.gz")
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A zone, and the name of the object with its batches; with a `level`, the object holds blocks of the level below.

    `digest` is the SHA-256 of the object's content. `events` is the sum of the digests of the events it was made from.
    """

    zone: Zone
    name: str
    digest: str
    events: str
    level: int | None = None

    @property
    def height(self) -> int:
        """How many levels of blocks lie between this block and its batches."""
        return self.level or 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The indexed part of the ledger whose table has the id `table`: all events up to and including `through`."""

    version: int = VERSION
    table: str
    through: int = 0
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Batches to index, committed by events `first` to `last`. `events` is a sum of digests, as in `Block`."""

    first: int
    last: int
    batches: Sequence[IndexedBatch]
    events: str


class LedgerIndex:
    """The index beside the table at `uri`. The table must exist."""

    def __init__(self, uri: str, storage: Mapping[str, str] | None) -> None:
        self._uri = uri
        self._files = pafs.PyFileSystem(DeltaStorageHandler(uri, dict(storage) if storage else None))

    def read(self, table: str) -> Blocks:
        """Read the index of the ledger whose table has this id; empty if there is none."""
        names = self._lists()
        try:
            found = from_json(Blocks, self._content(names[-1]).decode()) if names else None
        except (OSError, EOFError, zlib.error, UnicodeDecodeError, LedgerDamaged) as error:
            _logger.warning("%s: its index cannot be read, so its events are: %s", self._uri, error)
            found = None
        if found is None or found.version not in _READABLE or found.table != table:
            return Blocks(table=table)
        return found

    def batches(self, block: Block) -> Sequence[IndexedBatch] | None:
        """Read the batches of a block; None if its object is missing or has changed."""
        lines = self._lines(block)
        return None if lines is None else [from_json(IndexedBatch, line) for line in lines]

    def parts(self, block: Block) -> Sequence[Block] | None:
        """Read the blocks of a block of blocks; None if its object is missing or has changed."""
        lines = self._lines(block)
        return None if lines is None else [from_json(Block, line) for line in lines]

    def _lines(self, block: Block) -> list[str] | None:
        try:
            content = self._content(block.name)
        except (OSError, EOFError, zlib.error):
            content = b""
        if hashlib.sha256(content).hexdigest() != block.digest:
            _logger.warning("%s: %s of its index cannot be read, so its events are", self._uri, block.name)
            return None
        return content.decode().splitlines()

    def write(self, before: Blocks, kept: Sequence[Block], parts: Iterable[Part], through: int) -> Blocks:
        """Write an index of the blocks `kept` and the new parts, and delete what only `before` used."""
        blocks = [*kept, *map(self._written, parts)]
        after = Blocks(table=before.table, through=through, blocks=tuple(self._grouped(blocks)))
        listed = self._lists()
        self._put(_list_name(through), to_json(after).encode())
        gone = {b.name for b in before.blocks} - {b.name for b in blocks}
        for name in (*gone, *(n for n in listed if n != _list_name(through))):
            self._delete(name)
        return after

    def _written(self, part: Part) -> Block:
        return self._block("batches", zone_of(part.first, part.last, part.batches), part.batches, part.events)

    def _grouped(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Group blocks until each level has at most `FANOUT` of them; the oldest blocks come first."""
        found: list[Block] = []
        while blocks:
            height = blocks[-1].height
            same = [b for b in blocks if b.height == height]
            older = [b for b in blocks if b.height > height]
            while len(same) > FANOUT:
                older.append(self._group(same[:FANOUT]))
                same = same[FANOUT:]
            found, blocks = [*same, *found], older
        return found

    def _group(self, parts: Sequence[Block]) -> Block:
        events = f"{sum(int(b.events, 16) for b in parts) % 2**256:064x}"
        return self._block("blocks", whole_of([b.zone for b in parts]), parts, events, level=parts[0].height + 1)

    def _block(
        self, kind: str, zone: Zone, items: Sequence[IndexedBatch | Block], events: str, level: int | None = None
    ) -> Block:
        content = "".join(f"{to_json(item)}\n" for item in items).encode()
        # Blocks have folders of their own, so that a look for the lists does not list them too.
        name = f"{kind}/{kind}-{zone.first:020}-{zone.last:020}.jsonl.gz"
        self._put(name, content)
        return Block(zone=zone, name=name, digest=hashlib.sha256(content).hexdigest(), events=events, level=level)

    def _lists(self) -> list[str]:
        """Return the names of the lists of zones, oldest first; nearly always there is one."""
        infos = self._files.get_file_info(pafs.FileSelector(_FOLDER, allow_not_found=True))
        return sorted(info.base_name for info in infos if _LIST.fullmatch(info.base_name))

    def _content(self, name: str) -> bytes:
        with self._files.open_input_stream(f"{_FOLDER}/{name}", compression=None) as source:
            return gzip.decompress(source.read())

    def _put(self, name: str, content: bytes) -> None:
        # Without a timestamp, equal content gives an equal object.
        packed = gzip.compress(content, mtime=0)
        # Arrow hands on a write larger than its buffer as a buffer of another kind, which delta-rs refuses.
        with self._files.open_output_stream(f"{_FOLDER}/{name}", compression=None, buffer_size=2 * _PIECE) as sink:
            for start in range(0, len(packed), _PIECE):
                sink.write(packed[start : start + _PIECE])

    def _delete(self, name: str) -> None:
        try:
            self._files.delete_file(f"{_FOLDER}/{name}")
        except FileNotFoundError:
            # Another process has deleted it already.
            return


def _list_name(through: int) -> str:
    return f"zones-{through:020}.json.gz"
