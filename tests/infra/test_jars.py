"""The JVM jars: found, fetched, checked."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tidemill.core.errors import ConfigError, EngineError
from tidemill.engine.spark import jars
from tidemill.engine.spark.jars import Jar, fetch_jars, jar_folder, jar_paths, locked_jars

BYTES = {name: f"the bytes of {name}".encode() for name in ("first", "second")}
LOCKED = tuple(
    Jar(group="org.example", name=name, version="1.2", sha256=hashlib.sha256(content).hexdigest())
    for name, content in BYTES.items()
)


@pytest.fixture
def locked(monkeypatch) -> None:
    monkeypatch.setattr(jars, "locked_jars", lambda **_: LOCKED)


class Repository:
    """A resolver that brings jars the way Ivy lays them out, and remembers what it was asked for."""

    def __init__(self, content: dict[str, bytes] = BYTES, failures: int = 0) -> None:
        self.content = content
        self.failures = failures
        self.asked: list[list[str]] = []

    def __call__(self, wanted, scratch: Path) -> None:
        self.asked.append([jar.name for jar in wanted])
        if len(self.asked) <= self.failures:
            raise RuntimeError("connection refused")
        for jar in wanted:
            file = scratch / "ivy" / "jars" / f"{jar.group}_{jar.file_name}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(self.content[jar.name])


@pytest.mark.usefixtures("locked")
def test_fetched_jars_are_in_the_folder_and_nothing_else(tmp_path):
    paths = fetch_jars(tmp_path / "jars", resolve=Repository())
    assert [Path(path).read_bytes() for path in paths] == list(BYTES.values())
    assert sorted(p.name for p in (tmp_path / "jars").iterdir()) == ["first-1.2.jar", "second-1.2.jar"]
    assert jar_paths(tmp_path / "jars") == paths


@pytest.mark.usefixtures("locked")
def test_jars_that_are_whole_are_not_fetched_again(tmp_path):
    repository = Repository()
    fetch_jars(tmp_path, resolve=repository)
    fetch_jars(tmp_path, resolve=repository)
    assert repository.asked == [["first", "second"]]


@pytest.mark.usefixtures("locked")
def test_only_missing_and_damaged_jars_are_fetched(tmp_path):
    fetch_jars(tmp_path, resolve=Repository())
    (tmp_path / "second-1.2.jar").write_bytes(BYTES["second"][:5])
    repository = Repository()
    fetch_jars(tmp_path, resolve=repository)
    assert repository.asked == [["second"]]
    assert (tmp_path / "second-1.2.jar").read_bytes() == BYTES["second"]


@pytest.mark.usefixtures("locked")
def test_resolver_that_fails_once_is_asked_again(tmp_path):
    repository = Repository(failures=1)
    assert len(fetch_jars(tmp_path, resolve=repository)) == 2
    assert len(repository.asked) == 2


@pytest.mark.usefixtures("locked")
def test_resolver_that_fails_twice_is_an_engine_error_that_names_the_jars(tmp_path):
    repository = Repository(failures=2)
    with pytest.raises(EngineError, match=r"example:first:1\.2, org\.example:second:1\.2: connection refused"):
        fetch_jars(tmp_path, resolve=repository)
    assert len(repository.asked) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("locked")
def test_jar_with_other_bytes_is_refused_with_both_checksums(tmp_path):
    with pytest.raises(EngineError) as error:
        fetch_jars(tmp_path, resolve=Repository({**BYTES, "second": b"evil"}))
    assert LOCKED[1].sha256 in str(error.value)
    assert hashlib.sha256(b"evil").hexdigest() in str(error.value)
    assert not (tmp_path / "second-1.2.jar").exists()


@pytest.mark.usefixtures("locked")
def test_jar_that_the_resolver_did_not_bring_is_named(tmp_path):
    with pytest.raises(EngineError, match="did not bring org"):
        fetch_jars(tmp_path, resolve=lambda _wanted, _scratch: None)


@pytest.mark.usefixtures("locked")
def test_missing_jars_are_named_with_the_command_that_brings_them(tmp_path):
    (tmp_path / "first-1.2.jar").touch()
    with pytest.raises(ConfigError) as error:
        jar_paths(tmp_path)
    assert "1 of the 2 jars" in error.value.message
    assert "second-1.2.jar" in error.value.message
    assert "first-1.2.jar" not in error.value.message
    assert "`tidemill jars fetch`" in error.value.fix
    assert "TIDEMILL_JARS" in error.value.fix


def test_many_missing_jars_are_counted_and_only_the_first_are_named(tmp_path):
    wanted = locked_jars(kafka=True, s3=True)
    with pytest.raises(ConfigError) as error:
        jar_paths(tmp_path, wanted)
    assert error.value.message.endswith(f" and {len(wanted) - 3} more")
    assert error.value.message.count(".jar") == 3


def test_folder_of_jars_is_the_projects_unless_the_environment_names_one():
    assert jar_folder(Path("/project"), {}) == Path("/project/.tidemill/jars")
    assert jar_folder(Path("/project"), {"TIDEMILL_JARS": ""}) == Path("/project/.tidemill/jars")
    assert jar_folder(Path("/project"), {"TIDEMILL_JARS": "/jars"}) == Path("/jars")


def test_jar_has_coordinates_and_a_file_name():
    jar = locked_jars()[0]
    assert jar.coordinates == f"{jar.group}:{jar.name}:{jar.version}"
    assert jar.file_name == f"{jar.name}-{jar.version}.jar"
