"""A proxy between a client and a server of HTTP that does what networks and busy servers do.

It is a process of its own: a client in Rust holds Python's lock while it waits for an answer.

What it does with a request, by name: "503", "409" and "501" refuse it, "slow" lets it wait, "dropped" forgets it,
"lost" forgets the answer, "gone" deletes the object before.
"""

from __future__ import annotations

import json
import random
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

CONTROL = "/--faults--"
_REFUSALS = {"503": (503, "SlowDown"), "409": (409, "ConditionalRequestConflict"), "501": (501, "NotImplemented")}


class Faults:
    """What goes wrong from now on, as the tests say, and what was asked for meanwhile."""

    def __init__(self, address: str) -> None:
        self._address = f"{address}{CONTROL}"

    def first(self, times: int, what: str, method: str, part: str = "") -> None:
        """So many requests of this method, whose path has this part, go wrong in this way."""
        self._tell({"times": times, "what": what, "method": method, "part": part})

    def dice(self, seed: int, **weights: int) -> None:
        """Requests go wrong by chance, in so many of a hundred cases each; what is no 503 only where they write."""
        self._tell({"seed": seed, "weights": weights})

    def none(self, *, ignored: tuple[str, ...] = ()) -> None:
        """All goes well; the server is not told headers that are `ignored`."""
        self._tell({"ignored": ignored})

    def asked(self) -> list[tuple[str, str, Mapping[str, str]]]:
        """Method, path and headers of all requests, with names of headers in lower case."""
        return [(method, path, headers) for method, path, headers, _ in self._look()]

    def happened(self) -> set[str]:
        """What went wrong up to now."""
        return {what for *_, what in self._look() if what}

    def _look(self) -> list[Any]:
        with urllib.request.urlopen(self._address) as answer:
            return list(json.load(answer))

    def _tell(self, rule: Mapping[str, object]) -> None:
        urllib.request.urlopen(self._address, json.dumps(rule).encode()).close()


@contextmanager
def proxy(target: str, folder: Path) -> Iterator[tuple[str, Faults]]:
    """The address of a proxy before `target`, and its faults."""
    from servers import Server, free_ports, listens

    [port] = free_ports(1)
    server = Server("the proxy", folder / "proxy.log")
    server.start([sys.executable, __file__, target, str(port)], ready=lambda _: listens(port))
    try:
        yield f"http://127.0.0.1:{port}", Faults(f"http://127.0.0.1:{port}")
    finally:
        server.stop()


class _State:
    """The rule that holds, and what happened."""

    def __init__(self) -> None:
        self.lock, self.asked = Lock(), [("", "", {}, "")][:0]
        self.rule: dict[str, Any] = {}
        self.random = {writes: random.Random(0) for writes in (True, False)}

    def tell(self, rule: dict[str, Any]) -> None:
        with self.lock:
            self.rule = rule
            # Writes draw from a source of their own: how often clients read depends on the time of day.
            self.random = {writes: random.Random(rule.get("seed")) for writes in (True, False)}

    def decide(self, method: str, path: str, headers: Mapping[str, str]) -> str:
        with self.lock:
            what = self._decide(method, path)
            self.asked.append((method, path, {name.lower(): value for name, value in headers.items()}, what))
            return what

    def _decide(self, method: str, path: str) -> str:
        rule = self.rule
        if "weights" in rule:
            names, weights = list(rule["weights"]), list(rule["weights"].values())
            writes = method in ("PUT", "POST")
            what = str(self.random[writes].choices(["", *names], [100 - sum(weights), *weights])[0])
            return what if writes or what == "503" else ""
        if rule.get("times", 0) and rule["method"] == method and rule["part"] in path:
            rule["times"] -= 1
            return str(rule["what"])
        return ""


def _asked(
    behind: str, method: str, path: str, body: bytes, headers: Mapping[str, str]
) -> tuple[int, list[tuple[str, str]], bytes]:
    """Status, headers and body of the server's answer, as they are passed on."""
    connection = HTTPConnection(behind, timeout=60)
    connection.request(method, path, body, dict(headers))
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    length = (answer.getheader("Content-Length") or "0") if method == "HEAD" else str(len(data))
    own = ("transfer-encoding", "connection", "content-length")
    kept = [(name, value) for name, value in answer.getheaders() if name.lower() not in own]
    return answer.status, [*kept, ("Content-Length", length)], data


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Otherwise the body waits for 40 ms until the headers are acknowledged.
    disable_nagle_algorithm = True
    state, behind = _State(), ""

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == CONTROL:
            self._control(body)
            return
        what = self.state.decide(self.command, self.path, dict(self.headers))
        if what in _REFUSALS:
            status, code = _REFUSALS[what]
            self._answer(status, f"<Error><Code>{code}</Code><Message>not now</Message></Error>".encode())
            return
        if what == "slow":
            time.sleep(1.5)
        if what == "gone":
            _asked(self.behind, "DELETE", self.path, b"", dict(self.headers))
        ignored = self.state.rule.get("ignored", ())
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ignored}
        found = (0, [], b"") if what == "dropped" else _asked(self.behind, self.command, self.path, body, headers)
        if what in ("dropped", "lost"):
            self.close_connection = True
            return
        status, answered, data = found
        self.send_response_only(status)
        for name, value in answered:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _control(self, body: bytes) -> None:
        if body:
            self.state.tell(json.loads(body))
        self._answer(200, b"" if body else json.dumps(self.state.asked).encode())

    def _answer(self, status: int, data: bytes) -> None:
        self.send_response_only(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass  # noqa: N815  named by the library

    def log_message(self, *_: object) -> None:
        return


def _serve(target: str, port: int) -> None:
    _Handler.behind = urlsplit(target).netloc
    ThreadingHTTPServer(("127.0.0.1", port), _Handler).serve_forever()


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
