"""What set-up brings for Spark: jars, and the archive of Java's classes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.core.errors import ConfigError, EngineError
from tidemill.engine.spark.shared_classes import archive_in
from tidemill.run import archiving
from tidemill.run.archiving import main, make_archive


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a jar, which need not be fetched."""
    jar = tmp_path / "first-1.2.jar"
    jar.write_bytes(b"classes")
    monkeypatch.setattr(archiving, "jar_paths", lambda *_: (str(jar),))
    monkeypatch.setattr(archiving, "fetch_jars", lambda folder: (str(jar),))
    return tmp_path


def loads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str) -> Path:
    """Let a program of Python be the process that loads the classes. It notes each of its runs in a file."""
    folder = tmp_path / "program"
    folder.mkdir(exist_ok=True)
    runs = folder / "runs"
    (folder / "loader.py").write_text(f"import sys\nopen({str(runs)!r}, 'a').write('x')\n{program}")
    monkeypatch.setattr(archiving, "_LOADER", "loader")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return runs


WRITES = "open(sys.argv[3], 'w').write('classes')"


def test_archive_is_made_once_for_the_same_java_and_jars(jars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = loads(monkeypatch, jars, WRITES)
    assert make_archive(jars)
    assert archive_in(jars).read_text() == "classes"
    assert not make_archive(jars)
    assert runs.read_text() == "x"


def test_other_jars_or_another_java_make_it_anew(jars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = loads(monkeypatch, jars, WRITES)
    make_archive(jars)
    (jars / "first-1.2.jar").write_bytes(b"other classes")
    assert make_archive(jars)
    monkeypatch.setenv("JAVA_HOME", str(jars))
    (jars / "bin").mkdir()
    (jars / "bin" / "java").touch()
    (jars / "release").write_text('JAVA_VERSION="99"')
    assert make_archive(jars)
    assert runs.read_text() == "xxx"


@pytest.mark.parametrize("program", ["sys.exit('no heap')", "print('no heap')"])
def test_archive_that_cannot_be_made_is_tried_once(jars: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    runs = loads(monkeypatch, jars, program)
    with pytest.raises(EngineError, match="no archive of Java's classes was made: no heap") as error:
        make_archive(jars)
    assert "to try again" in error.value.fix
    assert not make_archive(jars)
    assert runs.read_text() == "x"
    assert not archive_in(jars).exists()


def test_archive_of_before_stays_if_a_new_one_cannot_be_made(jars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads(monkeypatch, jars, WRITES)
    make_archive(jars)
    (jars / "first-1.2.jar").write_bytes(b"other classes")
    loads(monkeypatch, jars, "sys.exit(1)")
    with pytest.raises(EngineError, match="exit code 1"):
        make_archive(jars)
    assert archive_in(jars).read_text() == "classes"
    assert [found.name for found in jars.glob(".classes-*")] == []


def test_command_tells_how_many_jars_there_are(
    jars: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loads(monkeypatch, jars, WRITES)
    assert main([str(jars)]) == 0
    assert capsys.readouterr().out == f"1 jars in {jars}\n"


def test_command_without_a_folder_shows_its_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == ConfigError.exit_code
    assert "usage: python -m tidemill.run.archiving FOLDER" in capsys.readouterr().err


def test_command_tells_a_failure_without_a_stack_trace(
    jars: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(_: Path) -> None:
        raise EngineError("could not fetch org.example:first:1.2")

    monkeypatch.setattr(archiving, "fetch_jars", fails)
    assert main([str(jars)]) == EngineError.exit_code
    assert capsys.readouterr().err.startswith("could not fetch org.example:first:1.2")


def test_set_up_goes_on_without_an_archive(
    jars: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    loads(monkeypatch, jars, "sys.exit('no heap')")
    assert main([str(jars)]) == 0
    assert capsys.readouterr().err.startswith("no archive of Java's classes was made: no heap")
