"""An ASGI application that is made when the first request comes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from threading import Lock
from typing import Any

Scope = MutableMapping[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[None]]


class LazyApp:
    """Makes the application on its first request.

    Airflow loads plugins in every process, also in those of tasks. Only the API server asks for pages, so only there
    is anything of them imported.
    """

    def __init__(self, make: Callable[[], Application]) -> None:
        self._make, self._lock = make, Lock()
        self._made: Application | None = None

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer a request."""
        with self._lock:
            if self._made is None:
                self._made = self._make()
        await self._made(scope, receive, send)
