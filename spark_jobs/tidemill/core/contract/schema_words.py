"""Reads the words of a schema in Spark's SQL: a type, or names with types."""

from __future__ import annotations

import re
from collections.abc import Callable

from tidemill.core.contract.schema_tokens import MOST_NESTED, SchemaFaultError, words_of
from tidemill.core.sql.collations import fault_of_collation
from tidemill.core.sql.interval_fields import fields_of, is_span

_NUMBER = r"\d+(?:e\d+)?(?:[lsydf]|bd)?$"
_NAME = re.compile(rf"`.+`|(?!{_NUMBER})\w+", re.ASCII | re.IGNORECASE | re.DOTALL)
_PLAIN = (
    *("boolean", "tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long", "float", "real", "double"),
    *("date", "timestamp", "timestamp_ntz", "timestamp_ltz", "string", "binary", "void", "variant"),
)
_DECIMALS, _PLACES = ("decimal", "dec", "numeric"), ("geometry", "geography")
_MOST_DIGITS = 38
_SIZED = ("char", "character", "varchar")


class SchemaReader:
    """Reads the words of a schema one after the other. `keys` are the types of the keys of maps in it.

    `is_nested` says whether a field has a type with further types inside. With `with_sizes`, it is the type of a cast,
    which may be CHAR(3).
    """

    def __init__(self, text: str, *, with_sizes: bool = False) -> None:
        self._words = list(words_of(text))
        self._at, self._depth, self._with_sizes = 0, 0, with_sizes
        self.keys: set[str] = set()
        self.is_nested = self._in_field = False

    @property
    def is_type(self) -> bool:
        """Whether the text is one type, such as `ARRAY<INT>`: fields have names in front of their types."""
        return len(self._words) == 1 or self._words[1] in "<("

    def whole(self, part: Callable[[], str]) -> str:
        """What a part gives that is all of the text.

        Raises:
            SchemaFaultError: it is none, or something follows.
        """
        found = part()
        if self._word():
            raise SchemaFaultError(f"`{self._word()}` cannot follow there")
        return found

    def type(self) -> str:
        """The name of the type that comes next."""
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise SchemaFaultError(f"types are nested at most {MOST_NESTED} deep")
        word = self._next()
        self._inside(word)
        self._depth -= 1
        return word.lower()

    def _inside(self, word: str) -> None:
        self.is_nested |= self._in_field and word.lower() in ("array", "map", "struct")
        match word.lower():
            case "array":
                self._expect("<", f"`{word}` names the type of its items: ARRAY<INT>")
                self.type()
                self._expect(">")
            case "map":
                self._expect("<", f"`{word}` names the types of its keys and values: MAP<STRING, INT>")
                self.keys.add(self.type())
                self._expect(",")
                self.type()
                self._expect(">")
            case "struct":
                self._expect("<", f"`{word}` names its fields: STRUCT<a: INT>")
                if not self._took(">"):
                    self.fields(inside=True)
                    self._expect(">")
            case name:
                self._plain(name, word)

    def fields(self, *, inside: bool = False) -> str:
        """Names with types; `inside` of a struct, a colon may stand between them."""
        while True:
            name = self._next()
            if not _NAME.fullmatch(name):
                fault = f"`{name}` is no name of a field: put it in backticks" if name else "a field is missing"
                raise SchemaFaultError(fault)
            if self._took(":") and not inside:
                raise SchemaFaultError(f"no colon stands between a field and its type: write {name} INT")
            if self._word() in ("", ","):
                raise SchemaFaultError(f"the field `{name}` has no type")
            self._in_field = True
            self.type()
            if self._took("not"):
                self._expect("null")
            if self._took("comment") and self._next()[:1] not in ("'", '"'):
                raise SchemaFaultError("a comment stands in quotes")
            if not self._took(","):
                return "struct"

    def _plain(self, name: str, word: str) -> None:
        if name in _SIZED:
            self._size(word)
        elif name in _DECIMALS:
            self._digits()
        elif name in _PLACES:
            self._in_brackets(needed=True)
        elif name == "time":
            self._check_time()
        elif name == "interval":
            self._interval()
        elif name not in _PLAIN:
            raise SchemaFaultError(f"`{word}` is no type" if word else "a type is missing")
        if name == "string" and self._took("collate"):
            self._collation()
        if name == "timestamp" and (self._took("without") or (self._took("with") and self._local())):
            self._expect("time")
            self._expect("zone")

    def _size(self, word: str) -> None:
        if not self._with_sizes:
            raise SchemaFaultError(f"`{word}` cannot be read here, write STRING")
        sizes = self._in_brackets(needed=True)
        if len(sizes) != 1 or not sizes[0].isdigit():
            raise SchemaFaultError(f"`{word}` has one size: {word}(10)")

    def _local(self) -> bool:
        self._expect("local", "Spark has no TIMESTAMP WITH TIME ZONE, only TIMESTAMP")
        return True

    def _digits(self) -> None:
        sizes = self._in_brackets(needed=False)
        numbers = [int(size) for size in sizes if size.isdigit()]
        if len(sizes) > 2 or len(numbers) < len(sizes) or (sizes and numbers[0] > _MOST_DIGITS):
            raise SchemaFaultError(f"a decimal has at most {_MOST_DIGITS} digits: DECIMAL(10, 2)")
        if len(sizes) == 2 and numbers[1] > numbers[0]:
            raise SchemaFaultError("a decimal has more digits behind the point than in all")

    def _check_time(self) -> None:
        sizes = self._in_brackets(needed=False)
        if sizes and not (len(sizes) == 1 and sizes[0] in list("0123456")):
            raise SchemaFaultError("a time has from 0 to 6 digits of a second: TIME(6)")

    def _collation(self) -> None:
        name = self._next().strip("`")
        if not name:
            raise SchemaFaultError("a collation is missing")
        while self._took("."):
            name += f".{self._next()}"
        if fault := fault_of_collation(name):
            raise SchemaFaultError(fault)

    def _in_brackets(self, *, needed: bool) -> list[str]:
        if not needed and self._word() != "(":
            return []
        self._expect("(")
        found = [self._next()]
        while self._took(","):
            found.append(self._next())
        self._expect(")")
        return found

    def _interval(self) -> None:
        first = self._word().lower()
        if fields_of(f"interval {first}") != (first,):
            return
        self._next()
        if self._took("to"):
            last = self._next().lower()
            if not is_span(first, last):
                raise SchemaFaultError(f"there is no interval {first} to {last}")

    def _word(self) -> str:
        return self._words[self._at] if self._at < len(self._words) else ""

    def _next(self) -> str:
        word = self._word()
        self._at += 1
        return word

    def _took(self, word: str) -> bool:
        taken = self._word().lower() == word
        self._at += taken
        return taken

    def _expect(self, word: str, why: str = "") -> None:
        if not self._took(word):
            found = f"`{self._word()}`" if self._word() else "its end"
            raise SchemaFaultError(why or f"`{word.upper()}` is expected, but there is {found}")
