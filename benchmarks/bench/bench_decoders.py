"""How fast decoders are: records a second, in one process and in two. Run it by hand:

python benchmarks/bench/bench_decoders.py [--rows 50000] [--rounds 9]

All is measured in CPU seconds, so that a busy machine hardly shows, best of the rounds; the figure of two is
the sum of two processes that decode the same batch at the same time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tidemill.core.contract.contract import Contract, ExtraFields, Format
from tidemill.core.contract.schema import Decimal, Field, Scalar
from tidemill.engine.read.decode import Decoder, decoder_for

PAGES = {"ts": Scalar.TIMESTAMP, "user": Scalar.STRING, "page": Scalar.STRING, "bytes": Scalar.LONG}
PAGES |= {"status": Scalar.INTEGER}
ACCESS = {"client": Scalar.STRING, "ts": Scalar.TIMESTAMP, "method": Scalar.STRING, "path": Scalar.STRING}
ACCESS |= {"status": Scalar.INTEGER, "bytes": Scalar.LONG, "referrer": Scalar.STRING, "agent": Scalar.STRING}


def a_contract(format: Format, fields: dict, **more: object) -> Contract:
    columns = tuple(Field(name=n, type=t) for n, t in fields.items())
    return Contract(name="bench", version="1.0.0", fields=columns, format=format, **more)


def pages(rng: random.Random, rows: int) -> list[bytes]:
    return [
        b'{"ts":"2024-01-01T%02d:%02d:%02d.%03dZ","user":"u%d","page":"/p/%d","bytes":%d,"status":%d}'
        % (
            *(rng.randrange(24), rng.randrange(60), rng.randrange(60), rng.randrange(1000)),
            *(rng.randrange(10**4), rng.randrange(1000), rng.randrange(10**5), rng.choice((200, 304, 404))),
        )
        for _ in range(rows)
    ]


def spoiled(records: list[bytes], share: float) -> list[bytes]:
    """Some of them cut, of a wrong type, with an impossible time, or not UTF-8."""
    step = round(1 / share)
    ways: list[Callable[[bytes], bytes]] = [
        lambda r: r[: len(r) // 2],
        lambda r: r.replace(b'"bytes":', b'"bytes":"x'),
        lambda r: r.replace(b"2024-01-01", b"2024-02-31"),
        lambda r: r.replace(b"/p/", b"\xff\xfe"),
    ]
    return [ways[i // step % 4](r) if i % step == 0 else r for i, r in enumerate(records)]


def with_extras(records: list[bytes], step: int) -> list[bytes]:
    extra = b',"referrer":"http://example.org/%d","tags":{"a":[1,2]}}'
    return [r[:-1] + extra % i if i % step == 0 else r for i, r in enumerate(records)]


def access(rng: random.Random, rows: int, *, combined: bool) -> list[bytes]:
    agent = b' "http://example.org/start?x=1" "Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0"'
    line = b'10.%d.3.4 - - [23/Mar/2014:15:%02d:%02d -0700] "GET /images/p%d.png HTTP/1.1" 200 %d'
    return [
        line % (rng.randrange(256), rng.randrange(60), rng.randrange(60), rng.randrange(10**4), rng.randrange(10**6))
        + (agent if combined else b"")
        for _ in range(rows)
    ]


def cases(rows: int) -> dict[str, tuple[Contract, list[bytes]]]:
    rng = random.Random(7)
    json = a_contract(Format.JSON, PAGES)
    reject = a_contract(Format.JSON, PAGES, extra_fields=ExtraFields.REJECT)
    exact = a_contract(
        Format.JSON,
        {"ts": Scalar.TIMESTAMP, "amount": Decimal(18, 2), "user": Scalar.STRING},
        options={"timestamp": "epoch_ms"},
    )
    csv = a_contract(Format.CSV, PAGES)
    log = a_contract(Format.ACCESS_LOG, ACCESS)
    base = pages(rng, rows)
    money = [b'{"ts":%d,"amount":%d.%02d,"user":"u%d"}' % (1_704_067_200_000 + i, i, i % 100, i) for i in range(rows)]
    plain = [
        b"2024-01-01T%02d:%02d:%02d.%03dZ,u%d,/p/%d,%d,200" % (i % 24, i % 60, i % 60, i % 1000, i, i, i)
        for i in range(rows)
    ]
    quoted = [b'2024-01-01T00:%02d:00Z,u%d,"/p/ ""%d"", x",%d,200' % (i % 60, i, i, i) for i in range(rows)]
    common, combined = access(rng, rows, combined=False), access(rng, rows, combined=True)
    return {
        "json, clean": (json, base),
        "json, 1 % bad": (json, spoiled(base, 0.01)),
        "json, 20 % with extra fields, kept": (json, with_extras(base, 5)),
        "json, all with extra fields, kept": (json, with_extras(base, 1)),
        "json, 1 % with extra fields, rejected": (reject, with_extras(base, 100)),
        "json, epoch and decimal": (exact, money),
        "csv, plain": (csv, plain),
        "csv, quoted": (csv, quoted),
        "csv, 1 % bad": (csv, [r[:30] if i % 100 == 0 else r for i, r in enumerate(plain)]),
        "access log, common": (log, common),
        "access log, combined": (log, combined),
        "access log, combined, 1 % bad": (log, spoiled(combined, 0.01)),
        "text": (a_contract(Format.TEXT, {"line": Scalar.STRING}), base),
    }


def one_process(decoder: Decoder, values: pa.BinaryArray, rounds: int) -> float:
    decoder.decode(values)
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        decoder.decode(values)
        best = min(best, time.process_time() - start)
    return len(values) / best


def _decode_when_told(*, decoder: Decoder, records: list[bytes], rounds: int, ready: Any, go: Any, told: Any) -> None:
    values = pa.array(records, pa.binary())
    decoder.decode(values)
    ready.release()
    go.wait()
    told.put(one_process(decoder, values, rounds))


def two_processes(decoder: Decoder, records: list[bytes], rounds: int) -> float:
    spawn = multiprocessing.get_context("spawn")
    ready, go, told = spawn.Semaphore(0), spawn.Event(), spawn.Queue()
    given = {"decoder": decoder, "records": records, "rounds": rounds, "ready": ready, "go": go, "told": told}
    both = [spawn.Process(target=_decode_when_told, kwargs=given) for _ in range(2)]
    for process in both:
        process.start()
    for _ in both:
        ready.acquire()
    go.set()
    speed: float = sum(told.get() for _ in both)
    for process in both:
        process.join()
    return speed


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rows", type=int, default=50_000)
    arguments.add_argument("--rounds", type=int, default=9)
    arguments.add_argument("--only", default="", help="cases whose name contains this")
    given = arguments.parse_args()
    print(f"{'M records/s':40s} {'bytes':>6s} {'1 process':>10s} {'2 processes':>12s} {'errors':>8s}")
    for name, (contract, records) in cases(given.rows).items():
        if given.only not in name:
            continue
        decoder, values = decoder_for(contract), pa.array(records, pa.binary())
        errors = len(values) - decoder.decode(values).errors.null_count
        one = one_process(decoder, values, given.rounds) / 1e6
        two = two_processes(decoder, records, given.rounds) / 1e6
        size = sum(map(len, records)) / len(records)
        print(f"{name:40s} {size:6.0f} {one:10.2f} {two:12.2f} {errors:8d}")


if __name__ == "__main__":
    main()
