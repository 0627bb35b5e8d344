"""From a contract to its decoder."""

from __future__ import annotations

from collections.abc import Callable

from tidemill.core.contract.contract import Contract, Format
from tidemill.core.errors import ContractError
from tidemill.engine.read.decode.access_rows import access_log_decoder
from tidemill.engine.read.decode.csv_rows import csv_decoder
from tidemill.engine.read.decode.json_rows import json_decoder
from tidemill.engine.read.decode.options import where
from tidemill.engine.read.decode.raw import bytes_decoder, text_decoder
from tidemill.engine.read.decode.rows import Decoder

_MAKERS: dict[Format, Callable[[Contract], Decoder]] = {
    Format.JSON: json_decoder,
    Format.CSV: csv_decoder,
    Format.ACCESS_LOG: access_log_decoder,
    Format.TEXT: text_decoder,
    Format.BYTES: bytes_decoder,
}


def decoder_for(contract: Contract) -> Decoder:
    """The decoder of the records that a contract describes.

    Raises:
        ContractError: the contract has no format or no fields, or a field or an option that its format cannot have; the
            text names it.
    """
    if contract.format is None:
        raise ContractError(
            f"{where(contract)}: no format, so its records cannot be decoded",
            fix=f"give the contract a format: {', '.join(Format)}",
        )
    if not contract.fields:
        raise ContractError(f"{where(contract)}: no fields", fix="name the fields of a record")
    return _MAKERS[contract.format](contract)
