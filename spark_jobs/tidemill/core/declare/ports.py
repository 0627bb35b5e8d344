"""The ports of operators: where rows enter and leave.

Port names are unique within an operator; a single input port is called `in`, a single output port `out`.
"""

from __future__ import annotations

from typing import assert_never

from tidemill.core.declare.operators import (
    AggregateBy,
    Behind,
    Discard,
    Filter,
    KeyBy,
    Operator,
    Publish,
    Read,
    Select,
    Split,
    Union,
    WindowBy,
    WithColumns,
)


def input_ports(operator: Operator) -> tuple[str, ...]:
    """The names of the input ports, all of which must be fed."""
    match operator:
        case Read():
            return ()
        case Union(inputs):
            return tuple(f"in{i}" for i in range(inputs))
        case _:
            return ("in",)


def output_ports(operator: Operator) -> tuple[str, ...]:
    """The names of the output ports, each of which must lead somewhere."""
    match operator:
        case Publish() | Discard():
            return ()
        case Split(routes=routes, default=default):
            return (*routes, default)
        case Read() | Behind() | Filter() | WithColumns() | Select() | Union() | KeyBy() | WindowBy() | AggregateBy():
            return ("out",)
        case _:
            assert_never(operator)
