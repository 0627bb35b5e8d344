"""A real server that speaks S3 on this machine, for tests and experiments.

`python infra/local/store.py` starts one with a bucket, prints how to reach it, and stops it with Ctrl-C. It is moto's
server, which keeps everything in memory; with `--versitygw FILE` it is that gateway, which keeps objects as files.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
from botocore.config import Config  # type: ignore[import-untyped]
from servers import KEPT, Server, command, free_ports, listens, until_ended

KEY, SECRET, REGION = "tidemill", "tidemill-secret", "us-east-1"


@dataclass
class ObjectStore:
    """One server on 127.0.0.1. Its port stays the same from start to start."""

    folder: Path
    port: int = 0
    versitygw: Path | None = None

    def __post_init__(self) -> None:
        self.port = self.port or free_ports(1)[0]
        self._server = Server("the object store", self.folder / "store.log", port=self.port)

    @property
    def endpoint(self) -> str:
        """The address that clients use."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environ(self) -> Mapping[str, str]:
        """The credentials of clients, as environment variables."""
        return {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": REGION}

    def start(self) -> ObjectStore:
        """Start the server and wait until it serves.

        Raises:
            EngineError: it exited, or did not serve in time.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        environ = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
        self._server.start(self._command(), ready=lambda _: listens(self.port), environ=environ)
        return self

    def stop(self) -> None:
        """Stop the server."""
        self._server.stop()

    def kill(self) -> None:
        """Kill the server at once."""
        self._server.kill()

    def client(self, service: str = "s3") -> Any:
        """Return a boto3 client."""
        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name=REGION,
            config=Config(s3={"addressing_style": "path"}),
        )

    def make_bucket(self, name: str) -> None:
        """Create a bucket unless it exists."""
        client = self.client()
        if name not in {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}:
            client.create_bucket(Bucket=name)

    def __enter__(self) -> ObjectStore:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _command(self) -> list[str]:
        if self.versitygw is None:
            return [sys.executable, "-m", "moto.server", "--host", "127.0.0.1", "--port", str(self.port)]
        objects = self.folder / "objects"
        objects.mkdir(exist_ok=True)
        # Keep metadata beside the objects: not every file system can store it with them.
        aside = self.folder / "metadata"
        aside.mkdir(exist_ok=True)
        served = ["--port", f"127.0.0.1:{self.port}", "--region", REGION]
        return [str(self.versitygw), *served, "posix", "--sidecar", str(aside), str(objects)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a store until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="store.py", description=__doc__)
    parser.add_argument("--folder", type=Path, default=KEPT / "store", help="what it keeps")
    parser.add_argument("--port", type=int, default=9000, help="9000")
    parser.add_argument("--bucket", default="tidemill", help="is made; tidemill")
    parser.add_argument("--versitygw", type=Path, metavar="FILE", help="the gateway's program, instead of moto")
    given = parser.parse_args(arguments)

    def run() -> None:
        with ObjectStore(given.folder, port=given.port, versitygw=given.versitygw) as store:
            store.make_bucket(given.bucket)
            exports = " ".join(f"{name}={value}" for name, value in store.environ.items())
            until_ended(f"s3://{given.bucket} is served at {store.endpoint}\nexport {exports}")

    return command(run)


if __name__ == "__main__":
    sys.exit(main())
