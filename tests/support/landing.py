"""Files as Kafka Connect's S3 sink writes them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any


def land(root: Path, first: int, lines: list[bytes], *, topic: str = "events", partition: int = 0, **how: Any) -> Path:
    """A file as Kafka Connect's sink writes it."""
    folder = root / topic / f"partition={partition}"
    folder.mkdir(parents=True, exist_ok=True)
    data = b"".join(line + b"\n" for line in lines)
    path = folder / f"{topic}+{partition}+{first:010}.json{'.gz' if how.get('packed', True) else ''}"
    path.write_bytes(gzip.compress(data) if how.get("packed", True) else data)
    return path
