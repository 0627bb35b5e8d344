"""`python -m tidemill_airflow.local`: what `tidemill up`, `down` and `airflow install` do, and a part of `doctor`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tidemill.core.errors import TidemillError
from tidemill.core.exit_code import ExitCode
from tidemill.project.project import Project
from tidemill_airflow.local.install import Outcome, airflow_home, install
from tidemill_airflow.local.plan import Wanted
from tidemill_airflow.local.up import down, up

DATABASE = "TIDEMILL_AIRFLOW_DATABASE"
"""An environment variable with the address of the database: every user of the machine can read arguments."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, or that of the error that it printed."""
    given = _parser().parse_args(arguments)
    try:
        match given.command:
            case "install":
                return _install(given.project, given.home)
            case "look":
                return _look(given.project, ask=given.ask)
            case "down":
                return down(Wanted(project=given.project, home=given.home), _tell)
            case _:
                wanted = Wanted(
                    project=given.project,
                    home=given.home,
                    port=given.port,
                    kafka=given.kafka,
                    connect=given.connect,
                    database=os.environ.pop(DATABASE, ""),
                    generator=given.generator,
                    rate=given.rate,
                )
                return up(wanted, _tell)
    except TidemillError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tidemill_airflow.local", description=__doc__)
    parser.add_argument("command", choices=("up", "down", "install", "look"))
    parser.add_argument("--project", help="folder with tidemill.toml (default: found as `tidemill` finds it)")
    parser.add_argument("--home", type=Path, help="Airflow's folder")
    parser.add_argument("--port", type=int, default=8080, help="of Airflow's pages (8080)")
    parser.add_argument("--kafka", action="store_true", help="read from a broker instead of the project's log")
    parser.add_argument("--no-connect", dest="connect", action="store_false", help="start Spark in every task")
    parser.add_argument("--generator", action=argparse.BooleanOptionalAction, default=None, help="feed the log")
    parser.add_argument("--rate", type=int, default=50, help="records a second of the generator (50)")
    parser.add_argument("--ask", action="store_true", help="load Airflow, which takes seconds, and look at its pools")
    return parser


def _install(project: str | None, home: Path | None) -> int:
    found = Project.load(project)
    folder = airflow_home() if home is None else home.expanduser().resolve()
    done = install(folder, found.folder)
    for each in done:
        _tell(f"{each.path} {each.outcome}")
        for line in each.differs:
            _tell(f"    {line}")
    return ExitCode.DIFFERENT if any(each.outcome is Outcome.DIFFERS for each in done) else ExitCode.DONE


def _look(project: str | None, *, ask: bool) -> int:
    from tidemill_airflow.local.look import as_values, look

    for row in look(Project.load(project), ask=ask):
        _tell(json.dumps(as_values(row)))
    return ExitCode.DONE


def _tell(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
