"""Makes a checkout ready to work: Java, the locked packages, the locked jars.

`prepare.py` does what is left to do; `prepare.py lock [--upgrade]` resolves the packages of pyproject.toml again. It
uses only the standard library.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from environment import Checkout, Freshness, freshness, install_project, lock_packages, make_environment
from host import Host, SetupError
from java import Java, ensure_java
from uv import ensure_uv

# They point to another Spark or another Python's packages, set on this machine for other work. With the last one, which
# images of containers set, each process compiles all modules anew: a command takes a third longer to start.
FOREIGN = ("SPARK_HOME", "PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE")
ENVIRONMENT = "env.sh"
SHELL = """\
# What Tidemill's commands need in a shell: `. .tidemill/env.sh`. Written by set-up.
unset {foreign}
export JAVA_HOME={java}
export PATH={scripts}:"$PATH"
export PYSPARK_PYTHON={python}
export PYSPARK_DRIVER_PYTHON={python}
export SPARK_LOCAL_IP=127.0.0.1
export TIDEMILL_JARS={jars}
"""


def prepare(host: Host, checkout: Checkout) -> None:
    """Do what is left of the set-up. An interrupted set-up is completed.

    Raises:
        SetupError: something is missing that only the user can provide.
    """
    java = ensure_java(host)
    left = freshness(host, checkout)
    if left is not Freshness.NOTHING:
        uv = ensure_uv(host, checkout.state / "bootstrap", checkout.uv_lock)
        if left is Freshness.EVERYTHING:
            count = checkout.packages_lock.read_text(encoding="utf-8").count("==")
            print(f"setup: {count} packages (1.8 GB; some minutes the first time, seconds from uv's cache)", flush=True)
            make_environment(host, checkout, uv)
        print("setup: tidemill", flush=True)
        install_project(host, checkout, uv)
    fetch_jars(host, checkout, java)
    write_shell(host, checkout, java)


def jar_folder(host: Host, checkout: Checkout) -> Path:
    """Where the jars are: the folder that TIDEMILL_JARS names, unless another checkout's `env.sh` named it."""
    ours, named = checkout.state / "jars", Path(host.environ.get("TIDEMILL_JARS") or "")
    by_other = named != ours and (named.parent / ENVIRONMENT).exists()
    return named if named.parts and not by_other else ours


def fetch_jars(host: Host, checkout: Checkout, java: Java) -> None:
    """Fetch the locked jars, and archive the classes of Spark's Java. It takes milliseconds if all is there.

    Raises:
        SetupError: they could not be fetched.
    """
    folder = jar_folder(host, checkout)
    if not any(Path(folder).glob("*.jar")):
        print("setup: jars for Spark, and an archive of Java's classes (a minute)", flush=True)
    command = (checkout.python, "-m", "tidemill.run.archiving", folder)
    more = {"JAVA_HOME": str(java.home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": str(checkout.python)}
    host.run(*command, what="fetching the jars for Spark", **more)


def write_shell(host: Host, checkout: Checkout, java: Java) -> None:
    """Write `.tidemill/env.sh`, the environment in which the Makefile runs everything."""
    paths = {"java": java.home, "scripts": checkout.venv / "bin", "python": checkout.python}
    paths["jars"] = jar_folder(host, checkout).absolute()
    quoted = {name: shlex.quote(str(path)) for name, path in paths.items()}
    text = SHELL.format(foreign=" ".join(FOREIGN), **quoted)
    partial = checkout.state / "env.sh.partial"
    partial.write_text(text, encoding="utf-8")
    partial.replace(checkout.state / ENVIRONMENT)


@contextmanager
def alone(checkout: Checkout) -> Iterator[None]:
    """Wait until no other set-up works on this checkout, and make others wait."""
    checkout.state.mkdir(exist_ok=True)
    with (checkout.state / "setup.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main(arguments: Sequence[str]) -> int:
    """Run the set-up of the checkout that contains this file, and return the exit code."""
    start = time.monotonic()
    checkout = Checkout(Path(__file__).resolve().parents[2])
    environ = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    host = Host(environ=environ, user_id=os.geteuid(), log=checkout.state / "setup.log")
    try:
        with alone(checkout):
            host.log.unlink(missing_ok=True)
            if arguments[:1] == ["lock"]:
                uv = ensure_uv(host, checkout.state / "bootstrap", checkout.uv_lock)
                lock_packages(host, checkout, uv, arguments[1:])
            else:
                prepare(host, checkout)
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("setup: interrupted; run it again to go on", file=sys.stderr)
        return 130
    print(f"setup: complete ({time.monotonic() - start:.1f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
