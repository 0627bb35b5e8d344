"""Which texts Spark takes as formats of numbers, of binary and of values in a text."""

from __future__ import annotations

import re

_SIGNS = r"MI|S"
_NUMBER = re.compile(
    rf"(?P<before>{_SIGNS})?\$?(?=[.D]?[09])(?:[09]+(?:[,G][09]+)*)?(?:[.D][09]*)?(?P<after>PR|{_SIGNS})?"
)
_TOKEN = re.compile(rf"PR|{_SIGNS}|[09,G.D$]")
_FORM = (
    "a format of numbers is S or MI for the sign, $, digits 0 and 9 with , or G between them, . or D with further "
    "digits, and S, MI or PR at the end, where all but one digit may be left out"
)


def fault_of_number_format(text: str) -> str:
    """Why Spark reads and writes no number in such a format; empty if it does."""
    upper = text.upper()
    found = _NUMBER.fullmatch(upper)
    if found is not None and (found["before"] is None or found["before"] != found["after"]):
        return ""
    unknown = _TOKEN.sub("", upper)[:1]
    what = f"`{unknown}` has no meaning" if unknown else "it is empty" if not text else ""
    if not what:
        what = "it has no digit 0 or 9" if not set(upper) & set("09") else "its signs do not stand so"
    return f"{what}; {_FORM}"


def fault_of_binary(text: str, *, read: bool) -> str:
    """Why Spark has no such format of binary; empty if it has. `read` says that texts are read by it."""
    known = ("hex", "utf-8", "utf8", "base64") if read else ("hex", "utf-8", "base64")
    return "" if text.lower() in known else f"there are {', '.join(known)}"


def fault_of_template(text: str) -> str:
    """Why Spark puts no values into such a text, which has placeholders like %s; empty if it may."""
    return "values are counted from %1$, so there is no %0$" if "%0$" in text else ""
