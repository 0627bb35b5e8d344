"""Refuses types that Spark does not have where an expression names them: in casts, and in `variant_get`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import Token, exp

from tidemill.core.contract.schema_tokens import SchemaFaultError
from tidemill.core.contract.schema_words import SchemaReader
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.dialect import tokens_of

_WITH_TYPE = 3
_CASTS = ("CAST", "TRY_CAST")
_TEXTS = ("STRING", "RAW_STRING", "IDENTIFIER")
_OPENED, _CLOSED = {"(": 1, "<": 1}, {")": 1, ">": 1, ">>": 2}
_OURS = {
    **dict.fromkeys(("text", "uuid", "json", "nvarchar", "char", "varchar"), "STRING"),
    **dict.fromkeys(("int4", "int32", "int unsigned", "unsigned", "signed", "mediumint"), "INT"),
    **dict.fromkeys(("int8", "int64", "uint32"), "BIGINT"),
    **dict.fromkeys(("bool", "bit"), "BOOLEAN"),
    **dict.fromkeys(("datetime", "timestamptz", "timestamp with time zone"), "TIMESTAMP"),
    **dict.fromkeys(("float8", "double precision"), "DOUBLE"),
    **dict.fromkeys(("number", "money"), "DECIMAL(38, 2)"),
    **dict.fromkeys(("blob", "bytes", "bytea", "varbinary"), "BINARY"),
}
"""Names of types of other databases, and what Spark has instead."""


def check_types(expression: str) -> None:
    """Refuse a cast to a type that Spark does not have.

    Raises:
        DeclarationError: Spark reads no type there.
    """
    for written in _types(expression, tokens_of(expression)):
        if fault := fault_of_type(written):
            raise DeclarationError(
                f"Spark has no type {written!r}, found in {expression!r}: {fault}", fix=_fix(written)
            )


def check_variant_type(name: str, arguments: Sequence[exp.Expr], expression: str) -> None:
    """Refuse a text that shall be the type of what `variant_get` gives, and is none.

    Raises:
        DeclarationError: Spark reads no type in it.
    """
    has_type = name in ("variant_get", "try_variant_get") and len(arguments) == _WITH_TYPE
    written = arguments[-1].unnest() if has_type else None
    if not isinstance(written, exp.Literal) or not written.is_string or "\\" in written.name:
        return
    fault = "nothing is cast to VOID" if written.name.lower() == "void" else fault_of_type(written.name, is_cast=False)
    # It may also be a list of fields.
    if fault and _fault_of_fields(written.name):
        raise DeclarationError(
            f"{written.name!r} is no type for `{name}` in {expression!r}: {fault}; Spark refuses it",
            fix=_fix(written.name),
        )


def fault_of_type(text: str, *, is_cast: bool = True) -> str:
    """Why Spark has no such type, or has it only in a cast; empty if it has."""
    try:
        reader = SchemaReader(text, with_sizes=is_cast)
        reader.whole(reader.type)
    except SchemaFaultError as fault:
        return str(fault)
    return ""


def _fault_of_fields(text: str) -> str:
    try:
        reader = SchemaReader(text)
        reader.whole(reader.fields)
    except SchemaFaultError as fault:
        return str(fault)
    return ""


def _fix(written: str) -> str:
    plain = " ".join(written.lower().partition("(")[0].strip("`").split())
    if "decimal" in plain:
        return "write a decimal of at most 38 digits: DECIMAL(38, 2)"
    found = _OURS.get(plain)
    return f"write {found}" if found else "write a type of Spark, such as STRING, BIGINT, DOUBLE or DECIMAL(10, 2)"


def _types(expression: str, tokens: Sequence[Token]) -> Iterator[str]:
    """The types of casts, as they are written."""
    opened: list[tuple[bool, int | None]] = []
    for at, token in enumerate(tokens):
        text = "" if token.token_type.name in _TEXTS else token.text.upper()
        if text == "(":
            is_cast = at > 0 and tokens[at - 1].text.upper() in _CASTS and tokens[at - 1].token_type.name not in _TEXTS
            opened.append((is_cast, None))
        elif text == ")" and opened:
            _, start = opened.pop()
            if start is not None:
                yield expression[start : token.start].strip()
        elif text == "AS" and opened and opened[-1] == (True, None):
            opened[-1] = (True, token.end + 1)
        elif token.token_type.name == "DCOLON" and expression[token.start : token.end + 1] == "::":
            yield _after_colons(expression, tokens[at + 1 :])


def _after_colons(expression: str, tokens: Sequence[Token]) -> str:
    """The type at the beginning of these tokens: a word, and what stands in brackets behind it."""
    depth, end = 0, tokens[0].end
    if tokens[0].text.upper() == "INTERVAL":
        return "interval"
    for token in tokens[1:]:
        if depth == 0 and token.text not in _OPENED:
            break
        depth += _OPENED.get(token.text, 0) - _CLOSED.get(token.text, 0)
        end = token.end
        if depth <= 0:
            break
    return expression[tokens[0].start : end + 1]
