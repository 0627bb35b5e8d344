"""Names the rules of contracts that an expression which failed for some row may belong to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tidemill.contracts.blame import suspects
from tidemill.core.bind.flow import Flow
from tidemill.core.errors import DeclarationError


@contextmanager
def rules_named(flow: Flow) -> Iterator[None]:
    """Add file, line and rule to an error of an expression, if a rule of the pipeline's contracts can be the one.

    Raises:
        DeclarationError: the same error, with the rules.
    """
    try:
        yield
    except DeclarationError as error:
        cause = error.__cause__
        found = suspects(flow.contracts, str(cause)) if cause is not None else ()
        if not found:
            raise
        listed = "\n  ".join(found)
        raise DeclarationError(f"{error.message}\n  {listed}", fix=error.fix) from cause
