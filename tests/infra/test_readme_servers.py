"""What the pages about Kafka, S3 and clusters say to type works as it stands, beside servers of this project."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from broker import Broker
from spark_servers import Cluster, ConnectServer
from store import ObjectStore

from support.projects import ROOT
from support.readme import code, typed

pytestmark = [pytest.mark.long, pytest.mark.spark]

Start = Callable[[Path], AbstractContextManager[Any]]

WALKS: dict[str, tuple[str, Start, str, str]] = {
    "Kafka": ("guides/kafka", Broker, "127.0.0.1:9092", '"shop":"north","orders":1,"cents":500}'),
    "S3": ("guides/s3", ObjectStore, "127.0.0.1:9000", "everything is there"),
    "a cluster": ("guides/clusters", Cluster, "spark://127.0.0.1:7077", "everything is there"),
    "Spark Connect": ("guides/clusters", ConnectServer, "sc://127.0.0.1:15002", "everything is there"),
}


def address(server: Any) -> str:
    """Where it is, as the settings of a project have it."""
    names = ("servers", "endpoint", "master" if isinstance(server, Cluster) else "remote")
    [found] = [getattr(server, name) for name in names if hasattr(server, name)]
    return str(found).removeprefix("http://")


@pytest.mark.parametrize("name", WALKS)
def test_what_a_page_says_to_type_works(name: str, shop: Path, tmp_path: Path) -> None:
    title, start, there, said = WALKS[name]
    [script] = [text for text in code(title, "sh") if "cp -r ../shop" in text]
    script = script.replace(". .tidemill/env.sh && ", "")
    if name == "Spark Connect":
        script = script.replace('master = "spark://127.0.0.1:7077"', f'remote = "{there}"')
    (tmp_path / ".tidemill").symlink_to(ROOT / ".tidemill")
    with start(tmp_path / "server") as server:
        if name == "S3":
            server.make_bucket("tidemill")
        assert there in script
        done = typed(script.replace(there, address(server)), shop.parent, patience=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert said in " ".join(done.stdout.split())
