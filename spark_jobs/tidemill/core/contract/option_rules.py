"""Refuses options of functions that read or write JSON, CSV and XML: those Spark does not take, and those that fail."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tidemill.core.contract.constant_texts import written_text
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.result_lines import OPTIONS_AT

_READING = ("from_json", "from_csv", "from_xml")
_FAILING = {
    "failfast": "it fails the whole batch at the first text that cannot be read",
    "dropmalformed": "no function of a row can drop it, so it would fail the whole batch",
}


def check_options(name: str, arguments: Sequence[exp.Expr], expression: str) -> None:
    """Refuse options that are no constant map, and the modes that fail a batch.

    Raises:
        DeclarationError: the options are one of these.
    """
    place = OPTIONS_AT.get(name, len(arguments))
    options = arguments[place].unnest() if place < len(arguments) else None
    if options is None:
        return
    if not isinstance(options, exp.Anonymous) or options.name.lower() != "map" or options.find(exp.Column):
        shown = options.sql(dialect="spark")
        raise DeclarationError(
            f"the options of `{name}` are a map(...) of constants in {expression!r}, not `{shown}`: Spark refuses it",
            fix="write map('key', 'value')",
        )
    for key, value in zip(options.expressions[::2], options.expressions[1::2], strict=False):
        mode = (written_text(value) or "").lower() if (written_text(key) or "").lower() == "mode" else ""
        if name in _READING and mode in _FAILING:
            raise DeclarationError(
                f"`{name}` has the mode {mode.upper()} in {expression!r}: {_FAILING[mode]}; Spark would fail the batch",
                fix="leave out the mode: what cannot be read is null; a rule such as `... IS NOT NULL` rejects it",
            )
