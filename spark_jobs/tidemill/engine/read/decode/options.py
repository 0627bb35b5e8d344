"""The options of formats that a contract may set, checked before anything is decoded."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from tidemill.core.contract.contract import Contract
from tidemill.core.errors import ContractError


class TimeUnit(StrEnum):
    """How a JSON or CSV record writes a time: the option `timestamp`.

    ISO is `2024-01-31T23:59:59.123Z`, with a `T` or a space before the hour. Seconds and their fraction (at most nine
    digits, after a point or a comma) are optional. The zone is `Z`, `+01:00`, `+0100` or `+01`; without a zone the time
    is UTC. The other units are numbers since 1970, which may have a fraction. All times lie in the years 1 to 9999 UTC;
    fractions of a microsecond are cut off, towards the past.
    """

    ISO = "iso"
    SECONDS = "epoch_s"
    MILLISECONDS = "epoch_ms"
    MICROSECONDS = "epoch_us"

    @property
    def digits(self) -> int:
        """How many digits after the point a number of this unit needs to express microseconds."""
        return {"epoch_s": 6, "epoch_ms": 3}.get(self.value, 0)


def time_unit(contract: Contract) -> TimeUnit:
    """The option `timestamp`; ISO if it is not set.

    Raises:
        ContractError: it is set to an unknown unit.
    """
    text = contract.options.get("timestamp", TimeUnit.ISO.value)
    if text not in list(TimeUnit):
        known = ", ".join(TimeUnit)
        raise ContractError(
            f"{where(contract)}: option `timestamp` is {text!r}, expected one of {known}",
            fix="set `timestamp` to one of these, or remove the option",
        )
    return TimeUnit(text)


def check_options(contract: Contract, known: Iterable[str]) -> None:
    """Refuse options that the contract's format does not have.

    Raises:
        ContractError: the contract sets such an option.
    """
    unknown = sorted(set(contract.options) - set(known))
    if unknown:
        listed = ", ".join(sorted(known)) or "none"
        raise ContractError(
            f"{where(contract)}: unknown option {', '.join(f'`{u}`' for u in unknown)}; this format has: {listed}",
            fix="remove the option, or correct its name",
        )


def where(contract: Contract) -> str:
    """The name of a contract in errors."""
    return f"contract {contract.name} ({contract.source})" if contract.source else f"contract {contract.name}"
