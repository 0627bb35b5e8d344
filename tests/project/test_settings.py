"""What `tidemill.toml` may say: what cannot be meant is refused with what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.core.errors import ConfigError, DeclarationError
from tidemill.project.project import Project
from tidemill.project.settings import read_settings

WRONG = {
    "lake and log in one folder": ('[lake]\npath = "d"\n[log]\npath = "d"', "the lake and the log lie in each other"),
    "a lake inside the log": ('[lake]\npath = "log/lake"', "the lake and the log lie in each other"),
    "a log inside the lake": ('[log]\npath = "lake/published"', "the lake and the log lie in each other"),
    "a lake that is the project": ('[lake]\npath = ""', "the lake and the log lie in each other"),
    "buckets in each other": ('[lake]\npath = "s3://abc/x"\n[log]\npath = "s3://abc/x/y"', "lie in each other"),
    "a server of something else": (
        '[spark]\nremote = "http://x"',
        r"remote: expected sc://HOST:PORT, found 'http://x'",
    ),
    "a list for Spark": ('[spark.conf]\n"spark.jars" = ["a"]', r"\[spark.conf\] spark.jars: expected text or a number"),
    "a name without quotes": ("[spark.conf]\nspark.cores.max = 1", r"\[spark.conf\] spark: expected text or a number"),
    "no broker": ('[log]\nkafka = ""', r"\[log\] kafka: expected HOST:PORT,..., found ''"),
    "a broker that is none": ('[log]\nkafka = "a:1,,b:1"', r"\[log\] kafka: expected HOST:PORT"),
    "a text for a section": ('lake = "x"', r"`lake` is a section, found 'x'\n  fix: write \[lake\] on a line"),
    "sections twice": ("[[lake]]", r"`lake` is a section, found \[\{\}\]"),
    "a section that is none": ("[lakes]", r"there is no section \[lakes\]; known: lake, log"),
}


def written(folder: Path, text: str) -> Path:
    (folder / "tidemill.toml").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, case: str) -> None:
    text, said = WRONG[case]
    with pytest.raises(ConfigError, match=said):
        read_settings(written(tmp_path, text))


@pytest.mark.parametrize(
    ("lake", "log"), [("a/lake", "a/log"), ("log2", "log"), ("s3://abc/lake", "s3://abc/log"), ("/x/lakes", "/x/lake")]
)
def test_lake_and_log_lie_beside_each_other(tmp_path: Path, lake: str, log: str) -> None:
    settings = read_settings(written(tmp_path, f'[lake]\npath = "{lake}"\n[log]\npath = "{log}"'))
    assert (settings.lake.endswith(lake), settings.log.endswith(log)) == (True, True)


def test_a_folder_of_pipelines_that_is_not_there_is_named(tmp_path: Path) -> None:
    project = Project.load(written(tmp_path, '[project]\npipelines = "nope"'))
    with pytest.raises(DeclarationError, match=r"there is no pipeline `p`") as error:
        project.declared("p")
    assert error.value.fix.startswith(f"make the folder {tmp_path.resolve()}/nope")
