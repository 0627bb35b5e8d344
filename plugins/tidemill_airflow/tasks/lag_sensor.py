"""The sensor that waits for a pipeline to catch up, or to fall behind."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk import BaseSensorOperator, PokeReturnValue, conf
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tidemill.core.errors import TidemillError
from tidemill.inspect.lag import LagReader, Sources
from tidemill.project.project import Project
from tidemill_airflow.scheduler.lag import Bounds, LagTrigger, lag_json
from tidemill_airflow.tasks.batch_operator import cancel

if TYPE_CHECKING:
    from airflow.sdk import Context

_BOUNDS = ("max_records", "max_age", "min_records", "min_age")


class LagSensor(BaseSensorOperator):
    """Waits until a pipeline has committed what its log holds, or all but a little; or until it is behind.

    It reads ledger and log, without Spark. The log's own times say how old a record is. All bounds that are given must
    hold at one moment. A task that waits deferred takes no worker.

    Returns for later tasks the `pipeline`, its last `batch_id`, and how many `records` are not committed.

    Args:
        pipeline: the name of a pipeline of the project.
        project: the folder with tidemill.toml. Without it, the project is found as the `tidemill` command finds it.
        max_records: wait until at most so many records are not committed; 0 means that everything is.
        max_age: wait until no record that is not committed has been in the log for longer, for example "5 minutes".
        min_records: wait until at least so many records are not committed.
        min_age: wait until a record that is not committed has been in the log for longer.
        deferrable: wait in the triggerer. By default as Airflow's setting `default_deferrable` says.
        kwargs: arguments of any sensor, such as `poke_interval`, `timeout`, `mode` or `soft_fail`.

    Raises:
        ConfigError: no bound is given, one is no such value, or they can never hold.
    """

    template_fields = ("pipeline", "project", *_BOUNDS)
    ui_color = "#e0f0e4"

    def __init__(  # noqa: PLR0913  an argument for each bound
        self,
        *,
        pipeline: str,
        project: str | None = None,
        max_records: int | str | None = None,
        max_age: str | timedelta | None = None,
        min_records: int | str | None = None,
        min_age: str | timedelta | None = None,
        deferrable: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.pipeline, self.project = pipeline, project
        self.max_records, self.max_age, self.min_records, self.min_age = max_records, max_age, min_records, min_age
        wanted = conf.getboolean("operators", "default_deferrable", fallback=False)
        self.deferrable = wanted if deferrable is None else deferrable
        self._reader: LagReader | None = None
        if not any("{{" in str(getattr(self, name)) for name in _BOUNDS):
            self._bounds()

    def execute(self, context: Context) -> Any:
        """Return at once if the bounds hold, and otherwise wait until they do."""
        if not self.deferrable:
            return super().execute(context)
        found = self.poke(context)
        if not found:
            self._wait()
        return found.xcom_value

    def _wait(self) -> NoReturn:
        sources = self._sources()
        self.defer(
            trigger=LagTrigger(
                pipeline=self.pipeline,
                project=str(Project.load(self.project).folder),
                topics=sources.topics,
                patterns=sources.patterns,
                bounds=self._bounds().json,
                look_every=self.poke_interval,
            ),
            method_name="execute_complete",
            timeout=timedelta(seconds=self.timeout),
        )

    def poke(self, context: Context) -> PokeReturnValue:
        """Whether the bounds hold now, and the lag."""
        try:
            bounds = self._bounds()
            if self._reader is None:
                self._reader = LagReader(Project.load(self.project), self.pipeline, self._sources())
            lag = self._reader.read()
            done = bounds.hold(self._reader, lag, datetime.now(UTC))
        except TidemillError as error:
            self.log.error("%s: %s", type(error).__name__, error)
            cancel(error)
        then = "" if done else ": waiting"
        self.log.info("%s: %s records are not committed%s", self.pipeline, f"{lag.records:,}", then)
        return PokeReturnValue(done, lag_json(self.pipeline, lag))

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Return the lag that the trigger has found, or fail with what it met."""
        if "error" in event:
            raise (AirflowException if event["retryable"] else AirflowFailException)(event["error"])
        self.log.info("%s: %s records are not committed", event["pipeline"], f"{event['records']:,}")
        return event

    def _bounds(self) -> Bounds:
        return Bounds.of(**{name: getattr(self, name) for name in _BOUNDS})

    def _sources(self) -> Sources:
        return Sources.of(Project.load(self.project).pipeline(self.pipeline))
