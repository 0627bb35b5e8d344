"""Who may see and do what. Every route of the pages asks for a permission of a DAG; none has a rule of its own.

looking at a pipeline       may read runs of its DAG
values of records           may read the logs of its tasks, which may show them, too
an action                   may create runs of the DAG that does it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Protocol

from fastapi import Depends, HTTPException, Request, status


class Right(Enum):
    """What somebody wants to do with a DAG."""

    READ = "read its runs"
    READ_VALUES = "read the logs of its tasks"
    RUN = "start runs of it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run of a DAG, as Airflow knows it. `due` is when it was to start; `ended` is None until it has."""

    run_id: str
    due: datetime | None
    state: str
    ended: datetime | None = None


class Access(Protocol):
    """The part of Airflow that pages need: users, their rights, and runs of DAGs."""

    async def user(self, request: Request) -> Any:
        """The user of a request.

        Raises:
            HTTPException: 401, nobody is logged in.
        """
        ...

    def name(self, user: Any) -> str:
        """The name of a user."""
        ...

    def may(self, user: Any, right: Right, dag_id: str) -> bool:
        """Whether a user has a right to a DAG."""
        ...

    def readable(self, user: Any) -> set[str]:
        """The ids of all DAGs that a user may read."""
        ...

    def start(self, user: Any, dag_id: str, form: Mapping[str, Any]) -> str:
        """Create a run of a DAG for a user, as Airflow's own API does, and return its id.

        Raises:
            HTTPException: there is no such DAG, or its form refuses the values.
        """
        ...

    def runs(self, dag_id: str, run_ids: Sequence[str]) -> Mapping[str, Run]:
        """The runs with these ids, without those that Airflow has forgotten."""
        ...

    def has(self, dag_id: str) -> bool:
        """Whether Airflow has this DAG."""
        ...

    def secret(self) -> str:
        """A key that signs the tokens of forms."""
        ...

    def hosts(self) -> set[str]:
        """Names under which browsers reach this server, besides the one that a request names."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """The user of one request, and what they may do with the pipeline that it is about."""

    access: Access
    user: Any
    dag_id: str = ""

    @property
    def name(self) -> str:
        """The name of the user."""
        return self.access.name(self.user)

    def may(self, right: Right, dag_id: str | None = None) -> bool:
        """Whether the user has a right to a DAG; without an id, to the pipeline's own."""
        return self.access.may(self.user, right, dag_id or self.dag_id)


def visit_of(request: Request) -> Visit:
    """The visit that a route's dependency has allowed."""
    found = request.state.visit
    assert isinstance(found, Visit)
    return found


async def _user(request: Request) -> Any:
    return await request.app.state.access.user(request)


def signed_in(request: Request, user: Any = Depends(_user)) -> None:
    """A dependency of routes about no single DAG: they show only what the user may read."""
    request.state.visit = Visit(access=request.app.state.access, user=user)


def needs(*rights: Right, of: Callable[[str], str] = str) -> Any:
    """A dependency of routes about the DAG `dag_id`: READ for it, and `rights` for the DAG that `of` names."""

    def check(request: Request, dag_id: str, user: Any = Depends(_user)) -> None:
        visit = Visit(access=request.app.state.access, user=user, dag_id=dag_id)
        wanted = [(Right.READ, dag_id), *((right, of(dag_id)) for right in rights)]
        for right, target in wanted:
            if not visit.may(right, target):
                raise HTTPException(
                    status.HTTP_403_FORBIDDEN, f"{visit.name} may not {right.value}: DAG {target}. Ask an administrator"
                )
        request.state.visit = visit

    return Depends(check)
