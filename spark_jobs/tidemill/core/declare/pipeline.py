"""How a pipeline is declared: what it computes, where in event time, when, and how.

    with Pipeline("page_views", every="1 minute") as pipeline:
        hits = pipeline.read("web.access", contract="web_access", event_time="ts", delay="10 seconds")
        (
            hits.filter("status < 400")
            .key_by("path")
            .window(Tumbling("1 minute"), allowed_lateness="1 hour")
            .aggregate(views=Count(), bytes=Sum("bytes"))
            .publish("page_views_by_minute", contract="page_views_by_minute")
        )

A declaration runs nothing; leaving the `with` block checks it. `tidemill.core.bind.binding` joins it with the
contracts later.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import NoReturn

from tidemill.core.declare import operators as op
from tidemill.core.declare.builder import Stream
from tidemill.core.declare.checks import check_published, interval, wanted_topics
from tidemill.core.declare.graph import Edge, Graph
from tidemill.core.declare.guarantees import Guarantee, OnLoss, one_of
from tidemill.core.declare.names import checked_contract, checked_name, no_step
from tidemill.core.errors import DeclarationError
from tidemill.core.time.times import duration, positive_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSpec:
    """A declared pipeline. Durations are positive; with `idle_timeout` None, no partition ever counts as idle."""

    name: str
    every: timedelta
    owner: str
    description: str
    idle_timeout: timedelta | None
    future_tolerance: timedelta
    takeover_after: timedelta
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE
    on_loss: OnLoss = OnLoss.REFUSE
    graph: Graph


class Pipeline:
    """Collects operators in a `with` block; afterwards `spec` holds the checked declaration.

    Args:
        name: lower-case letters, digits and underscores, a letter first; it names the pipeline's ledger for good.
        every: how often a batch starts; at least a second.
        owner: the person or team responsible for it.
        description: what it is for; shown in Airflow.
        idle_timeout: a topic-partition that is silent for longer does not hold back the watermark; None for never.
        future_tolerance: a record is rejected if its event time is further ahead of the batch clock.
        takeover_after: how long a run must give no sign of life before another run continues its batch.
        guarantee: "exactly_once"; "at_least_once", which may repeat rows where exactly once would cost more; or
            "at_most_once", which never reads again what a failed attempt had begun to read.
        on_loss: what to do when retention deleted unread records: "refuse" to run, or "skip" them and say which.
    """

    def __init__(  # noqa: PLR0913  every argument is a documented knob with a default
        self,
        name: str,
        *,
        every: str | timedelta,
        owner: str = "tidemill",
        description: str = "",
        idle_timeout: str | timedelta | None = "5 minutes",
        future_tolerance: str | timedelta = "1 hour",
        takeover_after: str | timedelta = "15 minutes",
        guarantee: str = Guarantee.EXACTLY_ONCE,
        on_loss: str = OnLoss.REFUSE,
    ) -> None:
        self.name = checked_name(name, "a pipeline")
        self._every = interval(every)
        self._owner, self._description = owner, description
        self._idle_timeout = None if idle_timeout is None else positive_duration(idle_timeout, "idle_timeout")
        self._future_tolerance = positive_duration(future_tolerance, "future_tolerance")
        self._takeover_after = positive_duration(takeover_after, "takeover_after")
        self._guarantee = one_of(Guarantee, guarantee, "guarantee")
        self._on_loss = one_of(OnLoss, on_loss, "on_loss")
        self._operators: dict[str, op.Operator] = {}
        self._edges: list[Edge] = []
        self._places: dict[str, str] = {}
        self._spec: PipelineSpec | None = None

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is None:
            self._spec = self._checked_spec()

    def __getattr__(self, name: str) -> NoReturn:
        no_step(name, "a pipeline", ("read",))

    @property
    def spec(self) -> PipelineSpec:
        """The checked declaration.

        Raises:
            DeclarationError: the `with` block has not been left yet, or failed.
        """
        if self._spec is None:
            raise DeclarationError(f"pipeline `{self.name}` is not finished", fix='declare it in "with Pipeline(...)"')
        return self._spec

    def read(  # noqa: PLR0913
        self,
        *topics: str,
        pattern: str | None = None,
        contract: str | None = None,
        event_time: str | None = None,
        delay: str | timedelta = timedelta(0),
        start: str = op.StartFrom.EARLIEST,
        name: str | None = None,
    ) -> Stream:
        """A stream of the records that meet their contract, from one topic or more, or from all that match a pattern.

        Args:
            topics: names of topics whose records all have the same contract.
            pattern: a regular expression for whole names, instead of `topics`; each batch reads what matches then.
            contract: the contract of their records, by the name of its file.
            event_time: the column with the event time; by default, the time at which the log took the record.
            delay: how far records of one partition may be out of order; the watermark stays this far behind.
            start: "earliest", or "latest", which skips records from before the first batch.
            name: the operator's name in `explain` and in errors.
        """
        wanted = wanted_topics(topics, pattern)
        self._check_read_once(topics)
        start_from = one_of(op.StartFrom, start, "start")
        read = op.Read(
            topic=wanted,
            contract=checked_contract(contract, str(wanted)),
            event_time=event_time,
            delay=duration(delay, "delay"),
            start=start_from,
        )
        return Stream(self, self._add(read, "read", name), "out")

    def _check_read_once(self, topics: Sequence[str]) -> None:
        read = [t for o in self._operators.values() if isinstance(o, op.Read) for t in o.names]
        for number, topic in enumerate(topics):
            if topic in read or topic in topics[:number]:
                raise DeclarationError(f"topic `{topic}` is read twice", fix="read it once and use the stream twice")

    def add(self, operator: op.Operator, kind: str, feeds: tuple[Stream, ...], name: str | None = None) -> str:
        """Add an operator fed by streams, in the order of its ports, and return its name."""
        node = self._add(operator, kind, name)
        for stream, port in zip(feeds, op.input_ports(operator), strict=True):
            if stream.pipeline is not self:
                raise DeclarationError(f"`{node}` of `{self.name}` uses a stream of `{stream.pipeline.name}`")
            self._edges.append(Edge(stream.node, stream.port, node, port))
        return node

    def _add(self, operator: op.Operator, kind: str, name: str | None) -> str:
        if self._spec is not None:
            raise DeclarationError(f"pipeline `{self.name}` is finished", fix='declare all of it in one "with" block')
        node = checked_name(name, "an operator") if name else f"{kind}_{self._count(kind) + 1}"
        if node in self._operators:
            raise DeclarationError(f"two operators are called `{node}`", fix="choose another name=")
        self._operators[node] = operator
        self._places[node] = _caller()
        return node

    def _count(self, kind: str) -> int:
        return sum(1 for existing in self._operators if re.fullmatch(rf"{kind}_\d+", existing))

    def _checked_spec(self) -> PipelineSpec:
        graph = Graph(dict(self._operators), tuple(self._edges), dict(self._places))
        check_published(self.name, graph)
        return PipelineSpec(
            name=self.name,
            every=self._every,
            owner=self._owner,
            description=self._description,
            idle_timeout=self._idle_timeout,
            future_tolerance=self._future_tolerance,
            takeover_after=self._takeover_after,
            guarantee=self._guarantee,
            on_loss=self._on_loss,
            graph=graph,
        )


def _caller() -> str:
    frame, own = sys._getframe(1), sys.modules[__name__].__name__.rpartition(".")[0]
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(own):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
