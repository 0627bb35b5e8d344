"""How many arguments a function of Spark takes, of which kinds, and what it gives, as `signature_lines` lists it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidemill.core.sql.kinds import KINDS
from tidemill.core.sql.signature_lines import LINES


@dataclass(frozen=True, slots=True)
class Word:
    """Kinds of values, by letters: those of `LETTERS`; and how messages call them."""

    letters: frozenset[str]
    shown: str


LETTERS = "".join(KINDS)
"""A letter per kind, as `tidemill.core.sql.kinds` has them."""

_PLAIN, _NUMBER = "sthilfxdbDTNyYVCZkn", "sthilfxdn"
WORDS = {
    word: Word(frozenset(letters), shown)
    for word, letters, shown in (
        ("any", LETTERS, "any value"),
        ("item", LETTERS, "an item of the array"),
        ("plain", _PLAIN, "a text or what becomes one"),
        ("joined", f"{_PLAIN}a", "texts or arrays"),
        ("text", "sn", "a text"),
        ("string", "s", "a text"),
        ("scale", "i", "an int"),
        ("bytes", "syn", "a text or binary"),
        ("raw", "sykn", "a text or binary"),
        ("number", _NUMBER, "a number"),
        ("distance", f"{_NUMBER}YV", "a number"),
        ("quantity", f"{_NUMBER}YVC", "a number"),
        ("summed", f"{_NUMBER}TYV", "a number"),
        ("amount", "thilfxdn", "a number"),
        ("whole", "sthin", "an int"),
        ("digits", "sin", "an int"),
        ("bits", "thiln", "an integer"),
        ("flags", "thilbn", "an integer, true or false"),
        ("value", "sthilfxdbTYVZkn", "a number, a text, a boolean or a timestamp"),
        ("inexact", "sthilfxdbTkn", "a number, a text, a boolean or a timestamp"),
        ("logical", "sthilfxdbkn", "a boolean, a number or a text"),
        ("time", "sthilfxdDTNkn", "a timestamp, a date, a text or a number"),
        ("moment", "sDTNn", "a date or a timestamp"),
        ("dated", "sDTNkn", "a date or a timestamp"),
        ("clock", "sDTNZn", "a date or a timestamp"),
        ("times", "sZkn", "a time of day or a text"),
        ("hours", "sZn", "a time of day"),
        ("day", "Dn", "a date"),
        ("instant", "Tn", "a timestamp"),
        ("addend", f"{_NUMBER}DTNYVCZ", "a number, a date or a timestamp"),
        ("factor", f"{_NUMBER}YVC", "a number"),
        ("shown", "sthilfxdDTNyn", "a number, a date, a timestamp or binary"),
        ("between", "sthilDTNYVn", "an integer, a date or a timestamp"),
        ("step", "sthilYVCn", "an integer or an interval"),
        ("int", "in", "an int"),
        ("flag", "bn", "true or false"),
        ("nested", "amokn", "an array, a map or a struct"),
        ("boolean", "sbn", "true or false"),
        ("array", "an", "an array"),
        ("list", "a", "an array"),
        ("map", "mn", "a map"),
        ("maps", "m", "a map"),
        ("arrays", "amn", "an array or a map"),
        ("items", "am", "an array or a map"),
        ("struct", "on", "a struct"),
        ("document", "okn", "a struct"),
        ("variant", "kn", "a variant"),
    )
}


@dataclass(frozen=True, slots=True)
class Signature:
    """The words of the arguments; `least` of them are needed, and the last one may be repeated. `gives` is a word.

    There is no call with as many arguments as a number of `never`.
    """

    words: tuple[str, ...]
    least: int
    repeats: bool
    gives: str
    never: tuple[int, ...] = ()

    def takes(self, count: int) -> bool:
        """Whether a call may have so many arguments."""
        return count not in self.never and self.least <= count and (self.repeats or count <= len(self.words))

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
        without = f", but not {' or '.join(map(str, self.never))}" if self.never else ""
        return f"{self.least} {'or' if most == self.least + 1 else 'to'} {most} arguments{without}"


def _signatures() -> Iterator[tuple[str, Signature]]:
    for line in LINES.strip().replace("\n    ", " ").splitlines():
        shape, _, names = line.partition(":")
        arguments, _, gives = shape.partition("->")
        words = [word for word in arguments.split() if not word.startswith("!")]
        never = tuple(int(word[1:]) for word in arguments.split() if word.startswith("!"))
        least = sum(not word.endswith(("?", "*")) for word in words)
        plain = tuple(word.rstrip("?*") for word in words)
        signature = Signature(plain, least, "*" in arguments, gives.strip(), never)
        yield from ((name, signature) for name in names.split())


SIGNATURES = dict(_signatures())
"""Functions with their signatures. What is not among them takes what it gets."""
