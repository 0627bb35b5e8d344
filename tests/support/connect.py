"""Spark's servers for tests."""

from __future__ import annotations

from pathlib import Path

import spark_servers

from support.projects import SHORT_LIVED


class ConnectServer(spark_servers.ConnectServer):
    """One that lives for some minutes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, conf=SHORT_LIVED)
