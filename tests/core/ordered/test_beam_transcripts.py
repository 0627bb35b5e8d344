"""The trigger stories of Apache Beam. `support/beam.py` says where its rules differ."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from support.beam import BadTranscript, Transcript

BUNDLES = {
    "as told": lambda times: [times],
    "one by one": lambda times: [[time] for time in times],
    "in halves": lambda times: [times[: len(times) // 2], times[len(times) // 2 :]],
    "backwards": lambda times: [times[::-1]],
    "backwards one by one": lambda times: [[time] for time in times[::-1]],
    "with empty ones": lambda times: [[], times, []],
}


@pytest.fixture(scope="module")
def transcripts(shared_data: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((shared_data / "beam_trigger_transcripts.yaml").read_text()))


@pytest.mark.parametrize("bundles", BUNDLES.values(), ids=BUNDLES)
def test_all_stories_of_beam(transcripts, bundles) -> None:
    good = [spec for spec in transcripts if "error" not in spec]
    assert len(good) == 13
    for spec in good:
        Transcript(spec, bundles).check()


@pytest.mark.parametrize(
    "name",
    ["bad_output", "bad_expected_values", "bad_expected_window", "missing_output", "missing_output_at_end"],
)
def test_bad_transcripts_are_rejected(transcripts, name) -> None:
    (spec,) = [spec for spec in transcripts if spec["name"] == name]
    with pytest.raises(BadTranscript, match=f"^{spec['error']}"):
        Transcript(spec).check()


def test_there_are_as_many_stories_as_expected(transcripts) -> None:
    assert len(transcripts) == 18
