"""Which functions of Spark SQL a declaration or a contract may call.

After a crash, another machine computes a batch again, maybe divided into other tasks, and must get the same rows. So a
function is allowed if its result depends on its arguments alone: not on the clock, on chance, on the machine, on other
rows or on their order. It must have no side effect either. These lists name every function of the Spark version that
Tidemill is built for (a test compares them with `SHOW FUNCTIONS`); a function that no list names is refused.
"""

from __future__ import annotations

import difflib

from tidemill.core.sql.function_groups import AGGREGATE_GROUPS, ROW_GROUPS

_REFUSED_TEXT = {
    "gives another answer each time": """
        aes_encrypt curdate current_date current_time current_timestamp input_file_block_length input_file_block_start
        input_file_name kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint
        kll_sketch_agg_double kll_sketch_agg_float kll_sketch_merge_bigint kll_sketch_merge_double
        kll_sketch_merge_float localtimestamp monotonically_increasing_id now python_worker_logs rand randn random
        randstr shuffle spark_partition_id uniform uuid
    """,
    "depends on the machine or on who asks": """
        collations current_catalog current_database current_path current_schema current_timezone current_user
        from_avro from_protobuf schema_of_avro session_user sql_keywords to_avro to_protobuf user version
    """,
    "calls code that nobody can compute again": "java_method reflect try_reflect",
    "fails the whole batch on purpose": "assert_true raise_error",
    "depends on other rows, and so on where batches are cut": """
        cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number session_window window window_time
    """,
    "makes several rows of one": """
        explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer range stack variant_explode
        variant_explode_outer
    """,
    "depends on the order in which rows are added": """
        any_value approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine first
        first_value histogram_numeric last last_value listagg max_by min_by mode percentile_approx string_agg
    """,
    "belongs to queries of another kind": """
        grouping grouping_id measure schema_of_variant_agg table_changes table_changes_by_path
    """,
}
REFUSED_FUNCTIONS = {name: reason for reason, names in _REFUSED_TEXT.items() for name in names.split()}
"""Functions that are never allowed, each with the reason."""

COLUMN_HINT = "use a column of the record: _timestamp is when the log took it, _offset is unique in its partition"
"""What to use instead of functions of the clock or of chance."""

_INSTEAD = {
    **dict.fromkeys((name for name in REFUSED_FUNCTIONS if name.startswith("kll_")), "use the aggregate Quantiles"),
    **dict.fromkeys(("aes_encrypt", "python_worker_logs", "shuffle"), ""),
    **dict.fromkeys(("first", "first_value", "any_value", "min_by"), "use the aggregate First, or min(struct(...))"),
    **dict.fromkeys(("last", "last_value", "max_by"), "use the aggregate Last, or max(struct(...))"),
    **dict.fromkeys(("approx_percentile", "percentile_approx", "histogram_numeric"), "use the aggregate Quantiles"),
    **dict.fromkeys(("approx_top_k", "approx_top_k_accumulate", "mode"), "use the aggregate HeavyHitters"),
    **dict.fromkeys(("listagg", "string_agg"), "use the aggregate Collect"),
    **dict.fromkeys(("window", "session_window", "window_time"), "use .window(...) of the stream"),
    **dict.fromkeys(("assert_true", "raise_error"), "write a rule in the contract: it rejects the record"),
    "current_timezone": "write the time zone as a text",
}

TIME_FUNCTIONS = frozenset((*ROW_GROUPS["datetime_funcs"], "date", "time", "timestamp"))
"""Functions of dates and times: they cast a text argument to a date or a time."""

ROW_FUNCTIONS = frozenset(name for names in ROW_GROUPS.values() for name in names)
"""Functions of one row: allowed wherever an expression is."""

AGGREGATE_FUNCTIONS = frozenset(name for names in AGGREGATE_GROUPS.values() for name in names)
"""Functions of a group of rows: also allowed in `partial` and `merge` of a custom aggregate."""

_FAILING_TEXT = """
    aes_decrypt conv element_at elt make_date make_timestamp make_timestamp_ltz make_timestamp_ntz parse_json parse_url
    timestamp_millis timestamp_seconds to_binary to_date to_number to_time to_timestamp to_timestamp_ltz
    to_timestamp_ntz to_unix_timestamp unbase64 unix_timestamp url_decode validate_utf8 variant_get
    xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string
"""
FAILING_FUNCTIONS = frozenset(_FAILING_TEXT.split())
"""Functions that raise an error for some values, which fails the whole batch."""

FAILING_UNLESS_WRITTEN = {
    **dict.fromkeys(("next_day", "date_format", "from_unixtime", "bit_get", "getbit", "encode", "mod", "pmod"), 1),
    **dict.fromkeys(("from_utc_timestamp", "to_utc_timestamp", "add_months"), 1),
    "split_part": 2,
}
"""Functions that raise an error for some values of the argument at this place, which counts from 0: if the argument is
written as a constant, no record can make them fail."""

CONVERSIONS = {
    **{name: name for name in ("bigint", "binary", "boolean", "date", "double", "float", "int", "smallint", "string")},
    "timestamp": "timestamp",
    "tinyint": "tinyint",
    "decimal": "decimal(10, 0)",
}
"""Functions that are casts, and the types to which they cast."""

COLLECTORS = ("collect_list", "collect_set", "array_agg")
"""Functions that collect the values of a group into an array, in the order in which rows are added."""

KEEPING_VALUES = ("flatten", "array_distinct", "array_compact", "array_remove")
"""Functions whose result array has the same values in any order of their first argument."""

WITHOUT_ORDER = ("array_sort", "sort_array", "size", "cardinality", "array_size", "array_max", "array_min")
"""Functions whose result does not depend on the order of their first argument."""

WITHOUT_BRACKETS = (
    *("current_catalog", "current_database", "current_date", "current_schema", "current_time", "current_timestamp"),
    *("current_path", "current_user", "localtimestamp", "session_user"),
)
"""Names that Spark reads as functions if no column has the name; a column of that name needs backticks."""


def refusal(name: str, *, aggregates: bool = False) -> tuple[str, str] | None:
    """Why a function must not be called, and what to do instead; None if it may be called.

    `aggregates` says whether functions of a group of rows are allowed. Case does not matter.
    """
    name = name.lower()
    if name in ROW_FUNCTIONS or (aggregates and name in AGGREGATE_FUNCTIONS):
        return None
    if name in REFUSED_FUNCTIONS:
        reason = REFUSED_FUNCTIONS[name]
        hint = COLUMN_HINT if reason == "gives another answer each time" else ""
        return f"`{name}` {reason}", _INSTEAD.get(name, hint)
    if name in AGGREGATE_FUNCTIONS:
        return f"`{name}` is about a group of rows, and here is one row", "use .aggregate(...) of a windowed stream"
    close = difflib.get_close_matches(name, ROW_FUNCTIONS | (AGGREGATE_FUNCTIONS if aggregates else frozenset()), n=1)
    return f"`{name}` is not among the functions that are allowed", f"did you mean `{close[0]}`?" if close else ""
