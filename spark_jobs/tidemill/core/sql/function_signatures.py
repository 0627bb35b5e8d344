"""How many arguments a function of Spark takes, of which kinds, and what it gives, as `signature_lines` lists it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidemill.core.sql.signature_lines import LINES


@dataclass(frozen=True, slots=True)
class Word:
    """Kinds of values, by letters: those of `LETTERS`; and how messages call them."""

    letters: frozenset[str]
    shown: str


LETTERS = "silxdbDTyamo"
"""A letter per kind: string, int, bigint, double, decimal, boolean, date, timestamp, binary, array, map, struct."""

WORDS = {
    word: Word(frozenset(letters), shown)
    for word, letters, shown in (
        ("any", LETTERS, "any value"),
        ("plain", "silxdbDTy", "a text or what becomes one"),
        ("joined", "silxdbDTya", "texts or arrays"),
        ("text", "s", "a text"),
        ("bytes", "sy", "a text or binary"),
        ("number", "silxd", "a number"),
        ("whole", "si", "an int"),
        ("bits", "il", "an integer"),
        ("flags", "ilb", "an integer, true or false"),
        ("value", "silxdbT", "a number, a text, a boolean or a timestamp"),
        ("logical", "silxdb", "a boolean, a number or a text"),
        ("time", "silxdDT", "a timestamp, a date, a text or a number"),
        ("moment", "sDT", "a date or a timestamp"),
        ("day", "D", "a date"),
        ("instant", "T", "a timestamp"),
        ("addend", "silxdDT", "a number, a date or a timestamp"),
        ("amount", "ilxd", "a number"),
        ("int", "i", "an int"),
        ("flag", "b", "true or false"),
        ("nested", "amo", "an array, a map or a struct"),
        ("item", LETTERS, "an item of the array"),
        ("summed", "silxdT", "a number"),
        ("boolean", "sb", "true or false"),
        ("array", "a", "an array"),
        ("map", "m", "a map"),
        ("arrays", "am", "an array or a map"),
        ("struct", "o", "a struct"),
    )
}


@dataclass(frozen=True, slots=True)
class Signature:
    """The words of the arguments; `least` of them are needed, and the last one may be repeated. `gives` is a word."""

    words: tuple[str, ...]
    least: int
    repeats: bool
    gives: str

    def takes(self, count: int) -> bool:
        """Whether a call may have so many arguments."""
        return self.least <= count and (self.repeats or count <= len(self.words))

    def word(self, place: int) -> str:
        """What stands for the argument at a place, which counts from 0."""
        return self.words[min(place, len(self.words) - 1)]

    @property
    def number(self) -> str:
        """How many arguments there are, for messages."""
        most = len(self.words)
        if self.repeats:
            return f"{self.least} or more arguments"
        if self.least == most:
            return "no argument" if most == 0 else f"{most} argument{'' if most == 1 else 's'}"
        return f"{self.least} {'or' if most == self.least + 1 else 'to'} {most} arguments"


def _signatures() -> Iterator[tuple[str, Signature]]:
    for line in LINES.strip().replace("\n    ", " ").splitlines():
        shape, _, names = line.partition(":")
        arguments, _, gives = shape.partition("->")
        words = arguments.split()
        least = sum(not word.endswith(("?", "*")) for word in words)
        plain = tuple(word.rstrip("?*") for word in words)
        signature = Signature(plain, least, "*" in arguments, gives.strip())
        yield from ((name, signature) for name in names.split())


SIGNATURES = dict(_signatures())
"""Functions with their signatures. What is not among them takes what it gets."""
