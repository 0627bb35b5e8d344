"""What `tidemill.toml` may say: what cannot be meant is refused with what to write."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import pytest

from tidemill.core.errors import ConfigError, DeclarationError
from tidemill.project.project import Project
from tidemill.project.settings import read_settings
from tidemill.project.settings_file import SettingsFile

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


LINES = {
    "no equals sign": ("[lake]\npath\n", 2, "not TOML: Expected '='.*found `path`", "lines such as path"),
    "no quotes": ("[lake]\npath = lake\n", 2, "not TOML: Invalid value, found `path = lake`", "texts in quotes"),
    "an open quote": ('[lake]\n\npath = "lake\n', 3, "not TOML: Illegal character", "end the text with a quote"),
    "an open list": ("[lake]\npath = [\n", 2, "not TOML: Invalid value", "texts in quotes"),
    "a section twice": ("[lake]\n[log]\n[lake]\n", 3, "not TOML: Cannot declare", "join the two"),
    "a key twice": ('[lake]\npath = "a"\npath = "b"\n', 3, "not TOML: Cannot overwrite", "remove one"),
    "no UTF-8": ('[lake]\n# \udcff\npath = "a"\n', 2, "not UTF-8", "save the file as UTF-8"),
    "a section that is none": ('[lake]\npath = "a"\n\n[lgo]\n', 4, r"no section \[lgo\]", "did you mean `log`"),
    "a key that is none": ("[limits]\n# more\nzzz = 1\n", 3, r"\[limits\] has no `zzz`", "write one of these"),
    "a key misspelt": ("[limits]\nbatch_record = 1\n", 2, "has no `batch_record`", "did you mean `batch_records`"),
    "a text for a number": ('[limits]\n"batch_records" = "1"\n', 2, "expected a whole number", "without quotes"),
    "a number for a text": ("[maintenance]\nkeep=7\n", 2, "expected text, found 7", "in quotes"),
    "a text for a truth": ('[log]\npath = "x"\ngaps = "yes"\n', 3, "expected true or false", "without quotes"),
    "a number beyond": ("[spark]\nwriter = 'auto'\ncores = 0\n", 3, "expected 1 to 1,024", "within these bounds"),
    "a dotted key": ("\nlimits.driver_rows = 0\n", 2, "driver_rows: expected 1 to", "within these bounds"),
    "a setting of Spark": ('[spark]\ncores = 2\n[spark.conf]\n"a.b" = [1]\n', 4, "expected text or a number", "quotes"),
    "a pinned setting": ('[spark.conf]\n"a" = 1\n"spark.sql.ansi.enabled" = "no"\n', 3, "one plan must give", "leave"),
    "an inline table": ('[spark]\nconf = {"spark.sql.ansi.enabled" = "no"}\n', 2, "one plan must give", "leave"),
    "a duration": ('[project]\npipelines = "p"\n\n[maintenance]\nkeep = "7"\n', 5, "keep: ", "as in"),
    "folders in each other": ('[log]\npath = "lake/log"\n', 2, "lie in each other", "beside each other"),
}


@pytest.mark.parametrize("case", LINES)
def test_an_error_names_the_line_and_what_to_write(tmp_path: Path, case: str) -> None:
    text, line, said, fix = LINES[case]
    (tmp_path / "tidemill.toml").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ConfigError, match=rf"^{tmp_path}/tidemill\.toml:{line}: .*{said}") as error:
        read_settings(tmp_path)
    assert fix in error.value.fix


def test_a_file_of_another_editor_is_read(tmp_path: Path) -> None:
    (tmp_path / "tidemill.toml").write_bytes('\ufeff[lake]\r\npath = "ü"\r\n'.encode())
    assert read_settings(tmp_path).lake == str(tmp_path / "ü")


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a." * 20_000 + "a = 1\n", "toml:1: a key has at most 20 parts"),
        ("[lake]\n# x\n[" + " . ".join("a" * 9 for _ in range(30)) + "]\n", "toml:3: a key has at most 20 parts"),
        ('t = """\n\n"""\nx = {' + '"b".' * 30 + "b = 1}\n", "toml:4: a key has at most 20 parts"),
        ("# " + "x" * 1_000_000, "1,000,002 bytes, but settings have at most 1,000,000"),
    ],
)
def test_what_would_take_long_to_read_is_refused_at_once(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "tidemill.toml").write_text(text)
    begun = monotonic()
    with pytest.raises(ConfigError, match=said):
        SettingsFile.read(tmp_path / "tidemill.toml")
    assert monotonic() - begun < 1


def test_dots_in_texts_and_comments_are_no_parts_of_keys(tmp_path: Path) -> None:
    dots = ".".join("a" for _ in range(40))
    text = f'# it`s {dots}\n[lake]\npath = "{dots}"  # {dots}\n[spark.conf]\n"a.b" = """\n{dots}\n"""\n'
    (tmp_path / "tidemill.toml").write_text(text)
    assert SettingsFile.read(tmp_path / "tidemill.toml").get("lake", "path", "") == dots


def test_variable_with_a_server_of_spark_goes_before_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, '[spark]\nmaster = "spark://a:7077"\n')
    monkeypatch.setenv("TIDEMILL_SPARK_REMOTE", "sc://b:15002")
    settings = read_settings(tmp_path)
    assert (settings.remote, settings.master) == ("sc://b:15002", "")
    monkeypatch.setenv("TIDEMILL_SPARK_REMOTE", "")
    assert read_settings(tmp_path).master == "spark://a:7077"
    monkeypatch.setenv("TIDEMILL_SPARK_REMOTE", "b:15002")
    with pytest.raises(ConfigError, match=r"TIDEMILL_SPARK_REMOTE: expected sc://HOST:PORT, found 'b:15002'"):
        read_settings(tmp_path)
