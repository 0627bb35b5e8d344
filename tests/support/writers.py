"""The writers of Delta tables that tests run with."""

import pytest

WRITERS = ["delta-rs", pytest.param("spark", marks=pytest.mark.long)]
"""Both writers; a batch that Spark writes takes some seconds, so it is the long form."""
