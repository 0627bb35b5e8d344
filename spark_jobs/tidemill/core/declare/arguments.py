"""What each step of a declaration is given, checked before the step is part of it."""

from __future__ import annotations

from collections.abc import Iterable

from tidemill.core.declare import operators as op
from tidemill.core.errors import DeclarationError, shown
from tidemill.core.given import check_flag, check_text


def check_operator(operator: op.Operator) -> None:
    """Refuse an operator with an expression, a name or a choice that is of another type.

    Raises:
        DeclarationError: the text says what was found, and what it is where.
    """
    match operator:
        case op.Read():
            _check_read(operator)
        case op.Filter(predicate):
            check_text(predicate, "the predicate of filter", '.filter("status < 400")')
        case op.WithColumns(columns):
            for name, text in columns.items():
                check_text(text, f"the expression of with_columns for `{name}`", f'.with_columns({name}="price * 2")')
        case op.Select(columns):
            _check_columns(columns, "select")
        case op.Split():
            _check_split(operator)
        case op.Publish(topic=topic) if topic is not None:
            check_text(topic, "the topic of publish", '.publish("TABLE", contract="...", topic="TOPIC")')
        case _:
            pass


def check_keys(columns: tuple[str, ...]) -> None:
    """Refuse keys of `key_by` that are no names of columns, or none, or of which one is there twice.

    Raises:
        DeclarationError: the text shows them.
    """
    _check_columns(columns, "key_by")
    if not columns or len(set(columns)) < len(columns):
        raise DeclarationError(
            f"key_by takes different columns, at least one, found {columns}", fix='write for example .key_by("user")'
        )


def _check_columns(columns: Iterable[object], step: str) -> None:
    for column in columns:
        check_text(column, f"a column of {step}", f'.{step}("user", "city")')


def check_streams(streams: Iterable[object], kind: type, step: str) -> None:
    """Refuse what is no stream of rows where a step takes several.

    Raises:
        DeclarationError: one of them is something else.
    """
    for stream in streams:
        if not isinstance(stream, kind):
            raise DeclarationError(
                f"{step} takes streams of rows, found {shown(stream)}",
                fix='write for example a.union(b), where b is what pipeline.read("TOPIC", contract="...") gives',
            )


def _check_read(read: op.Read) -> None:
    for topic in read.names:
        check_text(topic, "a topic of read", '.read("orders", contract="orders")')
    if read.event_time is not None:
        check_text(read.event_time, "event_time", 'event_time="ts", the name of a column')


def _check_split(split: op.Split) -> None:
    check_text(split.default, "the default of split", 'default="rest"')
    check_flag(split.overlap, "overlap")
    for port, predicate in split.routes.items():
        check_text(predicate, f"the predicate of split for `{port}`", f'.split({port}="status >= 500")')
