"""Expectations that Great Expectations itself computes: statistics over all rows of a batch.

Importing this module takes seconds of CPU, so `tidemill.contracts.audit` imports it only for a contract that has such
an expectation.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache, lru_cache
from string import Template
from typing import Any

import great_expectations as gx
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped]
from great_expectations.core.expectation_suite import ExpectationSuite
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from great_expectations.render.renderer.inline_renderer import InlineRenderer

from tidemill.core.contract.contract import Expectation
from tidemill.core.errors import EngineError

_LOCK = threading.Lock()

Named = tuple[str, Expectation]
"""The name of a rule, and its expectation."""


def warm_up() -> None:
    """Create what every computation needs. Importing this module takes most of the time."""
    _batch_definition("pandas")


def computed(rows: Any, named: Sequence[Named]) -> dict[str, tuple[bool, str]]:
    """Whether each expectation holds, and what was observed, by rule. `rows` are an Arrow table or a Spark data frame.

    Raises:
        EngineError: an expectation could not be computed, or there is not exactly one result for each rule.
    """
    in_memory = isinstance(rows, pa.Table)
    # Arrow-backed columns keep 64-bit integers exact beside nulls, and keep NaN apart from null.
    frame = rows.to_pandas(types_mapper=pd.ArrowDtype) if in_memory else rows
    batch = _batch_definition("pandas" if in_memory else "spark").get_batch({"dataframe": frame})
    results = batch.validate(_suite(tuple(named)), result_format="BASIC").results
    found = {((r.expectation_config.meta or {}) if r.expectation_config else {}).get("rule", ""): r for r in results}
    missing = [name for name, _ in named if name not in found]
    if missing or len(results) != len(named):
        raise EngineError(
            f"Great Expectations answered {len(results)} of {len(named)} rules; without answer: {', '.join(missing)}",
            fix="this version of great_expectations does not know an expectation: install the locked one",
        )
    return {name: _outcome(name, result) for name, result in found.items()}


def sentences(named: Sequence[Named]) -> dict[str, str]:
    """What each expectation asks, by rule, as Great Expectations says it in its Data Docs."""
    _context()
    configurations = {
        rule: ExpectationConfiguration(type=each.kind, kwargs=_kwargs(each), meta={"rule": rule})
        for rule, each in named
    }
    return {rule: _sentence(each) for rule, each in configurations.items()}


def _sentence(configuration: ExpectationConfiguration) -> str:
    found = InlineRenderer(render_object=configuration).get_rendered_content()
    value: Any = found[0].to_json_dict()["value"]
    return Template(value["template"]).safe_substitute({n: p["value"] for n, p in value.get("params", {}).items()})


def _kwargs(each: Expectation) -> dict[str, Any]:
    return {"column": each.column} | {k: list(v) if isinstance(v, tuple) else v for k, v in each.arguments}


def _outcome(rule: str, result: Any) -> tuple[bool, str]:
    if not result.success:
        _raise_exception(rule, result.exception_info or {})
    return bool(result.success), f"observed {(result.result or {}).get('observed_value')}"


def _raise_exception(rule: str, info: dict[str, Any]) -> None:
    """Raise if an expectation could not be computed: its result looks like a broken rule except for this entry."""
    for item in [info] if "raised_exception" in info else info.values():
        if item["raised_exception"]:
            raise EngineError(f"rule `{rule}` could not be checked: {item['exception_message']}")


@lru_cache(maxsize=128)
def _suite(named: tuple[Named, ...]) -> ExpectationSuite:
    configurations = [
        {"type": e.kind, "kwargs": {k: list(v) if isinstance(v, tuple) else v for k, v in e.arguments}}
        for _, e in named
    ]
    rules = [{"meta": {"rule": name}} for name, _ in named]
    return ExpectationSuite(
        name="tidemill", expectations=[{**c, **rule} for c, rule in zip(configurations, rules, strict=True)]
    )


def _batch_definition(engine: str) -> Any:
    """Return the object that data frames are passed to. It is created once, even if several threads ask for it."""
    with _LOCK:
        return _made_batch_definition(engine)


@cache
def _made_batch_definition(engine: str) -> Any:
    sources = _context().data_sources
    source = sources.add_pandas("pandas") if engine == "pandas" else sources.add_spark("spark", persist=False)
    return source.add_dataframe_asset("staged").add_batch_definition_whole_dataframe("all")


@cache
def _context() -> Any:
    context: Any = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    return context
