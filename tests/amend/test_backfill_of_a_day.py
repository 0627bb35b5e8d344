"""A day of a real access log is computed again while the rest of it still arrives."""

from __future__ import annotations

from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment
from support.access import an_hourly_mill, hours_of, time_of
from tidemill.core.plan.work import Kind
from tidemill.core.repair.selection import OfTimes
from tidemill.inspect.verify import Scope, verify
from tidemill.log.records import NewRecord
from tidemill.repair.backfill import backfill, preview

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("share", [32, pytest.param(1, marks=pytest.mark.long)])
def test_a_past_day_is_computed_again_beside_live_batches(
    tmp_path: Path, spark: Any, shared_data: Path, capsys: pytest.CaptureFixture[str], share: int
) -> None:
    lines = (shared_data / "apache_logs.log").read_bytes().splitlines()[::share]
    mill = an_hourly_mill(tmp_path, spark)
    # What the log takes within 12 hours is a segment; the batch after it reads that much.
    parts = [list(part) for _, part in groupby(lines, key=lambda line: int(time_of(line).timestamp()) // 43_200)]

    def arrives(part: list[bytes]) -> None:
        mill.log.append("web.access", 0, [NewRecord(value=line, timestamp=time_of(line)) for line in part])

    for part in parts[:5]:
        arrives(part)
        mill.run()
    day = time_of(lines[0]).replace(hour=0, minute=0, second=0) + timedelta(days=1)
    asked = OfTimes(since=day, until=day + timedelta(days=1))
    most = 700 // share
    shown = preview(an_amendment(mill, most=most), asked)
    later = iter(parts[5:])
    waiting, lags = 0, []
    for commit in backfill(an_amendment(mill, most=most), asked):
        if commit.kind is Kind.LIVE:
            waiting = 0
        else:
            lags.append(waiting)
            waiting += 1
            if (part := next(later, None)) is not None:
                arrives(part)
    for part in later:
        arrives(part)
    mill.catch_up()
    [found] = verify(an_amendment(mill), Scope())
    with capsys.disabled():
        print(
            f"\na day of {shown.records:,} records in {len(lags)} batches; what had come waited for {max(lags)} more; "
            f"{found.differences.compared} windows compared, {found.differences.count} different"
        )
    assert shown.batches == len(lags) >= 3
    assert max(lags) <= 1
    assert found.agrees
    assert mill.published() == hours_of(lines)
