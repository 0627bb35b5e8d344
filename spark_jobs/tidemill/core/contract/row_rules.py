"""Row rules as Spark SQL: a mask of the rules that a row breaks, and why the row is rejected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidemill.core.contract.contract import Matches, RowRule, Severity
from tidemill.core.contract.schema import DataType
from tidemill.core.errors import ContractError
from tidemill.core.sql.text import text_literal

MAX_ROW_RULES = 63
"""The most rules of one mask: the bits of a BIGINT without its sign."""

UNMATCHED = "_unmatched"
"""The hidden column with the bits of patterns that a row does not match; null is none."""


def mask_expression(rules: Sequence[RowRule], types: Mapping[str, DataType] | None = None) -> str:
    """Spark SQL of one BIGINT whose bit i is set when the row breaks rule i.

    A rule is broken when its predicate is false; null is not false. Without rules, the expression is `0L`. It has no
    subquery and no user function, so that Spark compiles it into the code of the scan. The bits of rules with a pattern
    come from the column `UNMATCHED`. With the `types` of the columns, sums that are compared cannot fail.

    Raises:
        ContractError: there are more than `MAX_ROW_RULES` rules.
    """
    if len(rules) > MAX_ROW_RULES:
        raise ContractError(
            f"{len(rules)} row rules, but one mask holds at most {MAX_ROW_RULES}",
            fix="join some of them with AND in a rule of engine tidemill",
        )
    predicates = [(1 << i, rule.predicate) for i, rule in enumerate(rules) if rule.pattern is None]
    if types:
        # Imported late: it loads the SQL parser.
        from tidemill.core.contract.exact_sums import exact  # noqa: PLC0415

        predicates = [(bit, exact(predicate, types).sql) for bit, predicate in predicates]
    bits = [f"if(coalesce(({predicate}), true), 0L, {bit}L)" for bit, predicate in predicates]
    bits += [UNMATCHED] if patterns_of(rules) else []
    return f"({' | '.join(bits)})" if bits else "0L"


def patterns_of(rules: Sequence[RowRule]) -> tuple[tuple[int, Matches], ...]:
    """The bits of the rules that are checked where records are decoded, and their patterns."""
    return tuple((1 << i, rule.pattern) for i, rule in enumerate(rules) if rule.pattern is not None)


def rules_of(mask: int, rules: Sequence[RowRule]) -> tuple[RowRule, ...]:
    """The rules whose bits are set in `mask`; `rules` must be those that `mask_expression` was given."""
    return tuple(rule for i, rule in enumerate(rules) if mask >> i & 1)


def rejecting_bits(rules: Sequence[RowRule]) -> int:
    """The bits of the rules of severity ERROR: a row is rejected when its mask has one of them."""
    return sum(1 << i for i, rule in enumerate(rules) if rule.severity is Severity.ERROR)


def warning_bits(rules: Sequence[RowRule]) -> dict[str, int]:
    """The bits of the rules of severity WARNING, by their names."""
    bits: dict[str, int] = {}
    for i, rule in enumerate(rules):
        if rule.severity is Severity.WARNING:
            bits[rule.name] = bits.get(rule.name, 0) | 1 << i
    return bits


def reasons_expression(rules: Sequence[RowRule], *, error: str, mask: str) -> str:
    """Spark SQL of an array of reasons why a row is rejected: `error`, unless null, and names of broken rules.

    Rules of severity WARNING reject nothing, so they are no reasons. `error` and `mask` are Spark SQL of the decoder's
    error and of the mask that the same rules gave.
    """
    named = [
        f"CASE WHEN {mask} & {1 << i}L != 0 THEN {text_literal(rule.name)} END"
        for i, rule in enumerate(rules)
        if rule.severity is Severity.ERROR
    ]
    return f"array_compact(array({', '.join([error, *named])}))"
