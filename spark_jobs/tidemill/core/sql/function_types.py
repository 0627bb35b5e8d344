"""What Spark's functions give, and which of their arguments it converts from a text, as far as that is certain."""

from __future__ import annotations

_NUMBERS = """
    abs acos acosh asin asinh atan atan2 atanh bin bround cbrt ceil ceiling cos cosh cot csc degrees exp expm1 factorial
    floor hypot isnan ln log log10 log1p log2 mod negative pmod positive pow power radians rint round sec sign signum
    sin sinh sqrt tan tanh make_date
    try_add try_subtract try_multiply try_divide try_mod
    sum avg mean try_sum try_avg std stddev stddev_pop stddev_samp var_pop var_samp variance skewness kurtosis corr
    covar_pop covar_samp median percentile
"""
_NUMBERS_AT = {
    (1,): "left right repeat lpad rpad sha2",
    (0,): "space chr char from_unixtime elt",
    (2,): "substring_index split_part locate",
}
_MOMENTS_AT = {
    (0,): """
        year quarter month weekofyear day dayofmonth dayofweek dayofyear weekday dayname monthname last_day
        next_day add_months date_sub trunc date_format hour minute second
        from_utc_timestamp to_utc_timestamp
    """,
    (0, 1): "months_between",
    (1,): "date_trunc date_part datepart",
}
_GIVES_TEXT = """
    lower upper lcase ucase trim ltrim rtrim btrim concat_ws initcap replace regexp_replace regexp_extract regexp_substr
    repeat translate split_part substring_index format_string printf format_number date_format from_unixtime hex base64
    md5 sha sha1 sha2 chr char space soundex quote to_json to_csv get_json_object url_encode url_decode monthname
    dayname typeof string
"""
_GIVES_WHOLE_NUMBER = """
    length len char_length character_length octet_length bit_length levenshtein ascii instr locate position find_in_set
    year quarter month weekofyear day dayofmonth dayofweek dayofyear weekday hour minute unix_date unix_micros
    unix_millis unix_seconds unix_timestamp to_unix_timestamp datediff size cardinality array_size json_array_length
    hash xxhash64 crc32 int bigint smallint tinyint count count_if
"""
_GIVES_NUMBER = """
    acos acosh asin asinh atan atan2 atanh cbrt cos cosh cot csc degrees exp expm1 hypot ln log log10 log1p log2 pow
    power radians rint sec signum sin sinh sqrt tan tanh double float decimal months_between
    std stddev stddev_pop stddev_samp var_pop var_samp variance skewness kurtosis corr covar_pop covar_samp
"""
_GIVES_BOOLEAN = """
    isnull isnotnull isnan like ilike rlike regexp regexp_like startswith endswith contains array_contains exists forall
    arrays_overlap equal_null luhn_check map_contains_key boolean bool_and bool_or every some any
"""
_GIVES_TIMESTAMP = """
    timestamp to_timestamp try_to_timestamp date_trunc from_utc_timestamp to_utc_timestamp timestamp_seconds
    timestamp_millis timestamp_micros
"""
_GIVES_DATE = "date to_date try_to_date make_date last_day next_day add_months date_sub trunc"
_GIVES_ITS_ARGUMENTS = "coalesce ifnull nvl greatest least min max"
_COMPARES = "equal_null nullif coalesce ifnull nvl array"

NEEDS_NUMBER = {
    **dict.fromkeys(_NUMBERS.split(), tuple(range(8))),
    **{name: places for places, names in _NUMBERS_AT.items() for name in names.split()},
}
"""Functions, and the places of their arguments that must be numbers."""

NEEDS_MOMENT = {name: places for places, names in _MOMENTS_AT.items() for name in names.split()}
"""Functions, and the places of their arguments that must be dates or times."""

GIVES_TEXT = frozenset(_GIVES_TEXT.split())
"""Functions whose result is always a text."""

GIVES_TEXT_OF_TEXT = frozenset(("left", "right", "lpad", "rpad", "reverse", "concat"))
"""Functions whose result is a text if their arguments are texts or numbers; they take other values, too."""

GIVES_WHOLE_NUMBER = frozenset(_GIVES_WHOLE_NUMBER.split())
"""Functions whose result is always a whole number."""

GIVES_NUMBER = frozenset(_GIVES_NUMBER.split())
"""Functions whose result is always a number."""

GIVES_BOOLEAN = frozenset(_GIVES_BOOLEAN.split())
"""Functions whose result is always true, false or null."""

GIVES_DATE = frozenset(_GIVES_DATE.split())
"""Functions whose result is always a date."""

GIVES_TIMESTAMP = frozenset(_GIVES_TIMESTAMP.split())
"""Functions whose result is always a timestamp."""

GIVES_ITS_ARGUMENTS = frozenset(_GIVES_ITS_ARGUMENTS.split())
"""Functions whose result has the common type of their arguments."""

COMPARES = frozenset(_COMPARES.split())
"""Functions that give all their arguments one type."""
