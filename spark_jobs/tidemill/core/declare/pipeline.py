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
from datetime import timedelta
from types import TracebackType
from typing import Any, NoReturn

from tidemill.core.declare import operators as op
from tidemill.core.declare.arguments import check_operator, check_streams
from tidemill.core.declare.builder import Stream
from tidemill.core.declare.checks import check_published, check_watermark, interval, read_again, wanted_topics
from tidemill.core.declare.graph import Edge, Graph
from tidemill.core.declare.guarantees import Guarantee, OnLoss, one_of
from tidemill.core.declare.names import checked_contract, checked_name, no_step
from tidemill.core.declare.pipeline_spec import PipelineSpec
from tidemill.core.declare.places import FINISHED, caller
from tidemill.core.declare.ports import input_ports
from tidemill.core.errors import DeclarationError
from tidemill.core.given import check_text
from tidemill.core.time.times import duration, positive_duration


class Pipeline:
    """A pipeline, declared in a `with` block. Leaving the block checks that every stream leads to a table.

    Args:
        name: at most 63 lower-case letters, digits and underscores, a letter first. It names the pipeline's ledger, so
            change it with `tidemill rename`.
        every: how often Airflow starts a batch; at least 1 second.
        owner: the person or team responsible for it; shown in Airflow.
        description: what it is for; shown in Airflow.
        idle_timeout: a partition without records for longer than this does not hold back the watermark. None: every
            partition holds it back, however long it is silent.
        future_tolerance: a record whose event time is further ahead of the batch's clock is rejected.
        takeover_after: how long a run must give no sign of life before another run continues its batch.
        guarantee: "exactly_once"; "at_least_once", with which a retry may send rows to topics twice; or
            "at_most_once", which never reads again what a failed attempt had begun to read.
        on_loss: what happens when retention deleted records before they were read: "refuse" runs no batch, "skip" goes
            on after them and records which they were.
        max_drift: a batch ends before the first record that would put the watermark of its partition further ahead of
            the slowest one's, so that a fast input does not fill state while a slow one catches up. None: every
            partition is read as it comes.

    Raises:
        DeclarationError: a name, a duration or a choice is not valid; or, at the end of the block, a stream leads
            nowhere, no table is published, or one is published twice.
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
        max_drift: str | timedelta | None = None,
    ) -> None:
        self.name = checked_name(name, "a pipeline")
        check_text(owner, "owner", 'owner="team data"')
        check_text(description, "description", 'description="what it is for"', empty=True)
        self._settings: dict[str, Any] = {
            "every": interval(every),
            "owner": owner,
            "description": description,
            "idle_timeout": None if idle_timeout is None else positive_duration(idle_timeout, "idle_timeout"),
            "future_tolerance": positive_duration(future_tolerance, "future_tolerance"),
            "takeover_after": positive_duration(takeover_after, "takeover_after"),
            "guarantee": one_of(Guarantee, guarantee, "guarantee"),
            "on_loss": one_of(OnLoss, on_loss, "on_loss"),
            "max_drift": None if max_drift is None else duration(max_drift, "max_drift"),
        }
        self._operators: dict[str, op.Operator] = {}
        self._edges: list[Edge] = []
        self._places: dict[str, str] = {}
        self._spec: PipelineSpec | None = None

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is None:
            self._spec = self._checked_spec()
            FINISHED.get([]).append(self)

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
        watermark: str | None = None,
        watermark_of: str | None = None,
        name: str | None = None,
    ) -> Stream:
        """The records of one topic or several that meet their contract.

        The same topics may be read again with a longer delay. They are still read once, and tables made of the second
        stream have a watermark of their own, so that windows of theirs close later.

        Args:
            topics: names of topics whose records all have the same contract.
            pattern: instead of names, a regular expression for whole names; each batch reads the topics that match.
            contract: the contract of the records, by the name of its file without `.odcs.yaml`; always needed.
            event_time: the column with the event time; None: the time at which the log took the record.
            delay: how far the records of one partition may be out of order, zero or longer. The watermark stays this
                far behind the newest record.
            start: where to begin in a topic that was never read: "earliest", or "latest", which skips the records from
                before the first batch.
            watermark: instead of a delay, a timestamp expression: no events before it will come any more. It is null in
                records that tell none: `"CASE WHEN kind = 'marker' THEN ts END"`, `"ts - INTERVAL 10 SECONDS"`.
            watermark_of: instead of both, the pipeline of this lake that sends the records to these topics: no events
                before its watermark will come any more, once what it had sent by then is read.
            name: the step's name in `explain` and in errors; by default its kind and a number: `read_1`.

        Raises:
            DeclarationError: there are no topics, or names and a pattern; a topic is read twice, and not only with a
                longer delay; there is no contract; the delay is no duration, or negative; or there is more than one of
                delay, watermark and watermark_of.
        """
        wanted = wanted_topics(topics, pattern)
        read = op.Read(
            topic=wanted,
            contract=checked_contract(contract, str(wanted)),
            event_time=event_time,
            delay=duration(delay, "delay"),
            start=one_of(op.StartFrom, start, "start"),
            watermark=watermark,
            watermark_of=watermark_of,
        )
        check_watermark(read)
        if (again := read_again(self._operators, read)) is not None:
            earlier, longer = again
            return Stream(self, self.add(longer, "read", (Stream(self, earlier, "out"),), name), "out")
        return Stream(self, self._add(read, "read", name), "out")

    def add(self, operator: op.Operator, kind: str, feeds: tuple[Stream, ...], name: str | None = None) -> str:
        """Add an operator fed by streams, in the order of its ports, and return its name."""
        check_streams(feeds, Stream, kind)
        node = self._add(operator, kind, name)
        for stream, port in zip(feeds, input_ports(operator), strict=True):
            if stream.pipeline is not self:
                raise DeclarationError(f"`{node}` of `{self.name}` uses a stream of `{stream.pipeline.name}`")
            self._edges.append(Edge(stream.node, stream.port, node, port))
        return node

    def _add(self, operator: op.Operator, kind: str, name: str | None) -> str:
        if self._spec is not None:
            raise DeclarationError(f"pipeline `{self.name}` is finished", fix='declare all of it in one "with" block')
        check_operator(operator)
        node = f"{kind}_{self._count(kind) + 1}" if name is None else checked_name(name, "an operator")
        if node in self._operators:
            raise DeclarationError(f"two operators are called `{node}`", fix="choose another name=")
        self._operators[node] = operator
        self._places[node] = caller()
        return node

    def _count(self, kind: str) -> int:
        return sum(1 for existing in self._operators if re.fullmatch(rf"{kind}_\d+", existing))

    def _checked_spec(self) -> PipelineSpec:
        graph = Graph(dict(self._operators), tuple(self._edges), dict(self._places))
        check_published(self.name, graph)
        return PipelineSpec(name=self.name, graph=graph, **self._settings)
