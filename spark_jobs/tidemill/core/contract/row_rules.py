"""Row rules as Spark SQL: which a row breaks, as the bits of one number, and why it is rejected."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.core.contract.contract import RowRule, Severity
from tidemill.core.errors import ContractError
from tidemill.core.sql.text import text_literal

MAX_ROW_RULES = 63
"""How many rules a mask has room for: the bits of a BIGINT without its sign."""


def mask_expression(rules: Sequence[RowRule]) -> str:
    """Spark SQL of one BIGINT whose bit i is set when the row breaks rule i.

    A rule is broken when its predicate is false; null is not false. Without rules it is `0L`. The text is one
    expression without subquery or user function, so it is part of the generated code of the scan.

    Raises:
        ContractError: there are more than `MAX_ROW_RULES` rules.
    """
    if len(rules) > MAX_ROW_RULES:
        raise ContractError(
            f"{len(rules)} row rules, but one mask holds at most {MAX_ROW_RULES}",
            fix="join some of them with AND in a rule of engine tidemill",
        )
    bits = [f"if(coalesce(({rule.predicate}), true), 0L, {1 << i}L)" for i, rule in enumerate(rules)]
    return f"({' | '.join(bits)})" if bits else "0L"


def rules_of(mask: int, rules: Sequence[RowRule]) -> tuple[RowRule, ...]:
    """The rules whose bits are set in a mask that `mask_expression` of the same rules gave."""
    return tuple(rule for i, rule in enumerate(rules) if mask >> i & 1)


def rejecting_bits(rules: Sequence[RowRule]) -> int:
    """The bits of the rules of severity ERROR: a row is rejected when its mask has one of these."""
    return sum(1 << i for i, rule in enumerate(rules) if rule.severity is Severity.ERROR)


def reasons_expression(rules: Sequence[RowRule], *, error: str, mask: str) -> str:
    """Spark SQL of an array of the texts why a row is rejected: `error`, where it is not null, and every broken rule.

    `error` and `mask` are the columns with the decoder's complaint and with the mask of the same rules.
    """
    named = [f"CASE WHEN {mask} & {1 << i}L != 0 THEN {text_literal(rule.name)} END" for i, rule in enumerate(rules)]
    return f"array_compact(array({', '.join([error, *named])}))"
