"""Checks that a batch has read exactly what its plan holds, and says what is missing if it has not."""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.core.log.scan import LinesScan, ParquetScan
from tidemill.core.protocol.account import Account, went_away
from tidemill.engine.attempt import Attempt
from tidemill.log import refusals
from tidemill.log.reading import absent_from


def check_accounts(attempt: Attempt, accounts: Mapping[str, Account]) -> None:
    """Check the account of each input, by topic.

    Raises:
        EngineError: files of the log went away while the batch read them.
        OffsetsLost: offsets of the plan are in no file of a landing zone.
        Unbalanced: the counts do not add up.
    """
    for topic, account in accounts.items():
        where = f"{attempt.flow.name}: batch {attempt.plan.batch_id}: input {topic}"
        expected = sum(len(r) for r in attempt.plan.ranges(topic))
        scan = None if attempt.given_up else attempt.scans.get(topic)
        if isinstance(scan, ParquetScan) and account.read < expected:
            # The log has counted the records of each file.
            raise went_away(where, expected=expected, found=account.read)
        dense = scan is None or scan.dense
        if isinstance(scan, LinesScan) and dense and account.read < expected and (absent := absent_from(scan)):
            raise refusals.in_no_file(absent)
        account.check(expected_read=expected, at_most=not dense, where=where)
