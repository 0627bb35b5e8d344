"""Commands, Debian packages and Java, on machines made of shell scripts."""

from __future__ import annotations

from pathlib import Path

import pytest
from host import SetupError
from java import ensure_java, find_java


def test_failed_command_is_reported_with_its_last_lines_and_where_all_are(machine):
    machine.command("breaks", "for i in 1 2 3; do echo line $i; done; exit 7")
    with pytest.raises(SetupError) as error:
        machine.host().run("breaks", what="breaking")
    assert "breaking failed with exit code 7" in str(error.value)
    assert str(machine.folder / "log") in str(error.value)
    assert str(error.value).endswith("line 1\n  line 2\n  line 3")


def test_only_lines_of_the_failed_command_are_reported(machine):
    machine.command("works", "echo before")
    machine.command("breaks", "echo after; exit 1")
    host = machine.host()
    host.run("works", what="working")
    with pytest.raises(SetupError) as error:
        host.run("breaks", what="breaking")
    assert "before" not in str(error.value)
    assert "after" in str(error.value)


def test_command_gets_no_input(machine):
    machine.command("reads", "if read -r line; then exit 1; fi")
    machine.host().run("reads", what="reading")
    assert machine.calls == ["reads "]


def test_command_that_is_not_there_is_a_setup_error(machine):
    with pytest.raises(SetupError, match="starting failed"):
        machine.host().run("absent", what="starting")


def test_question_to_a_failing_or_absent_command_has_no_answer(machine):
    machine.command("fails", "echo text; exit 1")
    machine.command("answers", "echo out; echo err >&2")
    assert machine.host().ask("fails") is None
    assert machine.host().ask("absent") is None
    assert machine.host().ask("answers") == "out\nerr\n"


@pytest.mark.parametrize(("user_id", "with_apt", "expected"), [(0, True, True), (1000, True, False), (0, False, False)])
def test_packages_are_installed_only_by_root_where_there_is_apt(machine, user_id, with_apt, expected):
    if with_apt:
        machine.command("apt-get")
    assert machine.host(user_id).can_install() is expected


def test_installation_goes_on_when_one_source_cannot_be_updated(machine):
    machine.command("apt-get", 'case "$*" in *update) exit 100;; esac')
    machine.host(0).install("one")
    assert [call.split()[-1] for call in machine.calls] == ["update", "one"]


def test_second_name_is_installed_where_the_first_is_unknown(machine):
    machine.command("apt-get", 'case "$*" in *old) exit 100;; esac')
    machine.host(0).install("old", "new", "newest")
    assert [call.split()[-1] for call in machine.calls] == ["update", "old", "new"]


def test_installation_asks_no_question(machine):
    machine.command("apt-get", f'echo "$DEBIAN_FRONTEND" >> "{machine.folder}/frontend"')
    machine.host(0).install("one")
    assert (machine.folder / "frontend").read_text().split() == ["noninteractive"] * 2
    assert all(" -y " in call for call in machine.calls)


def test_failure_to_install_any_name_is_told_with_the_last(machine):
    machine.command("apt-get", "echo no such package; exit 100")
    with pytest.raises(SetupError, match="apt-get install second failed") as error:
        machine.host(0).install("first", "second")
    assert "no such package" in str(error.value)


def test_java_home_goes_before_path_and_path_before_the_usual_folders(machine):
    named, usual = machine.java("named", "21"), machine.java("jvm/usual", "17")
    folders = [str(machine.folder / "jvm" / "*")]
    assert find_java(machine.host(), folders).home == usual
    machine.command("java", (machine.java("path", "25") / "bin" / "java").read_text())
    assert find_java(machine.host(), folders).version == 25
    assert find_java(machine.host(environ={"JAVA_HOME": str(named)}), folders).home == named


def test_too_old_java_is_passed_over_wherever_it_is(machine):
    old = machine.java("jvm/java-8", "1.8")
    new = machine.java("jvm/java-17", "17")
    machine.command("java", (machine.java("path", "11") / "bin" / "java").read_text())
    host = machine.host(environ={"JAVA_HOME": str(old)})
    assert find_java(host, [str(machine.folder / "jvm" / "*")]).home == new


def test_oldest_fit_java_of_the_usual_folders_is_taken(machine):
    for version in ("25", "21", "17", "11"):
        machine.java(f"jvm/java-{version}", version)
    assert find_java(machine.host(), [str(machine.folder / "jvm" / "*")]).version == 17


def test_java_home_without_java_is_passed_over(machine):
    java = machine.java("jvm/java", "17")
    host = machine.host(environ={"JAVA_HOME": str(machine.folder / "nowhere")})
    assert find_java(host, [str(machine.folder / "jvm" / "*")]).home == java


def test_root_on_debian_gets_java_installed(machine, capsys):
    spare = machine.java("spare", "17")
    place = machine.folder / "jvm" / "java-17"
    script = (
        f'case "$*" in *openjdk-17-jre-headless) mkdir -p "{place}/bin"; cp "{spare}/bin/java" "{place}/bin";; esac'
    )
    machine.command("apt-get", script)
    java = ensure_java(machine.host(0), [str(machine.folder / "jvm" / "*")])
    assert java.version == 17
    assert "Java 17" in capsys.readouterr().out


def test_java_that_is_there_is_not_installed_again(machine):
    machine.java("jvm/java", "17")
    machine.command("apt-get")
    ensure_java(machine.host(0), [str(machine.folder / "jvm" / "*")])
    assert not [call for call in machine.calls if call.startswith("apt-get")]


@pytest.mark.parametrize(
    ("installer", "advice"),
    [
        ("apt-get", "sudo apt-get install openjdk-17-jre-headless"),
        ("dnf", "sudo dnf install"),
        (None, "install a Java 17"),
    ],
)
def test_ordinary_user_without_java_is_told_in_one_line_what_to_install(machine, installer, advice):
    if installer:
        machine.command(installer)
    with pytest.raises(SetupError) as error:
        ensure_java(machine.host(1000), [str(machine.folder / "jvm" / "*")])
    assert advice in str(error.value)
    assert "\n" not in str(error.value)
    assert machine.calls == []


def test_installed_java_that_cannot_be_found_is_an_error(machine):
    machine.command("apt-get")
    with pytest.raises(SetupError, match="none was found"):
        ensure_java(machine.host(0), [str(machine.folder / "jvm" / "*")])
    assert Path(machine.folder / "log").exists()
