"""Which functions of Spark SQL a declaration or a contract may call.

After a crash, another machine computes a batch again, maybe divided into other tasks, and must get the same rows. So a
function is allowed if its result depends on its arguments alone: not on the clock, on chance, on the machine, on other
rows or on their order. It must have no side effect either. These lists name every function of the Spark version that
Tidemill is built for (a test compares them with `SHOW FUNCTIONS`); a function that no list names is refused.
"""

from __future__ import annotations

import difflib

_TIME_TEXT = """
    add_months convert_timezone date date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc
    dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear extract from_unixtime from_utc_timestamp hour
    last_day make_date make_dt_interval make_interval make_time make_timestamp make_timestamp_ltz make_timestamp_ntz
    make_ym_interval minute month monthname months_between next_day quarter second time time_bucket time_diff
    time_from_micros time_from_millis time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc
    timestamp timestamp_micros timestamp_millis timestamp_seconds timestampadd timestampdiff to_date to_time
    to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp trunc try_make_interval
    try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz try_to_date try_to_time try_to_timestamp unix_date
    unix_micros unix_millis unix_seconds unix_timestamp weekday weekofyear year
"""
_ROW_TEXT = """
    abs acos acosh aes_decrypt aggregate and array array_append array_compact array_contains array_distinct array_except
    array_insert array_intersect array_join array_max array_min array_position array_prepend array_remove array_repeat
    array_size array_sort array_union arrays_overlap arrays_zip ascii asin asinh atan atan2 atanh base64 between bigint
    bin binary bit_count bit_get bit_length bitmap_bit_position bitmap_bucket_number bitmap_count boolean bround btrim
    cardinality case cast cbrt ceil ceiling char char_length character_length chr coalesce collate collation concat
    concat_ws contains conv cos cosh cot crc32 csc decimal decode degrees div double e element_at elt encode endswith
    equal_null exists exp expm1 factorial filter find_in_set flatten float floor forall format_number format_string
    from_csv from_json from_xml get get_json_object getbit greatest hash hex hypot if ifnull ilike in initcap instr int
    is_valid_utf8 is_valid_variant is_variant_null isnan isnotnull isnull json_array_length json_object_keys lcase least
    left len length levenshtein like ln locate log log10 log1p log2 lower lpad ltrim luhn_check make_valid_utf8 map
    map_concat map_contains_key map_entries map_filter map_from_arrays map_from_entries map_keys map_values map_zip_with
    mask md5 mod named_struct nanvl negative not nullif nullifzero nvl nvl2 octet_length or overlay parse_json parse_url
    pi pmod position positive pow power printf quote radians reduce regexp regexp_count regexp_extract
    regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr repeat replace reverse right rint rlike
    round rpad rtrim schema_of_csv schema_of_json schema_of_variant schema_of_xml sec sentences sequence sha sha1 sha2
    shiftleft shiftright shiftrightunsigned sign signum sin sinh size slice smallint sort_array soundex space split
    split_part sqrt st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid startswith str_to_map string struct
    substr substring substring_index tan tanh tinyint to_binary to_char to_csv to_json to_number to_varchar
    to_variant_object to_xml transform transform_keys transform_values translate trim try_add try_aes_decrypt try_cast
    try_divide try_element_at try_mod try_multiply try_parse_json try_parse_url try_subtract try_to_binary try_to_number
    try_url_decode try_validate_utf8 try_variant_get typeof ucase unbase64 unhex upper url_decode url_encode
    validate_utf8 variant_get vector_cosine_similarity vector_inner_product vector_l2_distance vector_norm
    vector_normalize when width_bucket xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number
    xpath_short xpath_string xxhash64 zeroifnull zip_with

    approx_top_k_estimate hll_sketch_estimate hll_union kll_sketch_get_n_bigint kll_sketch_get_n_double
    kll_sketch_get_n_float kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double kll_sketch_get_quantile_float
    kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float kll_sketch_to_string_bigint
    kll_sketch_to_string_double kll_sketch_to_string_float theta_difference theta_intersection theta_sketch_estimate
    theta_union tuple_difference_double tuple_difference_integer tuple_difference_theta_double
    tuple_difference_theta_integer tuple_intersection_double tuple_intersection_integer
    tuple_intersection_theta_double tuple_intersection_theta_integer tuple_sketch_estimate_double
    tuple_sketch_estimate_integer tuple_sketch_summary_double tuple_sketch_summary_integer tuple_sketch_theta_double
    tuple_sketch_theta_integer tuple_union_double tuple_union_integer tuple_union_theta_double
    tuple_union_theta_integer
"""
_AGGREGATE_TEXT = """
    any approx_count_distinct array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg bitmap_or_agg
    bool_and bool_or collect_list collect_set corr count count_if count_min_sketch covar_pop covar_samp every
    hll_sketch_agg hll_union_agg kurtosis max mean median min percentile percentile_cont percentile_disc regr_avgx
    regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev
    stddev_pop stddev_samp sum theta_intersection_agg theta_sketch_agg theta_union_agg try_avg try_sum
    tuple_intersection_agg_double tuple_intersection_agg_integer tuple_sketch_agg_double tuple_sketch_agg_integer
    tuple_union_agg_double tuple_union_agg_integer var_pop var_samp variance vector_avg vector_sum
"""
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
COLUMN_HINT = "use a column of the record: _timestamp is when the log took it, _offset is unique in its partition"
"""What to use instead of functions of the clock or of chance."""

_INSTEAD = {
    **dict.fromkeys(("first", "first_value", "any_value", "min_by"), "use the aggregate First, or min(struct(...))"),
    **dict.fromkeys(("last", "last_value", "max_by"), "use the aggregate Last, or max(struct(...))"),
    **dict.fromkeys(("approx_percentile", "percentile_approx", "histogram_numeric"), "use the aggregate Quantiles"),
    **dict.fromkeys(("kll_sketch_agg_bigint", "kll_sketch_agg_double"), "use the aggregate Quantiles"),
    **dict.fromkeys(("approx_top_k", "approx_top_k_accumulate", "mode"), "use the aggregate HeavyHitters"),
    **dict.fromkeys(("listagg", "string_agg"), "use the aggregate Collect"),
    **dict.fromkeys(("window", "session_window", "window_time"), "use .window(...) of the stream"),
    **dict.fromkeys(("assert_true", "raise_error"), "write a rule in the contract: it rejects the record"),
    "current_timezone": "write the time zone as a text",
}

TIME_FUNCTIONS = frozenset(_TIME_TEXT.split())
"""Functions of dates and times: they cast a text argument to a date or a time."""

ROW_FUNCTIONS = frozenset(_ROW_TEXT.split()) | TIME_FUNCTIONS
"""Functions of one row: allowed wherever an expression is."""

AGGREGATE_FUNCTIONS = frozenset(_AGGREGATE_TEXT.split())
"""Functions of a group of rows: also allowed in `partial` and `merge` of a custom aggregate."""

COLLECTORS = ("collect_list", "collect_set", "array_agg")
"""Functions that collect the values of a group into an array, in the order in which rows are added."""

KEEPING_VALUES = ("flatten", "array_distinct", "array_compact", "array_remove")
"""Functions whose result array has the same values in any order of their first argument."""

WITHOUT_ORDER = ("array_sort", "sort_array", "size", "cardinality", "array_size", "array_max", "array_min")
"""Functions whose result does not depend on the order of their first argument."""

REFUSED_FUNCTIONS = {name: reason for reason, names in _REFUSED_TEXT.items() for name in names.split()}
"""Functions that are never allowed, each with the reason."""

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
