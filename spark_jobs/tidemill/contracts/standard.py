"""What Tidemill reads of the Open Data Contract Standard: its versions and the operators of its metrics."""

VERSIONS = ("v3.0.0", "v3.0.1", "v3.0.2", "v3.1.0", "v3.2.0")
"""The versions that Tidemill can read: what they have in common means the same in all of them."""

WRITTEN = "v3.1.0"
"""The version that Tidemill writes and suggests."""

NEWEST = VERSIONS[-1]
"""The version of the schema to which contracts are held."""

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
