"""The conservation law."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.errors import Unbalanced
from tidemill.core.protocol.account import Account

counts = st.integers(0, 10**12)


@st.composite
def balanced(draw: st.DrawFn) -> Account:
    parts = {k: draw(counts) for k in ("aggregated", "filtered", "rejected", "late", "shed")}
    return Account(read=sum(parts.values()), **parts)


@given(balanced(), balanced())
def test_accounts_that_balance_balance_when_added(left: Account, right: Account) -> None:
    assert (left + right).balances


@given(balanced(), balanced(), balanced())
def test_adding_accounts_does_not_depend_on_grouping_or_order(a: Account, b: Account, c: Account) -> None:
    assert (a + b) + c == a + (b + c) == (c + b) + a


@given(balanced(), st.integers(1, 10**6))
def test_a_lost_record_is_noticed(account: Account, lost: int) -> None:
    with pytest.raises(Unbalanced, match="placed"):
        (account + Account(read=lost)).check(expected_read=account.read + lost, where="here")


@given(balanced(), st.integers(1, 10**6))
def test_a_doubled_record_is_noticed(account: Account, doubled: int) -> None:
    with pytest.raises(Unbalanced):
        (account + Account(aggregated=doubled)).check(expected_read=account.read, where="here")


@given(balanced(), st.integers(1, 10**6))
def test_reading_fewer_records_than_planned_is_noticed(account: Account, missing: int) -> None:
    with pytest.raises(Unbalanced, match="the plan holds"):
        account.check(expected_read=account.read + missing, where="here")


@given(balanced(), st.integers(0, 10**6))
def test_an_account_that_balances_passes(account: Account, gaps: int) -> None:
    account.check(expected_read=account.read, where="here")
    account.check(expected_read=account.read + gaps, at_most=True, where="here")


@given(balanced(), st.integers(1, 10**6))
def test_more_records_than_offsets_are_noticed_also_where_there_may_be_gaps(account: Account, more: int) -> None:
    doubled = account + Account(read=more, aggregated=more)
    with pytest.raises(Unbalanced, match="the plan holds"):
        doubled.check(expected_read=account.read, at_most=True, where="here")


def test_a_count_below_zero_is_no_account() -> None:
    with pytest.raises(ValueError, match="negative"):
        Account(late=-1)
