"""Changes of contracts, each with its kind: a contract before and after."""

from __future__ import annotations

from typing import Any

HEAD = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: STATUS
TOP
schema:
  - name: orders
    logicalType: object
    description: Orders.
    OBJECT
    customProperties: [CUSTOM]
    quality: [QUALITY]
    properties:
"""
JSON, CSV = "{property: format, value: json}", "{property: format, value: csv}"
CLOSED = f"{JSON}, {{property: extraFields, value: reject}}"
ID = "{name: id, logicalType: integer, required: true}"
KEY, OTHER_KEY = ID.replace("required", "primaryKey"), "{name: day, logicalType: date, primaryKey: true}"
DAY = OTHER_KEY.replace("primaryKey", "required")
NAME = "{name: shop_name, logicalType: string, description: where}"


def contract(*properties: str, **parts: str) -> str:
    """A contract with these properties; `parts` are its status, its custom properties, its rules and others."""
    head = HEAD
    for name in ("top", "object", "custom", "quality"):
        head = head.replace(name.upper(), parts.get(name, ""))
    head = head.replace("STATUS", parts.get("status", "active"))
    return head + "".join(f"      - {p}\n" for p in properties)


def column(more: str = "", name: str = "x", of: str = "integer") -> str:
    return f"{{name: {name}, logicalType: {of}{', ' + more if more else ''}}}"


def options(text: str, of: str = "integer") -> str:
    return column(f"logicalTypeOptions: {{{text}}}", of=of)


def rows(bounds: str) -> str:
    return f"{{metric: rowCount, {bounds}}}"


def unit(value: str) -> str:
    return column(f"customProperties: [{{property: unit, value: {value}}}]")


def nulls(bounds: str) -> str:
    return column(f"quality: [{{metric: nullValues, {bounds}}}]")


def expected(kind: str, arguments: str, of: str = "integer") -> str:
    """A column with an expectation of Great Expectations."""
    how = f"{{type: expect_column_{kind}, kwargs: {{column: x, {arguments}}}}}"
    return column(f"quality: [{{type: custom, engine: greatExpectations, name: own, implementation: {how}}}]", of=of)


def mean(bounds: str) -> str:
    return expected("mean_to_be_between", bounds)


def distinct(how: str, values: str) -> str:
    return expected(f"distinct_values_to_{how}_set", f"value_set: [{values}]", of="string")


def among(values: str, metric: str = "invalidValues", argument: str = "validValues", name: str = "") -> str:
    called = f"type: library, name: {name}, " if name else ""
    rule = f"{{{called}metric: {metric}, arguments: {{{argument}: [{values}]}}, mustBe: 0}}"
    return column(f"quality: [{rule}]", of="string")


def holds(sql: str, name: str = "own") -> str:
    return f"{{type: custom, engine: tidemill, name: {name}, implementation: '{sql}'}}"


def money(text: str) -> str:
    return options(text, "number, physicalType: 'decimal(10,2)'")


def promised(value: object, unit: str, of: str = "latency") -> str:
    return f"slaProperties: [{{property: {of}, value: {value}, unit: {unit}}}]"


ROW = "description: One.}"
A_B, A = "object, properties: [{name: a, logicalType: integer}, ", "object, properties: ["
INNER = "{name: b, logicalType: integer, required: true}]"
ITEMS = "items: {logicalType: integer}"
EASED = INNER.replace("true", "false")


def in_items(text: str) -> str:
    return column(f"items: {{logicalType: integer, description: {text}}}", of="array")


CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("field-added", {"p": [ID]}, {"p": [ID, column()]}),
    ("field-added-required", {"p": [ID]}, {"p": [ID, column("required: true")]}),
    ("field-removed", {"p": [ID, column()]}, {"p": [ID]}),
    ("field-renamed", {"p": [ID, NAME]}, {"p": [ID, NAME.replace("shop_name", "shopName")]}),
    ("field-renamed", {"p": [ID, NAME]}, {"p": [ID, NAME.replace("shop_name", "place")]}),
    ("field-moved", {"p": [ID, column()]}, {"p": [column(), ID]}),
    ("field-removed", {"p": [column(of=f"{A_B}{INNER}")]}, {"p": [column(of=f"{A}{INNER}")]}),
    ("required-removed-inside", {"p": [column(of=f"{A}{INNER}")]}, {"p": [column(of=f"{A}{EASED}")]}),
    ("required-added-inside", {"p": [column(of=f"{A}{EASED}")]}, {"p": [column(of=f"{A}{INNER}")]}),
    (
        "field-moved-inside",
        {"p": [column(of=f"{A_B}{INNER}")]},
        {"p": [column(of=f"{A}{INNER[:-1]}, {A_B.split('[')[1][:-2]}]")]},
    ),
    ("type-widened", {"p": [column("physicalType: int")]}, {"p": [column()]}),
    ("type-narrowed", {"p": [column()]}, {"p": [column("physicalType: int")]}),
    ("type-narrowed", {"p": [column(of="timestamp")]}, {"p": [column(of="date")]}),
    (
        "type-narrowed",
        {"p": [column("physicalType: 'decimal(12,4)'", of="number")]},
        {"p": [column("physicalType: 'decimal(10,2)'", of="number")]},
    ),
    ("type-changed", {"p": [column()]}, {"p": [column(of="string")]}),
    (
        "type-widened",
        {"p": [column("items: {logicalType: integer, physicalType: int}", of="array")]},
        {"p": [column("items: {logicalType: integer}", of="array")]},
    ),
    ("required-added", {"p": [column()]}, {"p": [column("required: true")]}),
    ("required-removed", {"p": [column("required: true")]}, {"p": [column()]}),
    ("rule-added", {"p": [column()]}, {"p": [options("minimum: 0")]}),
    ("rule-removed", {"p": [options("minimum: 0")]}, {"p": [column()]}),
    ("rule-stricter", {"p": [options("minimum: 0")]}, {"p": [options("minimum: 1")]}),
    ("rule-weaker", {"p": [options("maximum: 5")]}, {"p": [options("maximum: 6")]}),
    ("rule-weaker", {"p": [options("maxLength: 5", "string")]}, {"p": [options("maxLength: 6", "string")]}),
    ("rule-stricter", {"p": [options("minimum: 2024-01-01", "date")]}, {"p": [options("minimum: 2024-02-01", "date")]}),
    ("rule-stricter", {"p": [options("minimum: 1")]}, {"p": [options("exclusiveMinimum: 1")]}),
    ("rule-weaker", {"p": [options("exclusiveMinimum: 1")]}, {"p": [options("minimum: 1")]}),
    ("rule-stricter", {"p": [options("multipleOf: 5")]}, {"p": [options("multipleOf: 10")]}),
    ("rule-reworded", {"p": [column("required: true")]}, {"p": [nulls("mustBe: 0")]}),
    ("rule-reworded", {"p": [nulls("mustBe: 0")]}, {"p": [column("required: true")]}),
    ("rule-reworded", {"p": [column("required: true")]}, {"p": [nulls("mustBe: 0")[:-1] + ", required: true}"]}),
    ("rule-stricter", {"p": [options("maximum: 5")]}, {"p": [options("exclusiveMaximum: 4")]}),
    (
        "rule-stricter",
        {"p": [options("minimum: 2024-01-01", "date")]},
        {"p": [options("exclusiveMinimum: 2024-01-01", "date")]},
    ),
    ("rule-stricter", {"p": [among("a, b", name="one")]}, {"p": [among("b", name="two")]}),
    ("rule-changed", {"p": [ID], "quality": holds("id > 3")}, {"p": [ID], "quality": holds("id > 4")}),
    # A dot is no line break: this refuses texts of two lines.
    ("rule-added", {"p": [column(of="string")]}, {"p": [options("pattern: '.*'", "string")]}),
    ("rule-stricter", {"p": [money("minimum: 0")]}, {"p": [money("exclusiveMinimum: 0")]}),
    ("rule-stricter", {"p": [options("minLength: 0", "string")]}, {"p": [options("minLength: 1", "string")]}),
    ("rule-changed", {"p": [options("pattern: a", "string")]}, {"p": [options("pattern: b", "string")]}),
    ("rule-changed", {"p": [options("multipleOf: 2")]}, {"p": [options("multipleOf: 3")]}),
    ("rule-stricter", {"p": [among("a, b")]}, {"p": [among("b")]}),
    ("rule-changed", {"p": [among("a, b")]}, {"p": [among("b, c")]}),
    (
        "rule-stricter",
        {"p": [among("'-'", "missingValues", "missingValues")]},
        {"p": [among("'-', 'n/a'", "missingValues", "missingValues")]},
    ),
    ("severity-lowered", {"p": [nulls("mustBe: 0")]}, {"p": [nulls("mustBe: 0, severity: warning")]}),
    ("severity-raised", {"p": [nulls("mustBe: 0, severity: warning")]}, {"p": [nulls("mustBe: 0")]}),
    ("warning-changed", {"p": [column()]}, {"p": [nulls("mustBe: 0, severity: warning")]}),
    ("unit-changed", {"p": [column("customProperties: [{property: unit, value: cents}]")]}, {"p": [column()]}),
    ("unit-changed", {"p": [unit("cents")]}, {"p": [unit("euros")]}),
    ("unit-added", {"p": [column()]}, {"p": [unit("cents")]}),
    ("description-changed", {"p": [unit("cents")]}, {"p": [unit("cents, description: of a euro")]}),
    ("deprecated", {"p": [column()]}, {"p": [column("deprecated: true")]}),
    ("description-changed", {"p": [column("description: a")]}, {"p": [column("description: b")]}),
    *(
        ("description-changed", {"p": [ID], **part(old)}, {"p": [ID], **part(new)})
        for part in (
            lambda text: {"top": f"description: {{purpose: {text}}}"},
            lambda text: {"top": f"description: {{purpose: same, limitations: {text}}}"},
            lambda text: {"quality": holds("id > 3")[:-1] + f", description: {text}}}"},
        )
        for old, new in (("a", "b"),)
    ),
    ("description-changed", {"p": [in_items("a")]}, {"p": [in_items("b")]}),
    *(
        ("information-changed", {"p": [ID], "top": old}, {"p": [ID], "top": new})
        for old, new in (
            ("", "team: {name: shop}"),
            ("team: {name: shop}", "team: {name: other}"),
            ("domain: a", "domain: b"),
            ("slaDefaultElement: orders.id", ""),
            ("tags: [a]", "tags: [a, b]"),
            ("customProperties: [{property: cost, value: 1}]", "customProperties: [{property: cost, value: 2}]"),
        )
    ),
    *(
        ("information-changed", {"p": [ID], "object": old}, {"p": [ID], "object": new})
        for old, new in (("physicalName: a", "physicalName: b"), ("", "businessName: a"))
    ),
    *(
        ("information-changed", {"p": [column(old)]}, {"p": [column(new)]})
        for old, new in (
            ("classification: public", "classification: secret"),
            ("physicalName: a", "physicalName: b"),
            ("", "customProperties: [{property: owner, value: a}]"),
            ("", "logicalTypeOptions: {format: i64}"),
        )
    ),
    ("information-changed", {"p": [column(of="string")]}, {"p": [column("physicalType: varchar(9)", of="string")]}),
    (
        "information-changed",
        {"p": [column("quality: [{metric: nullValues, mustBe: 0}]")]},
        {"p": [column("quality: [{metric: nullValues, mustBe: 0, dimension: completeness}]")]},
    ),
    ("deprecated-no-more", {"p": [column("deprecated: true")]}, {"p": [column()]}),
    ("deprecated", {"p": [ID]}, {"p": [ID], "status": "deprecated"}),
    ("deprecated", {"p": [ID]}, {"p": [ID], "status": "retired"}),
    ("deprecated", {"p": [ID]}, {"p": [ID], "object": "deprecated: true"}),
    ("deprecated-no-more", {"p": [ID], "object": "deprecated: true"}, {"p": [ID]}),
    ("status-changed", {"p": [ID], "status": "draft"}, {"p": [ID]}),
    ("promise-added", {"p": [ID]}, {"p": [ID], "top": promised(4, "h")}),
    ("promise-weaker", {"p": [ID], "top": promised(4, "h")}, {"p": [ID], "top": promised(5, "h")}),
    ("promise-stricter", {"p": [ID], "top": promised(15, "min")}, {"p": [ID], "top": promised(300, "s")}),
    (
        "promise-weaker",
        {"p": [ID], "top": promised(2, "y", "retention")},
        {"p": [ID], "top": promised(9, "mo", "retention")},
    ),
    ("promise-changed", {"p": [ID], "top": promised(4, "h")}, {"p": [ID], "top": promised(4, "h, scheduler: cron")}),
    *(
        (kind, {"p": [ID], "top": promised(old, unit, of)}, {"p": [ID], "top": promised(new, other, of)})
        for kind, of, old, unit, new, other in (
            ("promise-stricter", "availability", 99, "percent", 99.9, "percent"),
            ("promise-weaker", "availability", "'99.9%'", "''", "'99%'", "''"),
            ("promise-changed", "availability", 99, "percent", 0.99, "share"),
            ("promise-changed", "throughput", 99, "rows", 99, "batches"),
            ("promise-stricter", "availability", "99.99999999999999998", "percent", "99.99999999999999999", "percent"),
            ("promise-weaker", "availability", "'99.99999999999999999%'", "''", "'99.99999999999999998%'", "''"),
            ("promise-stricter", "errorRate", 2, "percent", 1, "percent"),
            ("promise-stricter", "throughput", 100, "rows", 200, "rows"),
            ("promise-stricter", "endOfSupport", "2030-01-01", "''", "2031-01-01", "''"),
            ("promise-weaker", "generalAvailability", "2030-01-01", "''", "2031-01-01T00:00:00Z", "''"),
            ("promise-changed", "timeOfAvailability", "09:00-17:00", "''", "09:00-18:00", "''"),
        )
    ),
    ("promise-removed", {"p": [ID], "top": promised(4, "h")}, {"p": [ID]}),
]
UNSEEN: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"p": [options("maximum: 2024-01-01", "date")]}, {"p": [options("maximum: 2024-02-01", "date")]}),
    ({"p": [options("maxItems: 5", f"array, {ITEMS}")]}, {"p": [options("maxItems: 6", f"array, {ITEMS}")]}),
    ({"p": [options("exclusiveMinimum: 2024-01-01", "date")]}, {"p": [options("minimum: 2024-01-01", "date")]}),
    ({"p": [options("multipleOf: 10")]}, {"p": [options("multipleOf: 5")]}),
    ({"p": [among("a")]}, {"p": [among("a, b")]}),
]
"""Rules of records that allow more, which a plan does not see: it compares numbers alone."""

SAME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"p": [nulls("mustBeLessThan: 5")]}, {"p": [nulls("mustBeLessOrEqualTo: 4")]}),
    ({"p": [nulls("mustBe: 0")]}, {"p": [nulls("mustBeLessThan: 0.5")]}),
    ({"p": [nulls("mustBeBetween: [0, 3]")]}, {"p": [nulls("mustBeLessThan: 3.5")]}),
    ({"p": [ID], "quality": rows("mustBeLessThan: 9")}, {"p": [ID], "quality": rows("mustBeLessOrEqualTo: 8")}),
    ({"p": [ID], "quality": rows("mustBeGreaterThan: 0")}, {"p": [ID], "quality": rows("mustNotBe: 0")}),
    ({"p": [options("exclusiveMinimum: 4")]}, {"p": [options("minimum: 5")]}),
    ({"p": [options("exclusiveMinimum: 2024-01-01", "date")]}, {"p": [options("minimum: 2024-01-02", "date")]}),
    ({"p": [money("exclusiveMinimum: 0")]}, {"p": [money("minimum: 0.01")]}),
    ({"p": [money("exclusiveMaximum: 9.999")]}, {"p": [money("maximum: 9.99")]}),
    ({"p": [money("minimum: -99999999.99, maximum: 5")]}, {"p": [money("maximum: 5")]}),
    *(
        ({"p": [options(text, of)]}, {"p": [column(of=of)]})
        for text, of in (
            ("minLength: 0", "string"),
            ("minItems: 0", f"array, {ITEMS}"),
            ("minimum: -9223372036854775808", "integer"),
            ("maximum: 2147483647", "integer, physicalType: int"),
            ("exclusiveMinimum: -2147483649", "integer, physicalType: int"),
            ("pattern: '[\\s\\S]*'", "string"),
            ("pattern: '(?s:.*)'", "string"),
        )
    ),
]
"""Rules of tables that allow the same rows."""

OF_TABLES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("key-added", {"p": [ID]}, {"p": [KEY]}),
    ("key-changed", {"p": [KEY]}, {"p": [ID]}),
    ("key-changed", {"p": [KEY, DAY]}, {"p": [ID, OTHER_KEY]}),
    (
        "key-moved",
        {"p": [KEY, OTHER_KEY]},
        {"p": [part[:-1] + f", primaryKeyPosition: {at}}}" for part, at in ((KEY, 2), (OTHER_KEY, 1))]},
    ),
    (
        "rule-stricter",
        {"p": [ID], "quality": rows("mustBeLessThan: 9")},
        {"p": [ID], "quality": rows("mustBeLessThan: 8")},
    ),
    ("rule-weaker", {"p": [nulls("mustBe: 0")]}, {"p": [nulls("mustBeLessThan: 5, unit: percent")]}),
    ("rule-stricter", {"p": [nulls("mustBeLessThan: 5")]}, {"p": [nulls("mustBeLessThan: 4")]}),
    ("rule-changed", {"p": [nulls("mustBeLessThan: 5")]}, {"p": [nulls("mustBeLessThan: 5, unit: percent")]}),
    ("rule-stricter", {"p": [nulls("mustBeLessThan: 5")]}, {"p": [nulls("mustBeBetween: [0, 3]")]}),
    ("rule-weaker", {"p": [nulls("mustBe: 7")]}, {"p": [nulls("mustBeLessThan: 8")]}),
    ("rule-changed", {"p": [nulls("mustBe: 7")]}, {"p": [nulls("mustBe: 8")]}),
    (
        "rule-weaker",
        {"p": [nulls("mustBeLessThan: 5, unit: percent")]},
        {"p": [nulls("mustBeLessOrEqualTo: 5, unit: percent")]},
    ),
    ("rule-stricter", {"p": [mean("min_value: 3")]}, {"p": [mean("min_value: 9")]}),
    ("rule-stricter", {"p": [mean("min_value: 3")]}, {"p": [mean("min_value: 3, strict_min: true")]}),
    ("rule-weaker", {"p": [mean("min_value: 3, max_value: 5")]}, {"p": [mean("min_value: 3")]}),
    ("rule-weaker", {"p": [mean("max_value: 5")]}, {"p": [mean("max_value: 6")]}),
    ("rule-changed", {"p": [mean("min_value: 3, max_value: 5")]}, {"p": [mean("min_value: 4, max_value: 6")]}),
    ("rule-stricter", {"p": [distinct("be_in", "a, b")]}, {"p": [distinct("be_in", "a")]}),
    ("rule-weaker", {"p": [distinct("contain", "a, b")]}, {"p": [distinct("contain", "a")]}),
    ("rule-changed", {"p": [distinct("equal", "a, b")]}, {"p": [distinct("equal", "a")]}),
    ("direction-changed", {"p": [ID]}, {"p": [ID], "custom": JSON}),
    *(("rule-weaker", old, new) for old, new in UNSEEN),
]
OF_RECORDS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("format-changed", {"p": [ID], "custom": JSON}, {"p": [ID], "custom": CSV}),
    (
        "format-changed",
        {"p": [ID], "custom": JSON},
        {"p": [ID], "custom": f"{JSON}, {{property: timestamp, value: epoch_s}}"},
    ),
    (
        "extra-fields-refused",
        {"p": [ID], "custom": JSON},
        {"p": [ID], "custom": CLOSED},
    ),
    (
        "extra-fields-kept",
        {"p": [ID], "custom": CLOSED},
        {"p": [ID], "custom": JSON},
    ),
    ("field-removed-refused", {"p": [ID, column()], "custom": CLOSED}, {"p": [ID], "custom": CLOSED}),
    (
        "field-removed-refused",
        {"p": [column(of=f"{A_B}{INNER}")], "custom": CLOSED},
        {"p": [column(of=f"{A}{INNER}")], "custom": CLOSED},
    ),
    (
        "rule-reworded",
        {"p": [options("exclusiveMinimum: 4")], "custom": JSON},
        {"p": [options("minimum: 5")], "custom": JSON},
    ),
    *(
        (kind, {"p": [one], "custom": JSON}, {"p": [other], "custom": JSON})
        for kind, one, other in (
            ("rule-reworded", column(of="string"), options("minLength: 0", "string")),
            ("rule-removed", options("minLength: 0", "string"), column(of="string")),
            ("rule-reworded", money("exclusiveMinimum: 0"), money("minimum: 0.01")),
        )
    ),
    ("direction-changed", {"p": [ID], "custom": JSON}, {"p": [ID]}),
    *(("rule-weaker-unseen", {**old, "custom": JSON}, {**new, "custom": JSON}) for old, new in UNSEEN),
]
