"""How long a task tries again: for a quarter of an hour if something cannot be reached, three times otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import RetryDecision, RetryPolicy

from tidemill.core.errors import EngineUnreachable, LogUnreachable, StoreUnreachable

if TYPE_CHECKING:
    from airflow.sdk import Context

RETRIES = 12
RETRY_DELAY = timedelta(seconds=10)
BACKOFF = 2.0
MAX_RETRY_DELAY = timedelta(minutes=2)

OTHER_RETRIES = 3
"""The most retries after an error that does not say that something cannot be reached."""

_ABSENT = (EngineUnreachable, LogUnreachable, StoreUnreachable)


@dataclass(frozen=True, slots=True)
class Patience(RetryPolicy):
    """Uses all retries of a task while Spark, the log or a store does not answer, and only some of them otherwise.

    Waiting in the task would cost less than a second per try, but each waiting task would hold a slot of the executor,
    and DAGs that need no Spark would starve.

    A job that fails again and again is not waited for so long: the task fails after `others` retries.
    """

    others: int = OTHER_RETRIES

    def evaluate(
        self, exception: BaseException, try_number: int, max_tries: int, context: Context | None = None
    ) -> RetryDecision:
        """Decide on the next try. The delay is that of the task."""
        left = max_tries + 1 - try_number
        if isinstance(exception, _ABSENT):
            return RetryDecision.retry(reason=f"waits until it can be reached: {left} retries are left")
        task: Any = (context or {}).get("task")
        # A cleared task counts its tries on, and gets its retries anew.
        done = (RETRIES if task is None else task.retries) + 1 - left
        if done > self.others:
            return RetryDecision.fail(reason=f"failed {done} times, and waiting does not help")
        return RetryDecision.default()

    def serialize(self) -> dict[str, Any]:
        """The policy as JSON values."""
        return {"others": self.others}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Patience:
        """The policy that `serialize` wrote."""
        return cls(**data)


RETRYING: Mapping[str, Any] = {
    "retries": RETRIES,
    "retry_delay": RETRY_DELAY,
    "retry_exponential_backoff": BACKOFF,
    "max_retry_delay": MAX_RETRY_DELAY,
    "retry_policy": Patience(),
}
"""Arguments of every task that executes batches or needs what they need."""
