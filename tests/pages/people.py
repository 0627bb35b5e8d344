"""People with rights, in the place of Airflow: pages are tried with them in milliseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fastapi import HTTPException, Request

from tidemill_airflow.pages.access import Right, Run

RIGHTS: Mapping[str, tuple[Right, ...]] = {
    "nobody": (),
    "reader": (Right.READ,),
    "viewer": (Right.READ, Right.READ_VALUES),
    "user": tuple(Right),
}


@dataclass
class People:
    """Each request says in a header who it is of. `started` are the runs that were started."""

    default: str | None = None
    started: list[tuple[str, str, Mapping[str, Any]]] = field(default_factory=list)
    dags: tuple[str, ...] = ("decide", "backfill", "replay", "rewind", "rebuild", "verify")
    lacking: str = ""

    async def user(self, request: Request) -> str:
        name = request.headers.get("x-user", self.default)
        if name is None:
            raise HTTPException(401, "Not authenticated")
        return name

    def name(self, user: str) -> str:
        return user

    def may(self, user: str, right: Right, dag_id: str) -> bool:
        return right in RIGHTS[user]

    def readable(self, user: str) -> set[str]:
        return {"sums", "strict"} if RIGHTS[user] else set()

    def start(self, user: str, dag_id: str, form: Mapping[str, Any]) -> str:
        self.started.append((user, dag_id, dict(form)))
        return "manual__2026-01-01T00:00:00+00:00"

    def runs(self, dag_id: str, run_ids: Sequence[str]) -> Mapping[str, Run]:
        return {run_id: Run(run_id=run_id, due=_due(run_id), state="success") for run_id in run_ids}

    def has(self, dag_id: str) -> bool:
        return dag_id.rpartition(".")[2] in self.dags

    def secret(self) -> str:
        return "a secret of tests"

    def hosts(self) -> set[str]:
        return set()


def _due(run_id: str) -> datetime | None:
    text = run_id.partition("__")[2]
    return datetime.fromisoformat(text) if "T" in text else None
