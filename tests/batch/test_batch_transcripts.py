"""The trigger stories of Apache Beam, told to a pipeline on Spark. `support/beam_engine.py` says how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from support.beam import BadTranscript
from support.beam_engine import pipeline_of, told_to
from support.short_forms import shortened

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def stories(shared_data: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((shared_data / "beam_trigger_transcripts.yaml").read_text()))


@pytest.mark.parametrize("number", shortened(range(13), (2, 8, 9, 10, 11)))
def test_all_stories_of_beam(tmp_path: Path, spark: Any, stories: list[dict[str, Any]], number: int) -> None:
    spec = [each for each in stories if "error" not in each][number]
    told_to(spec, pipeline_of(spec, tmp_path, spark)).check()


@pytest.mark.parametrize("number", shortened(range(5), (0, 2)))
def test_bad_transcripts_are_rejected(tmp_path: Path, spark: Any, stories: list[dict[str, Any]], number: int) -> None:
    spec = [each for each in stories if "error" in each][number]
    with pytest.raises(BadTranscript, match=f"^{spec['error']}"):
        told_to(spec, pipeline_of(spec, tmp_path, spark)).check()


@pytest.mark.long
@pytest.mark.parametrize("bundles", [lambda times: [[t] for t in times], lambda times: [times[::-1]]])
@pytest.mark.parametrize("number", [2, 8, 9])
def test_stories_do_not_depend_on_how_records_are_bundled_and_ordered(
    tmp_path: Path, spark: Any, stories: list[dict[str, Any]], number: int, bundles: Any
) -> None:
    spec = [each for each in stories if "error" not in each][number]
    told_to(spec, pipeline_of(spec, tmp_path, spark), bundles=bundles).check()
