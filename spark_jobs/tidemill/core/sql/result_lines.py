"""What functions give, by a rule and the names of the functions that follow it: what stands here is data.

A rule is the name of a type, or one of `tidemill.core.contract.function_rules`. What has no line here gives what its
line in `signature_lines` says.
"""

from __future__ import annotations

from collections.abc import Mapping

RESULT_LINES = """
int: array_size ascii length len char_length character_length octet_length bit_length size cardinality instr find_in_set
    locate position levenshtein regexp_count regexp_instr bit_count datediff date_diff day dayofmonth dayofweek
    dayofyear month quarter weekday weekofyear year hour minute second json_array_length unix_date
bigint: count count_if crc32 factorial unix_micros unix_millis unix_seconds to_unix_timestamp
    unix_timestamp
bucket: width_bucket
tinyint: tinyint bit_get getbit
smallint: smallint
float: float
decimal: decimal to_number try_to_number
timestamp_ntz: to_timestamp_ntz
switched_off: time make_time time_from_micros time_from_millis time_from_seconds time_trunc time_diff
    to_time try_to_time time_to_micros time_to_millis time_to_seconds
variant: parse_json try_parse_json
object: to_variant_object
interval: make_interval try_make_interval
interval year to month: make_ym_interval
interval day to second: make_dt_interval
texts: split regexp_extract_all xpath json_object_keys
same_array: array_compact slice
filtered: filter map_filter
sorted: array_sort
same_ordered_array: array_distinct sort_array
same_ordered: max min
quantity: abs negative positive
rounded: round bround
whole: ceil ceiling floor
common: coalesce ifnull nvl
branches: if nvl2
greatest: greatest least
compared: equal_null
first_compared: nullif
items: array
repeated: array_repeat collect_list collect_set array_agg
item: get
element: element_at try_element_at
extreme: array_max array_min
with_item: array_append array_prepend
with_placed_item: array_insert
contains: array_contains
place: array_position
without_item: array_remove
key_there: map_contains_key
united: array_except array_intersect array_union
overlap: arrays_overlap
joined: concat
reversed: reverse left lpad rpad substring substr overlay
flat: flatten
added: try_add
subtracted: try_subtract
multiplied: try_multiply
divided: try_divide
remainder: try_mod mod pmod
shifted: shiftleft shiftright shiftrightunsigned
summed: sum try_sum
averaged: avg mean try_avg median
hashed: hash xxhash64
condition: exists forall
mapped: transform
zipped: zip_with
folded: aggregate reduce
new_values: transform_values
new_keys: transform_keys
pairs: map
texts_by_text: str_to_map
fields: struct
named_fields: named_struct
keys: map_keys
values: map_values
entries: map_entries
of_arrays: map_from_arrays
same_maps: map_concat
same_keys: map_zip_with
of_entries: map_from_entries
texts_or_arrays: concat_ws
items_as_texts: array_join
overlaid: overlay
decoded: decode
moment_of_parts: make_timestamp try_make_timestamp make_timestamp_ltz try_make_timestamp_ltz make_timestamp_ntz
    try_make_timestamp_ntz
zoned: convert_timezone
read_moment: to_timestamp try_to_timestamp to_timestamp_ltz
written_number: to_char to_varchar
range: sequence
"""

LAMBDAS: Mapping[str, Mapping[int, tuple[int, ...]]] = {
    "transform": {1: (1, 2)},
    "filter": {1: (1, 2)},
    "exists": {1: (1,)},
    "forall": {1: (1,)},
    "aggregate": {2: (2,), 3: (1,)},
    "reduce": {2: (2,), 3: (1,)},
    "array_sort": {1: (2,)},
    "zip_with": {2: (2,)},
    "map_filter": {1: (2,)},
    "transform_keys": {1: (2,)},
    "transform_values": {1: (2,)},
    "map_zip_with": {2: (3,)},
}
"""Functions that take lambda functions: the places of these, and how many variables they may have."""

_OPTIONS = {"from_json": 2, "from_csv": 2, "from_xml": 2, "schema_of_json": 1, "schema_of_csv": 1, "schema_of_xml": 1}
OPTIONS_AT = {**_OPTIONS, "to_json": 1, "to_csv": 1, "to_xml": 1}
"""Functions that take options, and the place of these: a map(...) of texts."""

CONSTANTS = {
    **dict.fromkeys(("round", "bround", "ceil", "ceiling", "floor", "to_number", "try_to_number", "to_binary"), (1,)),
    **dict.fromkeys(("try_to_binary", "sort_array", "percentile"), (1,)),
    **dict.fromkeys(("date_part", "datepart", "schema_of_json", "schema_of_csv", "schema_of_xml"), (0,)),
    **dict.fromkeys(("variant_get", "try_variant_get", "like", "ilike"), (2,)),
    "mask": (1, 2, 3, 4),
    "regexp_replace": (3,),
    **dict.fromkeys(
        ("xpath", "xpath_boolean", "xpath_double", "xpath_int", "xpath_long", "xpath_number", "xpath_string"), (1,)
    ),
    **dict.fromkeys(("from_json", "from_csv", "from_xml"), (1,)),
    **dict.fromkeys(("xpath_float", "xpath_short", "approx_count_distinct"), (1,)),
}
"""Functions, and the places of arguments that must be constants: Spark refuses columns there."""
