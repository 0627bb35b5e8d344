"""Patterns of JSON Schema, which may match anywhere in a text."""

from __future__ import annotations


def whole(pattern: str) -> str | None:
    """A pattern that may match anywhere, as one for the whole text; None if that cannot be told."""
    first, last = pattern.startswith("^"), pattern.endswith("$") and not pattern.endswith("\\$")
    body = pattern[first : len(pattern) - last]
    inner = body[3:-1] if first and last and body.startswith("(?:") and _closes_last(body) else body
    if inner != body:
        return inner
    if (first or last) and _has_choice(body):
        return None
    text = r"[\s\S]*"
    return body if first and last else f"{'' if first else text}(?:{body}){'' if last else text}"


def _closes_last(body: str) -> bool:
    """Whether the group that opens first closes at the end."""
    depths = _depths(body)
    return body.endswith(")") and bool(depths) and depths[-1] == 0 and 0 not in depths[:-1]


def _has_choice(body: str) -> bool:
    return any(c == "|" and d == 0 for c, d in zip(body, _depths(body), strict=True))


def _depths(body: str) -> list[int]:
    """For each character, how many groups are open behind it; 1,000 more inside of brackets."""
    depths, depth, escaped, listed = [], 0, False, False
    for c in body:
        if escaped:
            escaped = False
        elif c == "\\":
            escaped = True
        elif listed:
            listed = c != "]"
        elif c == "[":
            listed = True
        else:
            depth += (c == "(") - (c == ")")
        depths.append(depth + 1000 * (listed or escaped))
    return depths
