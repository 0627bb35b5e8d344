"""Which columns an expression reads."""

import pytest

from tidemill.core.errors import DeclarationError
from tidemill.core.expressions import columns_of


@pytest.mark.parametrize(
    ("expression", "columns"),
    [
        ("status < 400", {"status"}),
        ("split(path, '[?]')[0]", {"path"}),
        ("transform(xs, x -> x + y)", {"xs", "y"}),
        ("aggregate(xs, 0, (a, b) -> a + b + k)", {"xs", "k"}),
        ("CAST(a AS BIGINT) + date '2020-01-01'", {"a"}),
        ("`odd name` + user.name", {"odd name", "user"}),
        ("ts + interval 1 day", {"ts"}),
        ("CASE WHEN a THEN b ELSE c END", {"a", "b", "c"}),
        ("1e5 + x", {"x"}),
        ("count(*)", set()),
        ("name = 'it''s' OR name = \"a column\"", {"name"}),
        ("min(struct(_time, _offset, v AS value))", {"_time", "_offset", "v"}),
        ("a IS NOT DISTINCT FROM b", {"a", "b"}),
    ],
)
def test_only_columns_are_columns(expression: str, columns: set[str]) -> None:
    assert columns_of(expression) == columns


@pytest.mark.parametrize("call", ["now()", "current_timestamp", "rand(7)", "uuid()", "shuffle(xs)"])
def test_what_differs_between_attempts_is_refused(call: str) -> None:
    with pytest.raises(DeclarationError, match="another answer each time"):
        columns_of(f"{call} > x")


def test_a_word_inside_a_text_is_no_function() -> None:
    assert columns_of("name = 'now'") == {"name"}
