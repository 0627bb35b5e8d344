"""How many arguments the functions of Spark take, of which kinds, and what they give: what stands here is data.

A line says for its functions which word stands for each argument, and what they give: `plain number? -> string`. An
argument with `?` may be left out, one with `*` may come any number of times. Words stand in
`tidemill.core.sql.function_signatures`. What gives `-` gives what its arguments are, or what has no word. The lines
refuse nothing that Spark's analyzer takes, and a test asks Spark about each of them.
"""

from __future__ import annotations

LINES = """
-> double: e pi
addend addend -> -: try_add try_subtract
amount -> -: time_from_seconds
amount -> timestamp: timestamp_seconds
amount digits -> string: format_number
any -> -: max min array_agg collect_list collect_set
any -> bigint: approx_count_distinct
any -> boolean: isnull isnotnull
any -> string: typeof string
any any !3 !4 !5 any? any? any? any? -> -: make_timestamp_ntz try_make_timestamp_ntz
any any -> -: ifnull nvl nullif
any any -> boolean: equal_null
any any any -> -: nvl2
any any any* -> -: greatest least decode
any any any? !4 !5 any? any? any? any? -> timestamp: make_timestamp_ltz try_make_timestamp_ltz
any any* -> -: coalesce
any any* -> bigint: xxhash64
any any* -> count: count
any any* -> int: hash
any any? any? !4 !5 any? any? any? any? -> timestamp: make_timestamp try_make_timestamp
any int -> -: array_repeat
any* -> -: array named_struct struct map
array -> -: array_compact array_distinct array_max array_min flatten map_from_entries
array -> count: array_size
array any -> -: transform filter
array any -> boolean: exists forall
array any any any? -> -: aggregate reduce
array any? -> -: array_sort
array array -> -: map_from_arrays
array array any -> -: zip_with
array flag? -> -: sort_array
array number number -> -: slice
array text text? -> string: array_join
array* -> -: arrays_zip
arrays -> count: size cardinality
between between step? -> -: sequence
bits -> -: time_from_micros time_from_millis bit_and bit_or bit_xor
bits -> timestamp: timestamp_millis timestamp_micros
bits number -> count: bit_get getbit
boolean -> boolean: bool_and bool_or every some any
boolean -> count: count_if
bytes -> count: crc32
bytes -> string: md5 sha sha1 base64
bytes bytes plain? plain? bytes? -> binary: aes_decrypt try_aes_decrypt
bytes number -> string: sha2
clock any* -> count: hour minute second
dated -> date: date
day -> count: unix_date
distance -> -: abs median
distance -> double: sign signum
distance distance distance number -> count: width_bucket
document maps? -> string: to_xml
factor factor -> -: try_multiply
factor number -> -: try_divide
flag any any -> -: if
flags -> count: bit_count
inexact -> double: double
inexact -> number: float
instant -> count: unix_micros unix_millis unix_seconds
items any -> -: element_at try_element_at
joined -> -: reverse
joined* -> -: concat
list any any -> -: array_insert
list item -> -: array_append array_prepend array_remove
list item -> boolean: array_contains
list item -> count: array_position
list list -> -: array_except array_intersect array_union
list list -> boolean: arrays_overlap
list number -> -: get
logical -> boolean: boolean
map -> -: map_entries map_keys map_values
map any -> -: map_filter transform_keys transform_values
map map any -> -: map_zip_with
maps any -> boolean: map_contains_key
maps* -> -: map_concat
moment -> count: day dayofmonth dayofweek dayofyear month quarter weekday weekofyear year
moment -> date: last_day
moment -> string: dayname monthname
moment moment -> count: datediff date_diff
moment moment boolean? -> double: months_between
moment number -> date: add_months
moment plain -> date: next_day trunc
moment plain -> string: date_format
moment plain -> timestamp: from_utc_timestamp to_utc_timestamp
moment text? -> count: to_unix_timestamp
moment whole -> date: date_add date_sub dateadd
moment? text? -> count: unix_timestamp
nested -> -: to_variant_object
nested maps? -> string: to_json
number -> -: nullifzero zeroifnull
number -> boolean: isnan
number -> count: factorial
number -> date: date_from_unix_date
number -> double: acos acosh asin asinh atan atanh cbrt cos cosh cot csc degrees exp expm1 ln log10 log1p log2 radians
    rint sec sin sinh sqrt tan tanh std stddev stddev_pop stddev_samp var_pop var_samp variance skewness kurtosis
number -> string: bin chr char space
number number -> -: shiftleft shiftright shiftrightunsigned mod pmod try_mod
number number -> bigint: regr_count
number number -> double: nanvl atan2 hypot pow power corr covar_pop covar_samp regr_intercept regr_r2 regr_slope
    regr_sxx regr_sxy regr_syy
number number number -> -: make_time
number number number -> date: make_date
number number? -> -: round bround
number number? -> double: log
number number? number? number? number? number? number? -> -: try_make_interval
number plain plain* -> -: elt
number plain? -> string: from_unixtime
number scale? -> -: ceil ceiling floor
number? number? -> -: make_ym_interval
number? number? number? number? -> -: make_dt_interval
number? number? number? number? number? number? number? -> -: make_interval
plain -> binary: unhex unbase64
plain -> boolean: luhn_check is_valid_utf8
plain -> count: ascii length len char_length character_length octet_length bit_length
plain -> string: lower upper lcase ucase initcap quote url_encode url_decode try_url_decode hex make_valid_utf8
    validate_utf8 try_validate_utf8
plain any any? -> -: convert_timezone
plain any* -> string: format_string printf
plain hours -> -: time_trunc
plain hours hours -> bigint: time_diff
plain joined* -> string: concat_ws
plain moment -> timestamp: date_trunc
plain number -> -: left right
plain number -> string: repeat
plain number number -> string: conv
plain number number? -> -: substring substr
plain number plain? -> -: lpad rpad
plain plain -> -: to_number try_to_number
plain plain -> binary: encode
plain plain -> boolean: rlike regexp regexp_like startswith endswith contains
plain plain -> count: find_in_set instr regexp_count
plain plain -> string: regexp_substr
plain plain number -> string: split_part substring_index
plain plain number number? -> -: overlay
plain plain number? -> count: levenshtein locate position regexp_instr
plain plain number? -> string: regexp_extract
plain plain number? -> texts: regexp_extract_all split
plain plain plain -> string: translate
plain plain plain number? -> string: regexp_replace
plain plain plain? -> string: replace
plain plain string? -> boolean: like ilike
plain plain? -> -: to_timestamp_ntz
plain plain? -> binary: to_binary try_to_binary
plain plain? -> date: to_date try_to_date
plain plain? -> string: btrim ltrim rtrim
plain plain? -> timestamp: to_timestamp try_to_timestamp to_timestamp_ltz
plain plain? plain? -> -: sentences
quantity -> -: negative positive
raw -> binary: binary
shown plain -> string: to_char to_varchar
string maps? -> string: schema_of_csv schema_of_json schema_of_xml
struct maps? -> string: to_csv
summed -> -: sum avg mean try_sum try_avg
text -> -: parse_json try_parse_json
text -> count: json_array_length
text -> string: soundex collation
text -> texts: json_object_keys
text any -> -: date_part datepart
text string maps? -> -: from_json from_csv from_xml
text text -> bigint: xpath_long
text text -> boolean: xpath_boolean
text text -> count: xpath_short
text text -> double: xpath_double xpath_number
text text -> int: xpath_int
text text -> number: xpath_float
text text -> string: get_json_object xpath_string
text text -> texts: xpath
text text text? -> string: parse_url try_parse_url
text text? text? -> -: str_to_map
text text? text? text? text? -> string: mask
time -> timestamp: timestamp
times -> -: time
value -> bigint: bigint
value -> count: smallint tinyint
value -> int: int
value -> number: decimal
variant -> boolean: is_valid_variant is_variant_null
variant -> string: schema_of_variant
variant text string? -> -: variant_get try_variant_get
"""
"""A signature and the names of its functions in each line; a line that is indented goes on with names."""
