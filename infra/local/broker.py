"""A real Apache Kafka of one node on this machine, for tests and experiments: fetches its jars, starts it, stops it.

`python infra/local/broker.py` fetches missing jars, starts a broker, prints its address, and stops it with Ctrl-C. It
listens only on 127.0.0.1 and keeps everything in one folder.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from servers import HERE, KEPT, Server, command, free_ports, until_ended

from tidemill.core.errors import EngineError
from tidemill.engine.spark.jars import Jar, fetch_jars, read_lock
from tidemill.log.kafka_access import Access

JARS = KEPT / "kafka-jars"
HEAP = "384m"
STARTED = "Kafka Server started"


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A user of the broker, who logs in with SCRAM-SHA-512."""

    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """The broker's certificate chain and key, in PEM files."""

    certificate: Path
    key: Path


def kafka_jars() -> tuple[Jar, ...]:
    """The jars of the broker, with their checksums."""
    return read_lock((HERE / "kafka.lock").read_text(encoding="utf-8"))


def bring_jars(folder: Path) -> None:
    """Fetch the broker's jars if they are missing. Spark fetches them, and so in a process of its own.

    If several processes ask, one fetches and the others wait.

    Raises:
        EngineError: the jars could not be fetched.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "kafka-jars.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if all((folder / jar.file_name).is_file() for jar in kafka_jars()):
            return
        command = [sys.executable, __file__, "--fetch", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EngineError(f"the jars of Kafka could not be fetched: {done.stderr[-1000:]}", fix="try again")


@dataclass
class Broker:
    """One broker that is its own controller. Its port stays the same from start to start.

    With a `login`, clients log in by SASL; with `tls`, connections are encrypted.
    """

    folder: Path
    port: int = 0
    login: Login | None = None
    tls: Tls | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    jars: Path = JARS

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        ports = free_ports(2)
        self.port = self.port or ports[0]
        self._controller = ports[1]
        self._server = Server("the broker", self.folder / "broker.log", port=self.port)

    @property
    def servers(self) -> str:
        """The address that clients connect to."""
        return f"127.0.0.1:{self.port}"

    @property
    def protocol(self) -> str:
        """The security protocol that clients use."""
        return f"SASL_{'SSL' if self.tls else 'PLAINTEXT'}" if self.login else "SSL" if self.tls else "PLAINTEXT"

    @property
    def is_running(self) -> bool:
        """Whether the process runs."""
        return self._server.is_running

    def start(self) -> Broker:
        """Start the broker and wait until it serves.

        Raises:
            EngineError: it exited, or did not serve in time. The error contains the end of its log.
        """
        self._server.start(self._prepare(), ready=lambda said: STARTED in said)
        return self

    def become(self) -> None:
        """Turn this process into the broker: whoever started it has the broker itself, and needs no helper to stop it.

        Raises:
            EngineError: the broker's jars or its folder cannot be made.
        """
        command = self._prepare()
        os.execv(command[0], command)

    def _prepare(self) -> list[str]:
        """Make everything that the broker reads, and return its command."""
        bring_jars(self.jars)
        properties = self.folder / "server.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in self._properties().items()))
        properties.chmod(0o600)
        if not (self.folder / "data" / "meta.properties").exists():
            self._format(properties)
        return self._java("kafka.Kafka", str(properties))

    def stop(self) -> None:
        """Stop the broker in order, or by force if that takes too long."""
        self._server.stop()

    def kill(self) -> None:
        """Kill the broker at once."""
        self._server.kill()

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _format(self, properties: Path) -> None:
        # An id that begins with a dash would be taken for an option.
        cluster = secrets.token_urlsafe(16).replace("-", "_")
        command = self._java("kafka.tools.StorageTool", "format", "--standalone", "-t", cluster, "-c", str(properties))
        if self.login is not None:
            scram = f"SCRAM-SHA-512=[name={self.login.user},password={self.login.password}]"
            command += ["--add-scram", scram]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EngineError(f"the broker's folder could not be made:\n{(done.stdout + done.stderr)[-2000:]}")

    def _java(self, *arguments: str) -> list[str]:
        java = shutil.which("java")
        if java is None:
            raise EngineError("there is no java on PATH", fix="make setup, then . .tidemill/env.sh")
        options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Xmx{HEAP}"]
        return [java, *options, "-cp", f"{self.jars}/*:{_scala()}", *arguments]

    def _properties(self) -> dict[str, str]:
        found = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self._controller}",
            "listeners": f"CLIENTS://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self._controller}",
            "advertised.listeners": f"CLIENTS://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self._controller}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "CLIENTS",
            "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,CLIENTS:{self.protocol}",
            "log.dirs": str(self.folder / "data"),
            "num.partitions": "1",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.num.partitions": "4",
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
            "delete.topic.enable": "true",
            # Records of experiments are often old; with retention they would be gone within minutes.
            "log.retention.ms": "-1",
        }
        for name in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
            found[f"{name}.replication.factor"] = "1"
            found[f"{name}.min.isr"] = "1"
        return found | self._secrets() | dict(self.settings)

    def _secrets(self) -> dict[str, str]:
        found: dict[str, str] = {}
        if self.login is not None:
            known = Access(
                servers=self.servers, protocol=self.protocol, user=self.login.user, password=self.login.password
            )
            found |= {
                "sasl.enabled.mechanisms": "SCRAM-SHA-512",
                "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
                # In a properties file, a backslash must be doubled.
                "listener.name.clients.scram-sha-512.sasl.jaas.config": known.jaas.replace("\\", "\\\\"),
            }
        if self.tls is not None:
            chain = _one_line(self.tls.certificate)
            found |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": chain,
                "ssl.keystore.key": _one_line(self.tls.key),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.certificates": chain,
            }
        return found


def _scala() -> Path:
    """Scala's own library, which comes with Spark. Spark's resolver does not fetch it again."""
    folder = Path(find_spec("pyspark").origin or "").parent / "jars"  # type: ignore[union-attr]
    return next(folder.glob("scala-library-2.13.*.jar"))


def _one_line(pem: Path) -> str:
    return "\\n".join(pem.read_text().splitlines())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a broker until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="broker.py", description=__doc__)
    parser.add_argument("--folder", type=Path, default=KEPT / "kafka", help="what it keeps")
    parser.add_argument("--port", type=int, default=9092, help="of its clients (9092)")
    parser.add_argument("--fetch", type=Path, metavar="FOLDER", help="only bring the jars there")
    parser.add_argument("--become", action="store_true", help="run Java in this process, without a word")
    given = parser.parse_args(arguments)

    def run() -> None:
        if given.fetch is not None:
            fetch_jars(given.fetch, jars=kafka_jars())
            return
        if given.become:
            Broker(given.folder, port=given.port).become()
        with Broker(given.folder, port=given.port) as broker:
            until_ended(f"Kafka listens on {broker.servers}")

    return command(run)


if __name__ == "__main__":
    sys.exit(main())
