"""`python -m tidemill_airflow`: add the pools of a project to Airflow's database.

Use it if the scheduler does not load plugins. With `--json` the pools are printed in the format of `airflow pools
import`, and no database is touched.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from airflow.utils.session import create_session

from tidemill.core.errors import TidemillError
from tidemill.project.project import Project
from tidemill_airflow.naming import pool_of
from tidemill_airflow.scheduler.pools import POOL, add_missing_pools


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, or that of the error that it printed."""
    parser = argparse.ArgumentParser(prog="python -m tidemill_airflow", description=__doc__)
    parser.add_argument("--project", help="folder with tidemill.toml (default: found as `tidemill` finds it)")
    parser.add_argument("--json", action="store_true", help="print the pools and touch no database")
    options = parser.parse_args(arguments)
    try:
        names = [pool_of(name) for name in Project.load(options.project).pipeline_names()]
    except TidemillError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if options.json:
        print(json.dumps(dict.fromkeys(names, POOL), indent=2))
        return 0
    with create_session() as session:
        added = add_missing_pools(names, session)
    print(f"{len(added)} of {len(names)} pools added: {', '.join(added) or 'all were there'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
