"""What an expression reads and calls, and which are refused."""

from __future__ import annotations

from time import process_time

import pytest

from tidemill import Count, CountIf, First, Sum
from tidemill.core.declare.aggregate_columns import columns_read
from tidemill.core.declare.aggregates import Aggregate, Custom
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.expressions import columns_of, compared, parsed
from tidemill.core.sql.functions import AGGREGATE_FUNCTIONS, COLUMN_HINT, REFUSED_FUNCTIONS, ROW_FUNCTIONS, refusal


@pytest.mark.parametrize(
    ("expression", "columns"),
    [
        ("status < 400", {"status"}),
        ("split(path, '[?]')[0]", {"path"}),
        ("transform(xs, x -> x + y)", {"xs", "y"}),
        ("transform(xs, X -> x + y.x)", {"xs", "y"}),
        ("transform(xs, x -> transform(x.ys, y -> y + x.z + z))", {"xs", "z"}),
        ("aggregate(xs, 0, (a, b) -> a + b + k)", {"xs", "k"}),
        ("aggregate(xs, 0, (a, b) -> a + b, a -> a * b)", {"xs", "b"}),
        ("exists(split(x, ','), p -> p = 'a')", {"x"}),
        ("CAST(a AS BIGINT) + date '2020-01-01'", {"a"}),
        ("cast(a as struct<x: int, y: array<string>>).x", {"a"}),
        ("`odd name` + user.name", {"odd name", "user"}),
        ("`a.b`.c + `x``y`", {"a.b", "x`y"}),
        ("m['k'].x + xs[i].y.z + a.b.c.d.e.f", {"m", "xs", "i", "a"}),
        ("ts + interval 1 day - interval '1-2' year to month", {"ts"}),
        ("CASE WHEN a THEN b ELSE c END", {"a", "b", "c"}),
        ("1e5 + x + 1L + 2S + 1.5BD + 2D", {"x"}),
        ("name = 'it''s' OR name = \"a column\" OR name = r'\\'", {"name"}),
        ("a IS NOT DISTINCT FROM b AND c <=> d", {"a", "b", "c", "d"}),
        ("struct(a, b AS value).value", {"a", "b"}),
        ("extract(hour from ts) + year(day)", {"ts", "day"}),
        ("timestampadd(day, days, ts) > dateadd(ts, 1)", {"days", "ts"}),
        ("a not in (1, b) and c between d and e", {"a", "b", "c", "d", "e"}),
        ("a like 'x' escape '!' or b rlike c or d like any ('x', e)", {"a", "b", "c", "d", "e"}),
        ("hour", {"hour"}),
        ("year > 3 AND end IS NULL", {"year", "end"}),
        ("order + `from` + `Größe` + date + set + begin", {"order", "from", "Größe", "date", "set", "begin"}),
        ("user = 'now' and `current_date` > 1", {"user", "current_date"}),
        ("trim(both 'x' from a) || substring(b from 2) || position('x' in c)", {"a", "b", "c"}),
        ("mask(x, upperChar => 'Q')", {"x"}),
        ("if(a, b, left(c, 2))", {"a", "b", "c"}),
    ],
)
def test_only_columns_are_columns(expression: str, columns: set[str]) -> None:
    assert columns_of(expression) == columns


@pytest.mark.parametrize(
    "call",
    [
        *("now()", "current_timestamp", "rand(7)", "uuid()", "shuffle(xs)", "randstr(5)", "uniform(1, 2)"),
        *("timestamp'now'", "date 'tomorrow'", "timestamp_ntz 'Today UTC'", "cast('now' as timestamp)"),
        *("to_timestamp('now')", "date('yesterday')", "cast('no' 'w' as date)", "cast(concat('n', 'ow') as date)"),
        *("cast(r'now' as timestamp)", "date_trunc('day', 'now')", "ts > 'today'", "ts between 'now' and x"),
        *("unix_timestamp()", "current_timestamp()", "localtimestamp", "input_file_name()", "`uuid`()", "UUID()"),
    ],
)
def test_what_differs_between_attempts_is_refused(call: str) -> None:
    with pytest.raises(DeclarationError, match="gives another answer each time"):
        columns_of(f"{call} > x")


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("reflect('java.lang.System', 'nanoTime')", "`reflect` calls code that nobody can compute again"),
        ("java_method('a', 'b')", "`java_method` calls code"),
        ("try_reflect('a', 'b')", "`try_reflect` calls code"),
        ("current_user() = x", "`current_user` depends on the machine or on who asks"),
        ("session_user", "`session_user` depends on the machine"),
        ("'${env:HOME}' = x", "replaces `\\$\\{...\\}` by settings of the machine"),
        ("row_number()", "`row_number` depends on other rows"),
        ("sum(x) over (partition by y)", "a window function looks beyond the row"),
        ("x in (select 1)", "a subquery looks beyond the row"),
        ("exists(select 1)", "a subquery looks beyond the row"),
        ("explode(xs)", "`explode` makes several rows of one"),
        ("sum(x)", "`sum` is about a group of rows, and here is one row"),
        ("raise_error('x')", "fails the whole batch on purpose.*\n.*a rule in the contract"),
        ("uper(x)", "`uper` is not among the functions that are allowed.*\n.*did you mean `upper`"),
        ("spark_catalog.default.f(x)", "a function is called by its name alone"),
        ("builtin.rand()", "a function is called by its name alone"),
        ("struct(*)", "`\\*` stands for all columns"),
        ("x.*", "`\\*` stands for all columns"),
        ("x AS y", "not an SQL expression"),
        ("distinct x", "not an SQL expression"),
        ("abs(all)", "`all` is a word of SQL here.*\n.*backticks"),
        ("abs(as)", "`as` is a word of SQL here"),
        ("from > 1", "not an SQL expression.*\n.*backticks"),
        (":x > 1", "a parameter has no value"),
        ("x, y", "not an SQL expression"),
        ("x; y", "`;` ends a statement"),
        ("x -- y", "a comment would hide"),
        ("(x", "a bracket without its partner"),
        ("x) or (y", "a bracket without its partner"),
        ("x = 'a", "a quote without its partner"),
        ("", "expected one SQL expression"),
        ("(" * 200 + "x" + ")" * 200, "nested at most 30 deep"),
        ("case when " * 200 + "x" + " then 1 end" * 200, "nested at most 30 deep"),
        ("not " * 3000 + "x", "nested at most 30 deep"),
        ("x = '\ud800'", "half a character"),
        ("interval + 1 > 0", "an interval without a unit.*\n.*backticks"),
        ("interval - x", "an interval without a unit"),
        ("interval + 1e3", "an interval without a unit"),
        ("interval * 2", "an interval without a unit"),
        ("interval - '1 day'", "`interval` is a word of SQL here.*\n.*backticks"),
        (" + ".join(["x"] * 9000), "at most 20000 characters"),
    ],
)
def test_what_is_no_expression_of_one_row_is_refused(expression: str, words: str) -> None:
    with pytest.raises(DeclarationError, match=f"(?s){words}"):
        columns_of(expression)


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        *(("from > 1", "`from`"), ("a + from", "`from`"), ("abs(from)", "`from`"), ("from.x > 1", "`from`")),
        *(
            ("all = 1", "`all`"),
            ("From > 1 AND a IN (table, Union)", "`From`, `Union`"),
            ("a = 1 or on is null", "`on`"),
        ),
        *(
            ("interval - '1 day' > 2", "`interval`"),
            ("case > 1", "`case`"),
            ("case when select then 1 end", "`select`"),
        ),
    ],
)
def test_backticks_are_the_fix_for_words_of_sql_that_are_meant_as_columns(expression: str, named: str) -> None:
    with pytest.raises(DeclarationError, match="not an SQL expression") as refused:
        parsed(expression)
    assert refused.value.fix == f"put the names of columns that are words of SQL in backticks: {named}"
    assert "Token_" not in str(refused.value)
    assert "TokenType" not in str(refused.value)


@pytest.mark.parametrize(
    "expression",
    [
        *("a +", "a b", "a from b", "x AS y", "x, y", "a = = b", "case when a then 1 else end", "`from` b", "'from' b"),
        *("a.from b", "f(distinct x) +", "'from", "not a +", "a and", "extract(hour from) b", "1 2", "order b"),
    ],
)
def test_backticks_are_no_fix_for_other_faults(expression: str) -> None:
    with pytest.raises(DeclarationError, match="not an SQL expression") as refused:
        parsed(expression)
    assert refused.value.fix == ""


@pytest.mark.parametrize(
    "text", ["interval -1 day", "interval - '1' day", "interval '1 day 2 hours'", "interval '1 02:03' day to minute"]
)
def test_a_constant_interval_reads_no_column(text: str) -> None:
    assert columns_of(f"ts + {text}") == {"ts"}
    assert columns_of("`interval` - 1 > interval") == {"interval"}


@pytest.mark.parametrize(
    ("text", "fine"),
    [
        ("collect_list(x)", False),
        ("array_agg(x)[0]", False),
        ("array_join(collect_set(x), ',')", False),
        ("flatten(collect_list(x))", False),
        ("array_distinct(collect_list(x))", False),
        ("array_sort(collect_list(x), (a, b) -> 0)", False),
        ("array_contains(array(1), collect_list(x))", False),
        ("concat(array_sort(collect_list(x)), collect_list(x))", False),
        ("transform(collect_list(x), (v, i) -> i * v)", False),
        ("array_sort(collect_list(x))", True),
        ("array_join(sort_array(COLLECT_LIST(x), false), ',')", True),
        ("array_sort(flatten(collect_list(x) FILTER (WHERE x > 0)))", True),
        ("size(array_distinct((collect_list(x))))", True),
        ("array_max(collect_set(x)) + count(x)", True),
    ],
)
def test_values_are_collected_only_where_their_order_is_lost(text: str, fine: bool) -> None:
    if fine:
        assert parsed(text, aggregates=True).columns == {"x"}
        return
    with pytest.raises(DeclarationError, match=r"in the order in which rows are added.*\n.*aggregate Collect"):
        parsed(text, aggregates=True)


def test_a_long_chain_is_read_to_its_end_in_a_time_that_grows_with_its_length() -> None:
    began = process_time()
    assert columns_of(" + ".join(f"x{i}" for i in range(2000))) == {f"x{i}" for i in range(2000)}
    assert process_time() - began < 5


def test_a_function_is_allowed_or_refused_and_never_both() -> None:
    assert not (ROW_FUNCTIONS | AGGREGATE_FUNCTIONS) & REFUSED_FUNCTIONS.keys()
    assert not ROW_FUNCTIONS & AGGREGATE_FUNCTIONS


def test_a_hint_is_about_the_function_that_is_refused() -> None:
    assert refusal("kll_merge_agg_double")[1] == "use the aggregate Quantiles"
    assert refusal("uuid")[1] == COLUMN_HINT
    assert refusal("shuffle")[1] == ""


def test_what_may_fail_a_batch_is_named() -> None:
    assert set(parsed("cast(a as int) / 2 > to_date(b)").may_fail) == {"/", "to_date", "cast"}
    assert set(parsed("a::int > 1").may_fail) == {"::", "cast"}
    assert parsed("try_cast(a as int) > 1L and b > date '2020-01-01' and c = '/%cast('").may_fail == ()


def test_a_comparison_of_two_columns_is_told_apart() -> None:
    assert compared("`a b` <= Year") == ("a b", "<=", "Year")
    assert compared("a == b") == ("a", "=", "b")
    assert [compared(text) for text in ("a <> b", "a < 1", "a < b + 1", "a.b < c")] == [None] * 4


@pytest.mark.parametrize(
    ("aggregate", "columns"),
    [
        (Count(), set()),
        (Sum("hour"), {"hour"}),
        (CountIf("status >= 500"), {"status"}),
        (First("end"), {"end"}),
        (Custom(partial={"n": "count(DISTINCT x)"}, merge={"n": "sum({n})"}, finish="{n} + 1"), {"x"}),
    ],
)
def test_an_aggregate_says_what_it_reads(aggregate: Aggregate, columns: set[str]) -> None:
    assert columns_read(aggregate) == columns


@pytest.mark.parametrize(
    ("aggregate", "words"),
    [
        (Count("DISTINCT x"), "not an SQL expression"),
        (Sum("sum(x)"), "`sum` is about a group of rows"),
        (Custom(partial={"n": "first(x)"}, merge={"n": "sum({n})"}, finish="{n}"), "depends on the order"),
        (Custom(partial={"n": "count(x)"}, merge={"n": "sum(n) + max(x)"}, finish="{n}"), "reads `x`, but merge"),
        (Custom(partial={"n": "count(x)"}, merge={"n": "sum({m})"}, finish="{n}"), "no state column `m`"),
        (Custom(partial={"n": "count(x)"}, merge={"n": "sum({n})"}, finish="sum({n})"), "`sum` is about a group"),
        (Custom(partial={"n": "count(x)"}, merge={"n": "rand() * sum({n})"}, finish="{n}"), "`rand` gives another"),
    ],
)
def test_an_aggregate_that_cannot_be_merged_again_is_refused(aggregate: Aggregate, words: str) -> None:
    with pytest.raises(DeclarationError, match=words):
        columns_read(aggregate)
