"""Slices, and the one number that a table orders them by."""

from __future__ import annotations

import pytest

from tidemill.core.errors import ProtocolError
from tidemill.core.plan.slices import slice_number, slice_of

IN_ORDER = [(1, 1), (1, 2), (1, 2**20 - 1), (2, 1), (2, 7), (1000, 1), (2**40, 1), (2**40, 2**20 - 1)]


def test_numbers_grow_with_the_batch_and_then_with_the_attempt() -> None:
    numbers = [slice_number(*slice_) for slice_ in IN_ORDER]
    assert numbers == sorted(set(numbers))
    assert max(numbers) < 2**63
    assert [slice_of(n) for n in numbers] == IN_ORDER


def test_an_attempt_beyond_the_last_number_is_refused() -> None:
    with pytest.raises(ProtocolError, match="batch 5: attempt 1048576 is more than the 1048575"):
        slice_number(5, 2**20)
