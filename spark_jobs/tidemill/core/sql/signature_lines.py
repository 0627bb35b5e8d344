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
amount -> timestamp: timestamp_seconds
amount whole -> string: format_number
any -> -: max min
any -> boolean: isnull isnotnull
any -> string: typeof string
any any -> -: ifnull nvl nullif to_number try_to_number date_part datepart
any any -> boolean: equal_null
any any -> string: to_char to_varchar
any any any -> -: nvl2
any any any any -> count: width_bucket
any any any* -> -: greatest least decode
any any any? -> -: sequence variant_get try_variant_get
any any any? any? any? -> binary: aes_decrypt try_aes_decrypt
any any any? any? any? any? -> -: make_timestamp_ntz try_make_timestamp_ntz
any any any? any? any? any? any? -> timestamp: make_timestamp_ltz try_make_timestamp_ltz
any any* -> -: coalesce
any any* -> bigint: xxhash64
any any* -> count: count
any any* -> int: hash
any any? -> string: schema_of_csv schema_of_json schema_of_xml
any any? any? any? any? any? any? -> timestamp: make_timestamp try_make_timestamp
any int -> -: array_repeat
any* -> -: array named_struct struct map
array -> -: array_compact array_distinct array_max array_min flatten map_from_entries
array -> count: array_size
array any -> -: transform filter
array any -> boolean: exists forall
array any any any? -> -: aggregate reduce
array any? -> -: array_sort
array array -> -: array_except array_intersect array_union map_from_arrays
array array -> boolean: arrays_overlap
array array any -> -: zip_with
array flag? -> -: sort_array
array item -> -: array_append array_prepend array_remove
array item -> boolean: array_contains
array item -> count: array_position
array number -> -: get
array number any -> -: array_insert
array number number -> -: slice
array text text? -> string: array_join
array* -> -: arrays_zip
arrays -> count: size cardinality
arrays any -> -: element_at try_element_at
bits -> timestamp: timestamp_millis timestamp_micros
bits number -> count: bit_get getbit
boolean -> boolean: bool_and bool_or every some any
boolean -> count: count_if
bytes -> binary: binary
bytes -> count: crc32
bytes -> string: md5 sha sha1 base64
bytes number -> string: sha2
day -> count: unix_date
flag any any -> -: if
flags -> count: bit_count
instant -> count: unix_micros unix_millis unix_seconds
joined -> -: reverse
joined* -> -: concat
logical -> boolean: boolean
map -> -: map_entries map_keys map_values
map any -> -: map_filter transform_keys transform_values
map any -> boolean: map_contains_key
map map any -> -: map_zip_with
map* -> -: map_concat
moment -> count: day dayofmonth dayofweek dayofyear month quarter weekday weekofyear year
moment -> date: date last_day
moment -> string: dayname monthname
moment any* -> count: hour minute second
moment moment -> count: datediff date_diff
moment moment boolean? -> double: months_between
moment number -> date: add_months
moment plain -> date: next_day trunc
moment plain -> string: date_format
moment plain -> timestamp: from_utc_timestamp to_utc_timestamp
moment text? -> count: to_unix_timestamp
moment whole -> date: date_add date_sub dateadd
moment? text? -> count: unix_timestamp
nested any? -> string: to_json
number -> -: nullifzero zeroifnull abs negative positive median
number -> boolean: isnan
number -> count: factorial
number -> date: date_from_unix_date
number -> double: acos acosh asin asinh atan atanh cbrt cos cosh cot csc degrees exp expm1 ln log10 log1p log2
    radians rint sec signum sign sin sinh sqrt tan tanh std stddev stddev_pop stddev_samp var_pop var_samp variance
    skewness kurtosis
number -> string: bin chr char space
number number -> -: shiftleft shiftright shiftrightunsigned mod pmod try_multiply try_divide try_mod
number number -> double: nanvl atan2 hypot pow power corr covar_pop covar_samp
number number number -> date: make_date
number number? -> -: round bround ceil ceiling floor
number number? -> double: log
number number? number? number? number? number? number? -> -: try_make_interval
number plain plain* -> -: elt
number plain? -> string: from_unixtime
number? number? -> -: make_ym_interval
number? number? number? number? -> -: make_dt_interval
number? number? number? number? number? number? number? -> -: make_interval
plain -> -: parse_json try_parse_json
plain -> binary: unhex unbase64
plain -> boolean: luhn_check is_valid_utf8
plain -> count: ascii length len char_length character_length octet_length bit_length
plain -> string: lower upper lcase ucase initcap quote url_encode url_decode try_url_decode hex make_valid_utf8
    validate_utf8 try_validate_utf8 collation
text any any? -> -: from_json from_csv from_xml
plain any any? -> -: convert_timezone
plain any* -> string: format_string printf
plain any? any? any? any? -> string: mask
plain joined* -> string: concat_ws
plain moment -> timestamp: date_trunc
plain number -> -: left right
plain number -> string: repeat
plain number number -> string: conv
plain number number? -> -: substring substr
plain number plain? -> -: lpad rpad
plain plain -> bigint: xpath_long
plain plain -> binary: encode
plain plain -> boolean: rlike regexp regexp_like startswith endswith contains xpath_boolean
plain plain -> count: find_in_set instr regexp_count
plain plain -> double: xpath_double xpath_number
plain plain -> int: xpath_int
plain plain -> string: regexp_substr xpath_string
plain plain -> texts: xpath
plain plain number -> string: split_part substring_index
plain plain number number? -> -: overlay
plain plain number? -> count: levenshtein locate position regexp_instr
plain plain number? -> string: regexp_extract
plain plain number? -> texts: regexp_extract_all split
plain plain plain -> string: translate
plain plain plain number? -> string: regexp_replace
plain plain plain? -> boolean: like ilike
plain plain plain? -> string: replace
plain plain? -> -: to_timestamp_ntz
plain plain? -> binary: to_binary try_to_binary
plain plain? -> date: to_date try_to_date
plain plain? -> string: btrim ltrim rtrim
plain plain? -> timestamp: to_timestamp try_to_timestamp to_timestamp_ltz
plain plain? plain? -> -: sentences
struct any? -> string: to_csv to_xml
summed -> -: sum avg mean try_sum try_avg
text -> count: json_array_length
text -> string: soundex
text -> texts: json_object_keys
text text -> string: get_json_object
text text text? -> string: parse_url try_parse_url
text text? text? -> -: str_to_map
time -> timestamp: timestamp
value -> bigint: bigint
value -> count: smallint tinyint
value -> double: double
value -> int: int
value -> number: float decimal
"""
"""A signature and the names of its functions in each line; a line that is indented goes on with names."""
