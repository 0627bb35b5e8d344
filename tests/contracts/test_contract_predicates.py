"""Many rules in one number: which bits, and what null, NaN and odd texts mean to Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tidemill.contracts.likes import stray_sign
from tidemill.contracts.lint import lint
from tidemill.core.contract.contract import Contract, RowRule, Severity
from tidemill.core.contract.exact_sums import exact
from tidemill.core.contract.row_rules import mask_expression, reasons_expression, rejecting_bits, rules_of
from tidemill.core.contract.schema import DataType, Scalar
from tidemill.core.errors import ContractError
from tidemill.core.sql.dialect import tree_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Load = Callable[..., Contract]


def a_rule(predicate: str = "true", name: str = "r", severity: Severity = Severity.ERROR) -> RowRule:
    return RowRule(name=name, predicate=predicate, severity=severity)


def masks(
    spark: SparkSession,
    columns: str,
    rows: list[tuple[Any, ...]],
    rules: tuple[RowRule, ...],
    types: dict[str, DataType] | None = None,
) -> list[int]:
    frame = spark.createDataFrame([(i, *row) for i, row in enumerate(rows)], f"i int, {columns}")
    found = frame.selectExpr("i", f"{mask_expression(rules, types)} AS mask")
    assert dict(found.dtypes)["mask"] == "bigint"
    return [row["mask"] for row in found.orderBy("i").collect()]


def test_no_rule_is_an_empty_mask() -> None:
    assert mask_expression(()) == "0L"
    assert rules_of(0, ()) == ()
    assert rejecting_bits(()) == 0


def test_a_warning_is_no_reason_for_which_a_record_is_rejected() -> None:
    rules = (a_rule(name="negative"), a_rule(name="large", severity=Severity.WARNING))
    found = reasons_expression(rules, error="_error", mask="m")
    assert found == "array_compact(array(_error, CASE WHEN m & 1L != 0 THEN 'negative' END))"


def test_the_bits_of_a_mask_name_the_broken_rules() -> None:
    rules = tuple(a_rule(name=f"r{i}") for i in range(63))
    assert [r.name for r in rules_of(0b101 | 1 << 62, rules)] == ["r0", "r2", "r62"]


def test_only_errors_reject_a_row() -> None:
    rules = (a_rule(), a_rule(severity=Severity.WARNING), a_rule())
    assert rejecting_bits(rules) == 0b101


def test_more_than_63_rules_are_refused() -> None:
    with pytest.raises(ContractError, match="64 row rules, but one mask holds at most 63"):
        mask_expression([a_rule()] * 64)


@pytest.mark.spark
def test_a_rule_is_broken_when_false_and_not_when_null(spark: SparkSession) -> None:
    rules = (a_rule("a > 0"), a_rule("b = 'x'"), a_rule("a > 0 OR b = 'x'"))
    rows = [(1, "x"), (0, "x"), (None, "x"), (0, None), (None, None), (0, "y")]
    assert masks(spark, "a int, b string", rows, rules) == [0, 0b001, 0, 0b001, 0, 0b111]


@pytest.mark.spark
def test_the_highest_bit_is_a_positive_number(spark: SparkSession) -> None:
    rules = (*[a_rule("a = a")] * 62, a_rule("a < 0"))
    assert masks(spark, "a int", [(1,), (-1,)], rules) == [1 << 62, 0]


@pytest.mark.spark
def test_a_mask_can_stand_in_a_larger_expression(spark: SparkSession) -> None:
    rules = (a_rule("a > 1", severity=Severity.WARNING), a_rule("a > 0"))
    frame = spark.createDataFrame([(1,), (0,)], "a int")
    found = frame.filter(f"{mask_expression(rules)} & {rejecting_bits(rules)} = 0").collect()
    assert [row["a"] for row in found] == [1]


@pytest.mark.spark
def test_options_mean_to_spark_what_they_say(spark: SparkSession, an_input: Load) -> None:
    contract = an_input(
        r"""
        - name: l
          logicalType: integer
          logicalTypeOptions: {minimum: -9223372036854775807, maximum: 9007199254740992}
        - {name: d, logicalType: number, logicalTypeOptions: {minimum: 0.1}}
        - {name: e, logicalType: number, physicalType: "decimal(20,18)", logicalTypeOptions: {exclusiveMinimum: 0.1}}
        - {name: s, logicalType: string, logicalTypeOptions: {maxLength: 2}}
        - {name: p, logicalType: string, logicalTypeOptions: {pattern: '^e[0-9]+\\?$|it''s'}}
        - {name: t, logicalType: timestamp, logicalTypeOptions: {minimum: 2024-01-31T01:00:00+01:00}}
        - name: a
          logicalType: array
          items: {logicalType: integer}
          logicalTypeOptions: {minItems: 1, uniqueItems: true}
        - {name: m, logicalType: integer, logicalTypeOptions: {multipleOf: 3}}
        - {name: o, logicalType: date, enum: [{value: 2024-01-31}]}
        """
    )
    good_time, bad_time = (dt.datetime(2024, 1, 31, tzinfo=dt.UTC) - dt.timedelta(seconds=n) for n in (0, 1))
    columns = "l bigint, d double, e decimal(20,18), s string, p string, t timestamp, a array<bigint>, m bigint, o date"
    good = (2**53, 0.1, Decimal("0.100000000000000001"), "äö", "e1\\", good_time, [1, 2], -3, dt.date(2024, 1, 31))
    other = (-(2**63) + 1, float("inf"), Decimal(1), "", "it's", good_time, [None, 1], 0, dt.date(2024, 1, 31))
    bad = (2**53 + 1, float("nan"), Decimal("0.1"), "äöü", "e1\\\n", bad_time, [], 1, dt.date(2024, 2, 1))
    worse = (-(2**63), 0.09, Decimal(0), "abc", "xe1\\", bad_time, [2, 2], 2, dt.date(1, 1, 1))
    nulls: tuple[Any, ...] = (None,) * 9
    # The predicate of a pattern says what the decoder matches; here Spark does.
    rules = [replace(rule, pattern=None) for rule in contract.row_rules]
    found = masks(spark, columns, [good, other, bad, worse, nulls], rules)
    broken = [{rule.name for rule in rules_of(mask, contract.row_rules)} for mask in found]
    common = {"d.minimum", "e.exclusiveMinimum", "s.maxLength", "p.pattern", "t.minimum", "m.multipleOf", "o.enum"}
    assert broken == [
        set(),
        set(),
        common | {"l.maximum", "a.minItems"},
        common | {"l.minimum", "a.uniqueItems"},
        set(),
    ]


@pytest.mark.spark
def test_quality_rules_mean_to_spark_what_they_say(spark: SparkSession, an_input: Load) -> None:
    contract = an_input(
        """
        - name: o`k
          logicalType: string
          quality:
            - {name: there, metric: nullValues, mustBe: 0}
            - {name: told, metric: missingValues, arguments: {missingValues: [null, '', N/A]}, mustBe: 0}
            - {name: known, metric: invalidValues, arguments: {validValues: [a, "it's", 'N/A', '']}, mustBe: 0}
            - {name: own, type: custom, engine: tidemill, implementation: "`o``k` <> 'a'"}
        """
    )
    found = masks(spark, "`o``k` string", [("it's",), ("a",), ("N/A",), ("b",), (None,)], contract.row_rules)
    broken = [[rule.name for rule in rules_of(mask, contract.row_rules)] for mask in found]
    assert broken == [[], ["own"], ["told"], ["known"], ["there", "told"]]


@pytest.mark.parametrize("kind", ["an_input", "an_output"])
@pytest.mark.parametrize(
    ("predicate", "name"),
    [
        ("x RLIKE '(.*a){25}'", "rlike"),
        ("x REGEXP 'a'", "regexp"),
        ("NOT (m > 1 AND regexp_like(x, 'a'))", "regexp_like"),
        ("regexp_replace(x, 'a+', '') = ''", "regexp_replace"),
        ("regexp_count(x, 'a') > 1", "regexp_count"),
        ("size(split(x, '(a+)+')) > 1", "split"),
        ("size(split(x, x)) > 1", "split"),
        ("x LIKE '%a%b'", "like"),
        ("x NOT LIKE 'a%b%c' OR m > 1", "like"),
        ("x LIKE '%%a'", "like"),
        ("x ILIKE '%a%a%a%a%a%'", "ilike"),
        ("x LIKE x", "like"),
        ("x LIKE concat('a', '%')", "like"),
        ("x LIKE ANY ('a%', '%b%c%')", "like"),
        ("x LIKE ALL ('a%', x)", "like"),
        ("x LIKE '%a!%%b' ESCAPE '!'", "like"),
        ("x LIKE '%a/%%b' ESCAPE '!'", "like"),
        (r"x LIKE '%a\\u0025b'", "like"),
        (r"x LIKE '%a\\\\\\\\%b'", "like"),
        ("like(x, '%a%b')", "like"),
        ("NOT ilike(x, x, '/')", "ilike"),
    ],
)
def test_what_is_matched_by_trying_is_refused(file: Any, the_error: Any, kind: str, predicate: str, name: str) -> None:
    columns = "- {name: x, logicalType: string}\n- {name: m, logicalType: integer}"
    quality = f'- {{type: custom, engine: tidemill, implementation: "{predicate}"}} # HERE'
    error = the_error(getattr(file, kind)(columns, quality=quality), "HERE")
    assert f"`{name}` matches by trying" in error.message
    assert "pattern" in error.fix


@pytest.mark.parametrize(
    "predicate",
    [
        *(
            "x LIKE '%a%'",
            "x LIKE 'a%b'",
            "x NOT LIKE 'a%b%%'",
            "x LIKE '_a_'",
            "x ILIKE ANY ('a%', '%b')",
            "like(x, '%b')",
        ),
        *("x LIKE '%a!%b' ESCAPE '!'", r"x LIKE '\\%a\\%b%'", "x LIKE ('a%')", "like(x, '%a/%b', '/')", "x LIKE '%'"),
    ],
)
def test_a_like_of_linear_time_is_taken(an_output: Any, predicate: str) -> None:
    quality = f'- {{type: custom, engine: tidemill, implementation: "{predicate}"}}'
    assert len(an_output("- {name: x, logicalType: string}", quality=quality).table_rules) == 1


@pytest.mark.parametrize(
    ("predicate", "name"),
    [
        ("repeat(repeat(x, 100000), 100000) = ''", "repeat"),
        ("size(transform(sequence(1, 100000), y -> sequence(1, 100000))) > 1", "sequence"),
        ("size(array_repeat(rpad(x, 10000), 10000)) > 1", "rpad"),
        ("format_string('%999999999d', m) = ''", "format_string"),
        ("printf(x, m) = ''", "printf"),
        ("format_number(m, 100000000) = ''", "format_number"),
        ("format_number(m, m) = ''", "format_number"),
        ("replace(x, 'a', x) = ''", "replace"),
        ("size(array_insert(split(x, ','), m, 'a')) > 1", "array_insert"),
    ],
)
def test_what_could_make_a_value_that_no_machine_holds_is_refused(
    file: Any, the_error: Any, predicate: str, name: str
) -> None:
    columns = "- {name: x, logicalType: string}\n- {name: m, logicalType: integer, physicalType: int}"
    quality = f'- {{type: custom, engine: tidemill, implementation: "{predicate}"}} # HERE'
    error = the_error(file.an_input(columns, quality=quality), "HERE")
    assert f"`{name}` could make a value that no machine can hold" in error.message


def test_sizes_of_calls_beside_each_other_are_not_multiplied(an_input: Any) -> None:
    parts = [f"rpad(x, 50000) = '{number}'" for number in range(20)]
    parts += ["format_string('%05d', m) = '1'", "format_number(m, '#,##0') = '1'", "replace(x, 'a', 'bc') = 'bc'"]
    quality = f'- {{type: custom, engine: tidemill, implementation: "{" OR ".join(parts)}"}}'
    columns = "- {name: x, logicalType: string}\n- {name: m, logicalType: integer}"
    assert len(an_input(columns, quality=quality).row_rules) == 1


@pytest.mark.parametrize(
    "predicate", ["x = uuid()", "m > unix_timestamp()", "sum(m) > 1", "max_by(x, m) = 'a'", "session_window(x, m) = 1"]
)
def test_advice_about_a_rule_is_not_about_streams(file: Any, the_error: Any, predicate: str) -> None:
    columns = "- {name: x, logicalType: string}\n- {name: m, logicalType: integer}"
    quality = f'- {{type: custom, engine: tidemill, implementation: "{predicate}"}} # HERE'
    assert "compares columns of one row" in the_error(file.an_output(columns, quality=quality), "HERE").fix


def test_a_split_at_a_plain_text_is_taken(an_input: Any) -> None:
    quality = "- {type: custom, engine: tidemill, implementation: \"size(split(x, ', ')) > 1\"}"
    assert len(an_input("- {name: x, logicalType: string}", quality=quality).row_rules) == 1


STRAY = [
    (r"x LIKE 'C:\\dir%'", "stands before `d`"),
    (r"x LIKE 'abc\\'", "ends with its escape sign"),
    ("x LIKE 'a/b' ESCAPE '/'", "stands before `b`"),
    ("x LIKE 'a%b%' ESCAPE '%'", "stands before `b`"),
    ("ilike(x, 'a!b', '!')", "stands before `b`"),
]
NOT_STRAY = [r"x LIKE 'C:\\\\dir%'", r"x LIKE 'a\_b\%'", "x LIKE 'a/_b//' ESCAPE '/'", "x LIKE r'a\\_'"]


@pytest.mark.parametrize(("predicate", "told"), STRAY)
def test_a_like_that_spark_refuses_in_each_row_is_refused(file: Any, the_error: Any, predicate: str, told: str) -> None:
    quality = f"- type: custom\n  engine: tidemill\n  implementation: >-\n    {predicate}\n"
    error = the_error(file.an_input("- {name: x, logicalType: string}", quality=quality), "implementation")
    assert told in error.message
    assert "ESCAPE" in error.fix


@pytest.mark.spark
def test_spark_agrees_about_signs_that_stand_before_anything(spark: SparkSession) -> None:
    rows = spark.createDataFrame(pa.table({"x": ["C:", "a"]}))
    for predicate in NOT_STRAY:
        assert stray_sign(tree_of(predicate)) is None
        rows.selectExpr(predicate).collect()
    for predicate, _ in STRAY:
        assert stray_sign(tree_of(predicate)) is not None
        with pytest.raises(Exception, match=r"ESC|INVALID_FORMAT"):
            rows.selectExpr(predicate).collect()


SUMS = {"a": Scalar.LONG, "b": Scalar.LONG, "n": Scalar.INTEGER, "d": Scalar.DOUBLE, "t": Scalar.STRING}
LEAST, MOST = -(2**63), 2**63 - 1


@pytest.mark.parametrize(
    "predicate",
    [
        "a + b < 0",
        "a * b > 0 AND a > -5",
        "-a > 0",
        "abs(a - b) >= 0",
        "`a` + 1 BETWEEN n * 2 AND b + b",
        "a - n IN (1, 2)",
        "CASE WHEN n * n > 4 THEN true ELSE a + 1 > 0 END",
        "length(t) + a >= a AND a + d > 0",
    ],
)
def test_no_number_makes_a_compared_sum_fail(spark: SparkSession, predicate: str) -> None:
    told = exact(predicate, SUMS)
    values = [(a, b, n, 1.0, "text") for a in (LEAST, MOST, 1) for b in (LEAST, MOST) for n in (-(2**31), 2**31 - 1)]
    if "length" in predicate:
        assert told.may_fail == ("+",)
        values = [(1, 2, 3, 1.0, "text")]
    else:
        assert told.may_fail == ()
    found = masks(spark, "a bigint, b bigint, n int, d double, t string", values, (a_rule(predicate),), SUMS)
    if predicate == "a + b < 0":
        assert found == [0 if a + b < 0 else 1 for a, b, *_ in values]


@pytest.mark.parametrize(
    ("predicate", "sign"),
    [
        ("a * b * a > 0", "*"),
        ("coalesce(a + 1, b) > 0", "+"),
        ("exists(array(a), x -> x - a > 0)", "-"),
        ("date_add(DATE '2020-01-01', n * n) > DATE '2020-01-01'", "*"),
        ("greatest(abs(a), 1) > 0", "abs"),
    ],
)
def test_sums_that_can_fail_are_told(file: Any, predicate: str, sign: str) -> None:
    quality = f'- {{type: custom, engine: tidemill, name: own, implementation: "{predicate}"}}'
    columns = "- {name: a, logicalType: integer}\n- {name: b, logicalType: integer}\n"
    columns += "- {name: n, logicalType: integer, physicalType: int}"
    said = [f.message for f in lint(file.an_input(columns, quality=quality)) if f.severity != "information"]
    assert f"`{sign}` fails the whole batch where the number leaves the bits of its type" in said


def test_the_fingerprint_of_a_rule_is_about_what_the_user_wrote(an_input: Load) -> None:
    rule = '- {type: custom, engine: tidemill, name: own, implementation: "a + 1 > 0"}'
    contract = an_input("- {name: a, logicalType: integer}", quality=rule)
    assert [rule.predicate for rule in contract.row_rules] == ["a + 1 > 0"]
