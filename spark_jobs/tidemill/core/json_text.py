"""Values for which JSON has no type."""

from __future__ import annotations

import base64


def json_text(value: object) -> str:
    """The text that stands for a value in JSON: Base64 of bytes, and of others what `str` gives."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
