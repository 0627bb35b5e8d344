"""Why pages about contracts are not Great Expectations' Data Docs (ADR 43). When this fails, decide again."""

from __future__ import annotations

import re

import pytest

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def page() -> str:
    """The page that Data Docs make of one broken rule about a column with a hostile name."""
    from great_expectations.core import ExpectationSuiteValidationResult, ExpectationValidationResult
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
    from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer
    from great_expectations.render.view import DefaultJinjaPageView

    asked = ExpectationConfiguration(type="expect_column_values_to_not_be_null", kwargs={"column": HOSTILE})
    found = {"element_count": 3, "unexpected_count": 1, "unexpected_percent": 33.3, "partial_unexpected_list": [None]}
    raised = {"raised_exception": False, "exception_traceback": None, "exception_message": None}
    one = ExpectationValidationResult(
        success=False, expectation_config=asked, result=found, exception_info=raised, meta={}
    )
    counts = {"evaluated_expectations": 1, "successful_expectations": 0, "unsuccessful_expectations": 1}
    run = {"run_name": "a", "run_time": "2026-01-01T00:00:00+00:00"}
    whole = ExpectationSuiteValidationResult(
        success=False,
        results=[one],
        suite_name="a",
        statistics={**counts, "success_percent": 0.0},
        meta={"run_id": run, "great_expectations_version": "1", "batch_kwargs": {}},
    )
    return str(DefaultJinjaPageView().render(ValidationResultsPageRenderer().render(whole)))


def test_data_docs_fetch_scripts_from_elsewhere(page: str) -> None:
    hosts = set(re.findall(r'<script[^>]* src="https?://([^/"]+)/', page))
    assert len(hosts) >= 2


def test_data_docs_print_the_name_of_a_column_as_html(page: str) -> None:
    assert HOSTILE in page
