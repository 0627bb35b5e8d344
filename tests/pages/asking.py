"""Every route of the pages, with a place to ask it for."""

from __future__ import annotations

import re

from fastapi import FastAPI
from fastapi.routing import APIRoute

PLACES = {
    "dag_id": "sums",
    "batch_id": "1",
    "output": "quarantine",
    "table": "sums",
    "run_id:path": "scheduled__1",
}


def routes(pages: FastAPI) -> list[tuple[str, str]]:
    """Path and method of each route that answers something of its own."""
    found = [(route.path, method) for route in pages.routes if isinstance(route, APIRoute) for method in route.methods]
    return sorted(found)


def place(path: str) -> str:
    """The path with a pipeline, a batch and so on in it."""
    return re.sub(r"\{([^}]+)\}", lambda found: PLACES[found[1]], path)
