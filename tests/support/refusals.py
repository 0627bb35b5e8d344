"""What lint says about a predicate over the columns of `support.columns`."""

from __future__ import annotations

import pytest

from support.columns import TYPES
from tidemill.core.contract.implicit_casts import check_predicate
from tidemill.core.errors import DeclarationError


def refusal_of(predicate: str) -> DeclarationError:
    """The error with which lint refuses a predicate; the test fails if it does not."""
    with pytest.raises(DeclarationError) as refused:
        check_predicate(predicate, TYPES)
    return refused.value
