"""Generates access-log traffic with everything that makes real traffic difficult. A seed repeats the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from itertools import accumulate
from random import Random
from typing import NamedTuple


class Kind(StrEnum):
    """How a line relates to earlier lines, or what is wrong with it."""

    IN_ORDER = "in order"
    OUT_OF_ORDER = "out of order"
    BEHIND = "later than the delay"
    LATE = "later than any window waits"
    CUT = "cut after its status"
    BROKEN = "broken"
    FUTURE = "from the far future"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What to generate: `records` lines that arrive evenly over `span`, beginning at `start`.

    OUT_OF_ORDER lines are up to 55 seconds old, BEHIND lines up to 50 minutes, LATE lines at least 95 minutes. The
    first two thirds of the span have no LATE lines. Exactly one line is from the FUTURE.
    """

    seed: int = 7
    records: int = 200_000
    start: datetime = datetime(2025, 10, 6, 8, tzinfo=UTC)
    span: timedelta = timedelta(hours=4)

    def __post_init__(self) -> None:
        if self.records < 1:
            raise ValueError(f"at least one record, found {self.records}")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the log. The key is the client, as bytes."""

    key: bytes
    value: bytes
    kind: Kind


_ZONE = timezone(timedelta(hours=2))
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_FAR_FUTURE = int(datetime(2099, 1, 1, tzinfo=UTC).timestamp())

_TOP = "/ /index.html /search /styles.css /app.js /robots.txt"
_SECTIONS = {
    "/products": "lamp chair table desk shelf clock vase rug mirror stool bench frame candle basket tray",
    "/blog": "tides mills grain stone flour sluice wheel harbour estuary moon spring neap ebb flow salt",
    "/images": "logo.png hero.jpg map.svg team.jpg icon.png banner.jpg photo.jpg chart.svg",
    "/docs": "install start model windows watermarks contracts ledger replay upgrade reference",
    "/api/v1": "orders items stock prices reviews carts sessions",
}
PAGES = (*_TOP.split(), *(f"{section}/{name}" for section, names in _SECTIONS.items() for name in names.split()))
"""Paths without a query, the busiest first."""

_CLIENTS = (
    *(f"{net}.{host}" for net in ("192.0.2", "198.51.100", "203.0.113") for host in range(1, 255)),
    *(f"2001:db8::{host:x}" for host in range(1, 1239)),
)
_STATUSES = {"200": 850, "304": 70, "404": 32, "301": 18, "206": 10, "302": 8, "500": 6, "403": 4, "503": 2}
_METHODS = {"GET": 93, "POST": 5, "HEAD": 2}
_PROTOCOLS = {"HTTP/1.1": 70, "HTTP/2.0": 29, "HTTP/1.0": 1}
_USERS = {"-": 97, "ada": 1, "grace": 1, "edsger": 1}
_REFERRERS = {"-": 60, "https://example.com/": 30, "https://example.org/links?page=2": 10}
_AGENTS = {
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0 Safari/537.36": 60,
    "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Safari/604.1": 30,
    "ExampleBot/2.1 (+https://example.net/bot)": 8,
    "-": 2,
}
_QUERIES = {"": 70, "?page=2": 10, "?q=tide+mill": 8, "?utm_source=news&id=%s": 12}
_KINDS = {Kind.IN_ORDER: 700, Kind.OUT_OF_ORDER: 266, Kind.BEHIND: 15, Kind.CUT: 3, Kind.BROKEN: 10, Kind.LATE: 6}


def lines(traffic: Traffic) -> Iterator[Line]:
    """Yield the lines in the order in which they arrive."""
    rng = Random(traffic.seed)
    future = rng.randrange(traffic.records)
    clock = _Clock()
    start, span = int(traffic.start.timestamp()), int(traffic.span.total_seconds())
    for number, drawn in enumerate(_draw(rng, traffic.records)):
        arrived = start + span * number // traffic.records
        early = number < traffic.records * 2 // 3
        kind = Kind.IN_ORDER if early and drawn.kind is Kind.LATE else drawn.kind
        kind = Kind.FUTURE if number == future else kind
        time = clock.show(_FAR_FUTURE if kind is Kind.FUTURE else arrived - _age(kind, drawn.chance))
        yield Line(drawn.client.encode(), _value(drawn, time, kind, number), kind)


class _Drawn(NamedTuple):
    """The random choices for one line; `chance` is in [0, 1)."""

    kind: Kind
    client: str
    page: str
    query: str
    status: str
    method: str
    protocol: str
    user: str
    referrer: str
    agent: str
    chance: float


def _draw(rng: Random, count: int) -> Iterator[_Drawn]:
    def some(weights: dict[str, int]) -> list[str]:
        return rng.choices([*weights], cum_weights=[*accumulate(weights.values())], k=count)

    kinds = rng.choices([*_KINDS], cum_weights=[*accumulate(_KINDS.values())], k=count)
    clients = rng.choices(_CLIENTS, cum_weights=_zipf(len(_CLIENTS), 0.6), k=count)
    pages = rng.choices(PAGES, cum_weights=_zipf(len(PAGES), 1.05), k=count)
    columns = [some(w) for w in (_QUERIES, _STATUSES, _METHODS, _PROTOCOLS, _USERS, _REFERRERS, _AGENTS)]
    chances = [rng.random() for _ in range(count)]
    return map(_Drawn, kinds, clients, pages, *columns, chances)


def _zipf(count: int, exponent: float) -> list[float]:
    """Cumulative weights of the ranks 1 to `count`."""
    return [*accumulate(rank**-exponent for rank in range(1, count + 1))]


def _age(kind: Kind, chance: float) -> int:
    """How many seconds old a line is when it arrives."""
    match kind:
        case Kind.OUT_OF_ORDER:
            return round(55 * chance)
        case Kind.BEHIND:
            return 120 + round(48 * 60 * chance)
        case Kind.LATE:
            return 95 * 60 + round(40 * 60 * chance)
        case _:
            return 0


class _Clock:
    """Formats times as access logs do. Seconds repeat, so each one is formatted once."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}

    def show(self, second: int) -> str:
        text = self._known.get(second)
        if text is None:
            local = datetime.fromtimestamp(second, _ZONE)
            text = self._known[second] = f"{local:%d}/{_MONTHS[local.month - 1]}/{local:%Y:%H:%M:%S %z}"
        return text


def _value(drawn: _Drawn, time: str, kind: Kind, number: int) -> bytes:
    head = f"{drawn.client} - {drawn.user} [{time}]"
    query = drawn.query % number if "%s" in drawn.query else drawn.query
    request = f'"{drawn.method} {drawn.page}{query} {drawn.protocol}"'
    size = "-" if drawn.status == "304" else str(int(10 ** (2 + 4 * drawn.chance)))
    tail = f'"{drawn.referrer}" "{drawn.agent}"'
    if kind is Kind.CUT:
        return f"{head} {request} {drawn.status}".encode()
    if kind is Kind.BROKEN:
        return _BREAKS[number % len(_BREAKS)](head, request, f"{drawn.status} {size} {tail}")
    return f"{head} {request} {drawn.status} {size} {tail}".encode()


_Break = Callable[[str, str, str], bytes]

_BREAKS: tuple[_Break, ...] = (
    lambda head, request, rest: head[: len(head) * 3 // 5].encode(),
    lambda head, request, rest: f"{head} {request[: len(request) // 2]}".encode(),
    lambda head, request, rest: f'{head} "-" {rest}'.encode(),
    lambda head, request, rest: f"{head.rpartition('[')[0]}[31/Feb/2025:10:00:00 +0200] {request} {rest}".encode(),
    lambda head, request, rest: f"{head} {request} 999{rest[3:]}".encode(),
    lambda head, request, rest: f"{head} {request} 200 many".encode(),
    lambda head, request, rest: f"{head} ".encode() + b'"GET /caf\xe9 HTTP/1.1" ' + rest.encode(),
    lambda head, request, rest: b'{"level": "info", "message": "another service writes here too"}',
    lambda head, request, rest: b"",
)
"""How lines are damaged: cut early, cut in the request, no request, a date that does not exist, a status that does not
exist, no number, not UTF-8, another format, empty.
"""
