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
_INTS_AT = {
    (1,): "left right repeat lpad rpad add_months get",
    (0,): "space elt",
    (2,): "locate split_part substring_index regexp_extract regexp_extract_all regexp_instr",
    (1, 2): "substring substr slice conv",
    (2, 3): "overlay",
    (0, 1, 2): "make_date",
}
_GIVES_ITS_ARGUMENTS = "coalesce ifnull nvl greatest least min max"
_COMPARES = "equal_null nullif coalesce ifnull nvl array"

NEEDS_NUMBER = {
    **dict.fromkeys(_NUMBERS.split(), tuple(range(8))),
    **{name: places for places, names in _NUMBERS_AT.items() for name in names.split()},
}
"""Functions, and the places of their arguments that must be numbers."""

NEEDS_MOMENT = {name: places for places, names in _MOMENTS_AT.items() for name in names.split()}
"""Functions, and the places of their arguments that must be dates or times."""

INTS_AT = {name: places for places, names in _INTS_AT.items() for name in names.split()}
"""Functions, and the places of their arguments that Spark casts to an int, if they are other numbers."""

GIVES_TEXT_OF_TEXT = frozenset(("left", "right", "lpad", "rpad", "reverse", "concat"))
"""Functions whose result is a text if their arguments are texts or numbers; they take other values, too."""

GIVES_ITS_ARGUMENTS = frozenset(_GIVES_ITS_ARGUMENTS.split())
"""Functions whose result has the common type of their arguments."""

COMPARES = frozenset(_COMPARES.split())
"""Functions that give all their arguments one type."""

ITEMS_AT = {
    **dict.fromkeys(("exists", "filter", "forall", "transform"), (0,)),
    **dict.fromkeys(("aggregate", "reduce"), (1,)),
    "array_sort": (0, 1),
}
"""Functions, and the places of those variables of their lambda function that are items of their first argument."""
