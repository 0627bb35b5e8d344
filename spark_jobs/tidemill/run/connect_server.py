"""The command that starts a Spark Connect server on this machine, with what batches need of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectCommand:
    """A command line and what its process needs in the environment. The process becomes the server itself."""

    command: tuple[str, ...]
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectOptions:
    """How to start it: it listens on `port` of 127.0.0.1, and its workers run Python with `python`."""

    jars: Path
    port: int
    master: str = "local[*]"
    python: str = sys.executable
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)


def connect_command(options: ConnectOptions) -> ConnectCommand:
    """The command of a server.

    Raises:
        ConfigError: jars are missing.
    """
    from tidemill.engine.spark.jars import jar_paths, locked_jars
    from tidemill.engine.spark.settings import server_conf
    from tidemill.engine.spark.shared_classes import sharing
    from tidemill.engine.spark.workers import DAEMON

    conf = {
        **server_conf(jar_paths(options.jars, locked_jars(kafka=True, s3=True))),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(options.port),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        # Only workers that surely have Tidemill: others get its code later, which their daemon could not import.
        **(DAEMON if options.python == sys.executable and options.master.partition("[")[0] == "local" else {}),
        **options.conf,
    }
    settings = [part for key, value in sharing(conf).items() for part in ("--conf", f"{key}={value}")]
    submit = [str(spark_home() / "bin" / "spark-submit"), "--master", options.master, "--class", _SERVER]
    return ConnectCommand(
        command=(*submit, *settings, "spark-internal"),
        environ=spark_environ(options.python),
    )


def spark_home() -> Path:
    """The folder of the Spark that is installed as a package."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def spark_environ(python: str = sys.executable) -> dict[str, str]:
    """What a server of this Spark needs in its environment. Its workers run Python with `python`."""
    return {"SPARK_HOME": str(spark_home()), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": python}
