"""Each pipeline has a pool with one slot: its batches, live and backfilled, run one at a time.

The scheduler adds a missing pool when a run starts (`tidemill_airflow.scheduler.listener`). `python -m
tidemill_airflow` adds the pools of a project beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow.models.pool import Pool
from sqlalchemy import Insert, insert, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import Session

POOL: Mapping[str, object] = {
    "slots": 1,
    "description": "Batches of one Tidemill pipeline, one at a time",
    "include_deferred": False,
}


def add_missing_pools(names: Iterable[str], session: Session) -> tuple[str, ...]:
    """Add the pools that do not exist and return their names. Existing pools are not changed.

    The caller commits. Another scheduler may add the same pool at the same moment.
    """
    wanted = set(names)
    missing = sorted(wanted - set(session.scalars(select(Pool.pool).where(Pool.pool.in_(wanted)))))
    for name in missing:
        session.execute(_insert_if_absent(name, session.get_bind().dialect.name))
    return tuple(missing)


def _insert_if_absent(name: str, dialect: str) -> Insert:
    # A savepoint around a plain insert would work too, but the scheduler forbids every commit, even of a savepoint.
    row = {"pool": name, **POOL}
    match dialect:
        case "postgresql":
            return postgresql.insert(Pool).values(row).on_conflict_do_nothing()
        case "mysql":
            return insert(Pool).values(row).prefix_with("IGNORE")
        case _:
            return insert(Pool).values(row).prefix_with("OR IGNORE")
