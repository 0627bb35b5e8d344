"""Between which kinds of values Spark has its operators, what they give, and which casts it has: data.

Kinds are the letters of `tidemill.core.sql.kinds`. A line of an operator is: kinds on the left, kinds on the right, and
the kind that it gives: `common` is the one type to which Spark converts both, `left` and `right` are those of the
operands, `days` is an interval of days, `moved` is a date or a timestamp that an interval moves. The first line that
fits counts; where none fits, Spark refuses. A test asks Spark about every pair of kinds.
"""

from __future__ import annotations

_SAME = """
    n n x
    thilfxdn thilfxdn common
    s thilfxd common
    thilfxd s common
"""
_BITS = """
    n n i
    thiln thiln common
    s thil common
    thil s common
"""
_SHIFT = """
    l sthilfxdn l
    sthifxdn sthilfxdn i
"""

OPERATOR_LINES = {
    "+": f"""{_SAME}
        D thiYC D
        thiYC D D
        DTN V moved
        V DTN moved
        TN YC left
        YC TN right
        D n T
        n D T
        TNYVZ n left
        n TNYVZ right
        s VC s
        VC s s
        Z V Z
        V Z Z
        Y Y common
        V V common
        C C C
    """,
    "-": f"""{_SAME}
        D thiYC D
        DTN V moved
        TN YC left
        D sDn days
        DTN sDTNn V
        Z sZn V
        sn D days
        s TNZ V
        n TNZ V
        Z V Z
        s VC s
        YVC n left
        n YV right
        Y Y common
        V V common
        C C C
    """,
    "*": f"""{_SAME}
        sthilfxdn Y Y
        sthilfxdn V V
        sthilfxdn C C
        Y sthilfxdn Y
        V sthilfxdn V
        C sthilfxdn C
    """,
    "/": """
        d thildn d
        thil d d
        thilfxd sthilfxdn x
        s thilfxd x
        n thilfxdn x
        Y sthilfxdn Y
        V sthilfxdn V
        C sthilfxdn C
    """,
    "div": """
        s thil l
        thil sthildn l
        d thildn l
        Y Yn l
        V Vn l
        n thildYVn l
    """,
    "%": _SAME,
    "&": _BITS,
    "|": _BITS,
    "^": _BITS,
    "<<": _SHIFT,
    ">>": _SHIFT,
    "AND": """
        s b b
        bn bn b
        b s b
    """,
}
"""Operators of two values, except those that compare."""

SIGN_LINES = {"-": "thilfxdYVC left\nsn x", "~": "thil left\nn i", "NOT": "sbn b", "IS TRUE": "sbn b"}
"""Operators of one value: the kinds that they take, and what they give."""

CASTS = {
    **dict.fromkeys("thild", "sthilfxdbTYVZkn"),
    **dict.fromkeys("fx", "sthilfxdbTkn"),
    "s": "sthilfxdbDTNyamoYVCZkn",
    "b": "sthilfxdbkn",
    "D": "sDTNkn",
    "T": "sthilfxdDTNkn",
    "N": "sDTNkn",
    "Z": "sZkn",
    "y": "sykn",
    "k": "sthilfxdbDTNyaZkn",
    "Y": "sthildYn",
    "V": "sthildVn",
    "a": "akn",
    "m": "mkn",
    "o": "okn",
}
"""Kinds, and the kinds of values that can be cast to them in ANSI mode, also with try_cast."""

PARTS_OF_MOMENTS = {
    "year": "sDTNYCn",
    "month": "sDTNYCn",
    "day": "sDTNVCn",
    "hour": "sDTNVCZn",
    "minute": "sDTNVCZn",
    "second": "sDTNVCZn",
    **dict.fromkeys(("quarter", "week", "yearofweek", "dayofweek", "dayofweek_iso", "doy"), "sDTNn"),
}
"""The fields of `extract` and `date_part`, and the kinds of values that have them.

An interval has those of its fields that its type names.
"""

OTHER_NAMES_OF_PARTS = {
    **dict.fromkeys(("y", "years", "yr", "yrs"), "year"),
    "qtr": "quarter",
    **dict.fromkeys(("mon", "mons", "months"), "month"),
    **dict.fromkeys(("w", "weeks"), "week"),
    **dict.fromkeys(("d", "days"), "day"),
    "dow": "dayofweek",
    "dow_iso": "dayofweek_iso",
    **dict.fromkeys(("h", "hours", "hr", "hrs"), "hour"),
    **dict.fromkeys(("m", "min", "mins", "minutes"), "minute"),
    **dict.fromkeys(("s", "sec", "seconds", "secs"), "second"),
}
"""Other names of these fields."""
