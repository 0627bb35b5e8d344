"""A second server that speaks S3: versitygw, built from its source if Go is installed.

`python infra/local/gateway.py` builds it once and prints where the program is. Go checks the source against its public
record of checksums.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

from servers import KEPT, command

from tidemill.core.errors import EngineError

VERSION = "v1.8.0"
SOURCE = f"github.com/versity/versitygw/cmd/versitygw@{VERSION}"
PROGRAM = KEPT / "bin" / f"versitygw-{VERSION}"
_PLACES = "/usr/local/go/bin"
"""Where Go installs itself; often not on PATH."""


def go() -> str | None:
    """The path of the Go program; None if this machine does not have it."""
    return shutil.which("go", path=os.pathsep.join([os.environ.get("PATH", ""), _PLACES]))


def gateway() -> Path:
    """Return the program. The first caller builds it, which takes some minutes; others wait.

    Raises:
        EngineError: Go is not installed, or could not build it.
    """
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    with PROGRAM.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not PROGRAM.is_file():
            _build()
    return PROGRAM


def _build() -> None:
    compiler = go()
    if compiler is None:
        raise EngineError("there is no Go on this machine to build versitygw with", fix="install Go 1.24 or newer")
    made = PROGRAM.parent / "versitygw"
    environ = {**os.environ, "GOBIN": str(PROGRAM.parent)}
    done = subprocess.run([compiler, "install", SOURCE], capture_output=True, text=True, check=False, env=environ)
    if done.returncode:
        raise EngineError(f"versitygw could not be built: {done.stderr[-1000:]}", fix="try again")
    made.rename(PROGRAM)


if __name__ == "__main__":
    sys.exit(command(lambda: print(gateway())))
