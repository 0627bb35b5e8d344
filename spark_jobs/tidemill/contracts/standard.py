"""What Tidemill reads of the Open Data Contract Standard: its versions and the operators of its metrics."""

VERSIONS = ("v3.1.0", "v3.2.0")
"""The versions that Tidemill can read."""

OPERATORS = (
    "mustBe",
    "mustNotBe",
    "mustBeGreaterThan",
    "mustBeGreaterOrEqualTo",
    "mustBeLessThan",
    "mustBeLessOrEqualTo",
    "mustBeBetween",
    "mustNotBeBetween",
)
"""The operators that compare a metric with numbers."""
