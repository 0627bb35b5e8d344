"""How `tidemill verify` ends when no row was compared, and what commands say while Spark starts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from support.projects import NO_SPARK
from tidemill.core.exit_code import ExitCode
from tidemill.core.plan.position import Since
from tidemill.core.plan.slices import BatchRange
from tidemill.engine.publish.comparison import Differences
from tidemill.inspect import verify
from tidemill.inspect.verify import Verified
from tidemill.maintain import state_compaction

LEFT_OUT: dict[str, Any] = {
    "earlier": (BatchRange(1, 9),),
    "since": Since(batch_id=9, by="ana", why="a wider pattern", event_time=None),
}


@pytest.mark.parametrize(
    ("compared", "more", "options", "code"),
    [
        (0, LEFT_OUT, (), ExitCode.NOTHING_TO_DO),
        (0, {}, ("--windows", "2026-01-01/2026-01-02"), ExitCode.NOTHING_TO_DO),
        (0, {}, ("--sample", "0.1"), ExitCode.NOTHING_TO_DO),
        (0, {}, (), ExitCode.DONE),
        (3, LEFT_OUT, (), ExitCode.DONE),
    ],
)
def test_nothing_compared_is_no_proof(  # noqa: PLR0917  a case
    tidemill: Any, monkeypatch: pytest.MonkeyPatch, compared: int, more: Any, options: Any, code: ExitCode
) -> None:
    found = Verified(table="sums", differences=Differences(compared=compared), **more)
    monkeypatch.setattr(verify, "verify", lambda *_: iter([found]))
    said = tidemill("verify", "sums", *options, session=lambda _: NO_SPARK)
    assert said.code == code
    assert ("nothing was compared, so this proves nothing" in said.out) is (code is ExitCode.NOTHING_TO_DO)


@pytest.mark.parametrize(("options", "said"), [((), "sums: starting Spark ...\n"), (("--json",), "")])
@pytest.mark.parametrize("command", ["verify", "maintain"])
def test_commands_that_take_long_say_that_spark_starts(
    tidemill: Any, monkeypatch: pytest.MonkeyPatch, command: str, options: Any, said: str
) -> None:
    found = Verified(table="sums", differences=Differences(compared=3))
    monkeypatch.setattr(verify, "verify", lambda *_: iter([found]))
    monkeypatch.setattr(state_compaction, "due", lambda *_: [1])
    monkeypatch.setattr(state_compaction, "fold", lambda amendment: [amendment.session()])
    monkeypatch.setattr("tidemill.cli.spark.start_spark", lambda *_: SimpleNamespace(stop=lambda: None))
    done = tidemill(command, "sums", *options)
    assert (done.code, done.err) == (0, said)
