"""Which values a project may give arguments of DAGs and tasks.

Airflow takes nearly any value when it makes a DAG. Of a wrong one it says something when a task runs, or nothing: then
the DAG waits for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tidemill.core.errors import ConfigError, shown


@dataclass(frozen=True, slots=True)
class Expected:
    """What the value of an argument must be: in words, how to tell, and an example."""

    words: str
    fits: Callable[[Any], bool]
    example: str


def check_values(where: str, given: Mapping[str, Any]) -> None:
    """Refuse values of a wrong type, and those with which a DAG would wait for ever.

    Raises:
        ConfigError: there is one.
    """
    for name, value in given.items():
        if value and name in _PAST:
            raise ConfigError(
                f"{where}: `{name}` must stay False: one failure would stop the pipeline for ever, although a batch "
                "reads on from the last commit, whatever became of the run before",
                fix="leave it out",
            )
        expected = _EXPECTED.get(name)
        if expected is not None and not expected.fits(value):
            raise ConfigError(
                f"{where}: `{name}`: expected {expected.words}, found {shown(value)}",
                fix=f'for example "{name}": {expected.example}',
            )


def _or_none(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


def _whole(least: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least


def _callbacks(value: object) -> bool:
    several = isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)
    return callable(value) or (several and all(map(callable, value)))  # type: ignore[call-overload]


def _is_period(value: object) -> bool:
    return isinstance(value, timedelta) and value > timedelta(0)


def _is_delay(value: object) -> bool:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    return isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds >= 0


def _is_policy(value: object) -> bool:
    from airflow.sdk import RetryPolicy

    return isinstance(value, RetryPolicy)


def _are_tags(value: object) -> bool:
    several = isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)
    return several and all(isinstance(tag, str) for tag in value)  # type: ignore[attr-defined]


_PAST = frozenset(
    ("depends_on_past", "wait_for_downstream", "wait_for_past_depends_before_skipping", "ignore_first_depends_on_past")
)
"""Arguments by which a task waits for its run before."""

_CALLBACK = Expected("a function or a list of functions", _or_none(_callbacks), "tell")
_PERIOD = Expected("a timedelta above zero", _or_none(_is_period), "timedelta(minutes=10)")
_DELAY = Expected("a timedelta or seconds, not below zero", _or_none(_is_delay), "timedelta(seconds=10)")
_FLAG = Expected("True or False", _or_none(lambda value: isinstance(value, bool)), "True")
_SLOTS = Expected("a whole number of at least 1", _or_none(_whole(1)), "16")
_COUNT = Expected("a whole number of at least 0", _or_none(_whole(0)), "3")
_MOMENT = Expected(
    "a datetime", _or_none(lambda value: isinstance(value, datetime)), "datetime(2026, 1, 1, tzinfo=UTC)"
)
_NAME = Expected("a text", _or_none(lambda value: isinstance(value, str) and bool(value.strip())), '"spark"')

_CALLBACKS = ("execute", "failure", "retry", "skipped", "success")

_EXPECTED: Mapping[str, Expected] = {
    **{f"on_{event}_callback": _CALLBACK for event in _CALLBACKS},
    **dict.fromkeys(("pre_execute", "post_execute"), Expected("a function", _or_none(callable), "tell")),
    **dict.fromkeys(("dagrun_timeout", "execution_timeout"), _PERIOD),
    **dict.fromkeys(("retry_delay", "max_retry_delay"), _DELAY),
    **dict.fromkeys(("max_active_tasks", "max_active_tis_per_dag", "max_active_tis_per_dagrun"), _SLOTS),
    **dict.fromkeys(("retries", "max_consecutive_failed_dag_runs"), _COUNT),
    **dict.fromkeys(("start_date", "end_date"), _MOMENT),
    **dict.fromkeys(("executor", "queue", "run_as_user"), _NAME),
    **dict.fromkeys(
        ("disable_bundle_versioning", "do_xcom_push", "email_on_failure", "email_on_retry", "fail_fast"), _FLAG
    ),
    "is_paused_upon_creation": _FLAG,
    "retry_policy": Expected("a RetryPolicy of airflow.sdk", _or_none(_is_policy), "None"),
    "tags": Expected("a list of texts", _or_none(_are_tags), '["finance"]'),
}
