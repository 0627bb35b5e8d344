"""Checks that a batch has read exactly what its plan holds, and says what is missing if it has not."""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.core.errors import OffsetsLost
from tidemill.core.log.scan import ParquetScan
from tidemill.core.protocol.account import Account, went_away
from tidemill.engine.attempt import Attempt
from tidemill.log.reading import check_whole


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
        if scan is not None and account.read < expected:
            try:
                check_whole(scan)
            except OffsetsLost as error:
                raise OffsetsLost(f"{where}: {error.message}; nothing was committed", fix=error.fix) from None
        account.check(expected_read=expected, at_most=not dense, where=where)
