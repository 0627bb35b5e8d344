"""Translates `logicalTypeOptions` and `enum` of a column to rules."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from tidemill.contracts.conditions import Condition, Rule
from tidemill.contracts.document import Node
from tidemill.contracts.findings import Findings, common
from tidemill.contracts.nodes import closest, is_flag, is_number, is_whole, shown, without_quotes, written
from tidemill.contracts.patterns import TEXT_FORMATS, complaint
from tidemill.contracts.ranges import check_enum, check_range
from tidemill.contracts.values import FEWER, advice, bound, fits, held, is_exact, is_number_type, rounded
from tidemill.core.contract.contract import Between, LengthBetween, Matches, OneOf
from tidemill.core.contract.row_checks import Bounded, ItemsBetween, ItemsDistinct, MultipleOf
from tidemill.core.contract.schema import Array, DataType, Decimal, Field, Object, Scalar

_COMPARISONS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
_FORMATS = {Scalar.LONG: "i64", Scalar.INTEGER: "i32", Scalar.DOUBLE: "f64"}
_BITS = {Scalar.LONG: 64, Scalar.INTEGER: 32}
_WIDTH = re.compile("(?P<sign>[iu])(?P<bits>8|16|32|64|128)")
_NOT_RUN = frozenset({"minProperties", "maxProperties", "required"})
"""Options of the standard that Tidemill runs for no type."""

_ZONES = ("UTC", "Etc/UTC")
_ISO_DAY = "yyyy-MM-dd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One key of `logicalTypeOptions` of a column."""

    key: str
    node: Node
    field: Field
    findings: Findings

    @property
    def column(self) -> str:
        """The name of the column."""
        return self.field.name

    def refuse(self, message: str, fix: str = "") -> None:
        """Note that the option cannot be run."""
        self.findings.error(self.node.line, f"`{self.column}`.{self.key}: {message}", fix=fix)

    def whole(self) -> int | None:
        """Return the option's value as a count from 0 to 2**31 - 1; otherwise note the fault and return None."""
        if is_whole(self.node) and isinstance(self.node.value, int) and 0 <= self.node.value < 2**31:
            return self.node.value
        self.refuse(
            f"expected a whole number from 0 to 2,147,483,647, found {shown(self.node)}", without_quotes(self.node)
        )
        return None


Reader = Callable[[Option], Condition | None]


def option_rules(property_: Node, field: Field, findings: Findings) -> Iterator[Rule]:
    """Yield the rules in the `logicalTypeOptions` and the `enum` of a column. Faults are noted."""
    options = property_.child("logicalTypeOptions")
    if options is not None and isinstance(options.value, Mapping):
        readers = _readers(field.type)
        check_range(options, field, findings)
        for key, node in options.value.items():
            reader = readers.get(key)
            option = Option(key=key, node=node, field=field, findings=findings)
            if reader is None:
                _refuse_name(option, readers)
            elif (condition := reader(option)) is not None:
                yield Rule(line=node.line, name=f"{field.name}.{key}", condition=condition)
    enum = property_.child("enum")
    if enum is not None:
        yield from _enum(enum, options, field, findings)


def check_options(property_: Node, name: str, types: Sequence[DataType], findings: Findings) -> None:
    """Note what is wrong with the options of a column whichever of these types it has."""
    options = property_.child("logicalTypeOptions")
    for key, node in options.value.items() if options and isinstance(options.value, Mapping) else ():
        noted: list[Findings] = []
        for data_type in types:
            if (reader := _readers(data_type).get(key)) is not None:
                noted.append(Findings(findings.file))
                reader(Option(key=key, node=node, field=Field(name=name, type=data_type), findings=noted[-1]))
        for finding in common(noted):
            findings.add(finding)
        if not noted and key not in _NOT_RUN:
            known = {key: reader for data_type in types for key, reader in _readers(data_type).items()}
            _refuse_name(Option(key=key, node=node, field=Field(name=name, type=types[0]), findings=findings), known)


def _refuse_name(option: Option, readers: Mapping[str, Reader]) -> None:
    known = option.key in _NOT_RUN or option.key in _known()
    what = "cannot be run for this type" if known else "unknown option"
    option.refuse(f"{what}; supported: {', '.join(readers) or 'none'}", closest(option.key, readers))


def _readers(data_type: DataType) -> Mapping[str, Reader]:
    match data_type:
        case Scalar.STRING:
            return {"minLength": _length, "maxLength": _length, "pattern": _pattern, "format": _text_format}
        case Scalar.DATE:
            return {**dict.fromkeys(_COMPARISONS, _moment), "format": _day}
        case Scalar.TIMESTAMP:
            return {**dict.fromkeys(_COMPARISONS, _moment), "timezone": _zoned, "defaultTimezone": _zone}
        case Scalar.INTEGER | Scalar.LONG:
            return {**dict.fromkeys(_COMPARISONS, _number), "multipleOf": _multiple, "format": _width}
        case Scalar.DOUBLE:
            return {**dict.fromkeys(_COMPARISONS, _number), "format": _width}
        case Decimal():
            return {**dict.fromkeys(_COMPARISONS, _number), "multipleOf": _multiple}
        case Array():
            return {"minItems": _items, "maxItems": _items, "uniqueItems": _distinct}
        case Scalar() | Object():
            return {}


@cache
def _known() -> frozenset[str]:
    """The options that can be run for some type."""
    types = (*Scalar, Decimal(1), Array(Scalar.LONG))
    return frozenset(key for data_type in types for key in _readers(data_type))


def _number(option: Option) -> Condition | None:
    limit = bound(option.node, option.field.type)
    if limit is None:
        expected = _kind_of_bound(option.field.type)
        option.refuse(f"expected {expected}, found {shown(option.node)}", without_quotes(option.node))
        return None
    if said := rounded(option.node, option.field.type):
        option.findings.warning(option.node.line, f"`{option.column}`.{option.key}: {said}", fix=FEWER)
    if option.key.lower().endswith("minimum"):
        return Between(column=option.column, minimum=limit, exclusive_minimum=option.key != "minimum")
    return Between(column=option.column, maximum=limit, exclusive_maximum=option.key != "maximum")


def _kind_of_bound(data_type: DataType) -> str:
    return "a number that a double can hold" if data_type is Scalar.DOUBLE else "a number of at most 38 digits"


def _moment(option: Option) -> Condition | None:
    text = option.node.value
    try:
        if not isinstance(text, str):
            raise ValueError(text)
        if option.field.type is Scalar.DATE:
            exact = dt.date.fromisoformat(text).isoformat()
        else:
            moment = dt.datetime.fromisoformat(text)
            exact = (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).astimezone(dt.UTC).isoformat()
    except (ValueError, OverflowError):
        example = "2024-01-31" if option.field.type is Scalar.DATE else "2024-01-31T23:59:59Z"
        option.refuse(f"expected a time in ISO 8601, found {shown(option.node)}", f"write it like '{example}'")
        return None
    return Bounded(column=option.column, operator=_COMPARISONS[option.key], bound=exact)


def _multiple(option: Option) -> Condition | None:
    factor = option.node.value
    if is_number(option.node) and isinstance(factor, int | float) and factor > 0 and is_exact(factor):
        return MultipleOf(column=option.column, factor=factor)
    option.refuse(f"expected a number above 0, found {shown(option.node)}", without_quotes(option.node))
    return None


def _width(option: Option) -> Condition | None:
    narrow = _narrower(option)
    if narrow is not None:
        return narrow
    width = _FORMATS[option.field.type] if isinstance(option.field.type, Scalar) else ""
    if option.node.value != width:
        option.refuse(
            f"{shown(option.node)} is not what the column has: {width}",
            "physicalType: int gives i32, bigint gives i64; for what is wider remove it",
        )
    return None


def _narrower(option: Option) -> Condition | None:
    """The bounds of a format of integers that the column holds with room to spare; None for another format."""
    found = _WIDTH.fullmatch(str(option.node.value))
    most = _BITS.get(option.field.type) if isinstance(option.field.type, Scalar) else None
    if found is None or most is None or int(found["bits"]) >= most:
        return None
    bits = int(found["bits"])
    if found["sign"] == "u":
        return Between(column=option.column, minimum=0, maximum=2**bits - 1)
    return Between(column=option.column, minimum=-(2 ** (bits - 1)), maximum=2 ** (bits - 1) - 1)


def _length(option: Option) -> Condition | None:
    size = option.whole()
    if size is None:
        return None
    if option.key == "minLength":
        return LengthBetween(column=option.column, minimum=size)
    return LengthBetween(column=option.column, maximum=size)


def _pattern(option: Option) -> Condition | None:
    pattern = option.node.value
    if not isinstance(pattern, str):
        option.refuse(f"expected a regular expression, found {shown(option.node)}", "put it in single quotes")
        return None
    if reason := complaint(pattern):
        said = f"not a regular expression that every engine reads alike: {reason}"
        option.refuse(said, "use characters, classes such as [a-z], groups, | and counts up to 1,000")
        return None
    return Matches(column=option.column, pattern=pattern)


def _day(option: Option) -> None:
    if option.node.value != _ISO_DAY:
        option.refuse(f"days are read as {_ISO_DAY}, found {shown(option.node)}", f"write {_ISO_DAY}, or remove it")


def _text_format(option: Option) -> Condition | None:
    if option.node.value == "password":
        said = f"`{option.column}`.format: password says how to show values, and nothing about them"
        option.findings.information(option.node.line, said)
        return None
    pattern = TEXT_FORMATS.get(str(option.node.value))
    if pattern is None:
        said = f"{shown(option.node)} cannot be checked; supported: {', '.join(TEXT_FORMATS)}"
        option.refuse(said, closest(str(option.node.value), TEXT_FORMATS) or "use pattern instead")
        return None
    return Matches(column=option.column, pattern=pattern)


def _items(option: Option) -> Condition | None:
    size = option.whole()
    if size is None:
        return None
    if option.key == "minItems":
        return ItemsBetween(column=option.column, minimum=size)
    return ItemsBetween(column=option.column, maximum=size)


def _distinct(option: Option) -> Condition | None:
    if not is_flag(option.node):
        option.refuse(f"expected true or false, found {shown(option.node)}")
    return ItemsDistinct(column=option.column) if option.node.value is True else None


def _zoned(option: Option) -> None:
    if option.node.value is not True:
        option.refuse("times are moments in UTC; a time without a zone cannot be stored", "remove it, or write true")


def _zone(option: Option) -> None:
    if option.node.value not in _ZONES:
        option.refuse(f"a time without a zone is read as UTC, found {shown(option.node)}", "write Etc/UTC")


def _enum(enum: Node, options: Node | None, field: Field, findings: Findings) -> Iterator[Rule]:
    if enum.value == ():
        findings.error(
            enum.line, f"`{field.name}`.enum is empty: no value can pass", fix="list the values, or remove it"
        )
    values: list[str | int | float | bool] = []
    for item in enum.value if isinstance(enum.value, tuple) else ():
        node = item.child("value")
        if node is None:
            continue
        if not fits(node, field.type):
            message = f"`{field.name}`.enum: {shown(node)} is no value of this column's type"
            findings.error(node.line, message, fix=_as_type(node, field.type))
        elif isinstance(node.value, str | int | float | bool):
            if said := rounded(node, field.type):
                findings.warning(node.line, f"`{field.name}`.enum: {said}", fix=FEWER)
            value = held(node, field.type).value
            assert isinstance(value, str | int | float | bool)
            values.append(value)
            check_enum(node, options, field, findings)
    if values:
        yield Rule(line=enum.line, name=f"{field.name}.enum", condition=OneOf(column=field.name, values=tuple(values)))


def _as_type(node: Node, data_type: DataType) -> str:
    """How to write a value so that it fits the column, if only its quotes are wrong."""
    if data_type is Scalar.STRING and isinstance(node.value, int | float):
        return f"put it in quotes: '{written(node)}'"
    return without_quotes(node) if is_number_type(data_type) else advice(data_type)
