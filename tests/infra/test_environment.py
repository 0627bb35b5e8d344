"""When the environment is made, mended or left alone."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import environment
import prepare
import pytest
from environment import Checkout, Freshness, freshness, install_project, make_environment
from host import SetupError
from java import Java
from uv import Uv, ensure_uv, ensure_venv, settings_for_uv


@pytest.fixture
def checkout(tmp_path, machine) -> Checkout:
    """A checkout with an environment that was set up to the end."""
    made = Checkout(tmp_path / "a checkout")
    made.packages_lock.parent.mkdir(parents=True)
    made.packages_lock.write_text("one==1\n")
    made.uv_lock.write_text("uv==9.9.9 \\\n    --hash=sha256:00\n")
    (made.root / "pyproject.toml").write_text("[project]\n")
    made.state.mkdir()
    _fill(made, machine)
    install_project(machine.host(), made, _uv(machine))
    return made


def _fill(checkout: Checkout, machine) -> None:
    machine.command(checkout.python, 'case "$*" in *platform*) echo 3.11.9;; esac')
    for name in ("one-1", "tidemill-0.1.0"):
        (checkout.venv / "lib" / "python3.11" / "site-packages" / f"{name}.dist-info").mkdir(parents=True)


def _uv(machine, script: str = 'test "$1" = cache || echo uv 9.9.9') -> Uv:
    machine.command(machine.folder / "uv" / "bin" / "uv", script)
    return Uv(folder=machine.folder / "uv", settings={})


def test_complete_environment_needs_nothing(machine, checkout):
    assert freshness(machine.host(), checkout) is Freshness.NOTHING


def test_changed_project_is_only_installed_again(machine, checkout):
    (checkout.root / "pyproject.toml").write_text("[project]\nname = 'other'\n")
    assert freshness(machine.host(), checkout) is Freshness.PROJECT


def test_changed_lock_makes_the_environment_anew(machine, checkout):
    checkout.packages_lock.write_text("one==2\n")
    assert freshness(machine.host(), checkout) is Freshness.EVERYTHING


def test_moved_checkout_makes_the_environment_anew(machine, checkout, tmp_path):
    moved = Checkout(checkout.root.rename(tmp_path / "moved"))
    assert freshness(machine.host(), moved) is Freshness.EVERYTHING


@pytest.mark.parametrize("damage", ["no stamp", "half a stamp", "no python", "other python", "package gone"])
def test_damaged_environment_is_made_anew(machine, checkout, damage):
    match damage:
        case "no stamp":
            checkout.stamp.unlink()
        case "half a stamp":
            checkout.stamp.write_bytes(checkout.stamp.read_bytes()[:40])
        case "no python":
            checkout.python.unlink()
        case "other python":
            machine.command(checkout.python, "echo 3.12.1")
        case "package gone":
            next(checkout.venv.glob("lib/*/*/one-1.dist-info")).rmdir()
    assert freshness(machine.host(), checkout) is Freshness.EVERYTHING


def test_package_that_a_user_added_is_left_alone(machine, checkout):
    (checkout.venv / "lib" / "python3.11" / "site-packages" / "own-1.dist-info").mkdir()
    assert freshness(machine.host(), checkout) is Freshness.NOTHING


def test_interrupted_installation_leaves_no_stamp(machine, checkout):
    with pytest.raises(SetupError):
        install_project(machine.host(), checkout, _uv(machine, "exit 1"))
    assert freshness(machine.host(), checkout) is Freshness.EVERYTHING


def test_environment_is_made_from_nothing_with_hashes_and_without_an_address(machine, checkout):
    leftover = checkout.venv / "leftover"
    leftover.touch()
    make_environment(machine.host(), checkout, _uv(machine))
    sync = next(call for call in machine.calls if call.startswith("uv pip sync"))
    assert not leftover.exists()
    assert "--require-hashes" in sync
    assert "--require-build-hashes" in sync
    assert "//" not in sync


def test_complete_setup_only_looks_at_java_python_and_jars(machine, checkout):
    java = machine.java("jvm/java", "17")
    host = machine.host(environ={"JAVA_HOME": str(java)})
    before = len(machine.calls)
    prepare.prepare(host, checkout)
    assert [call.split()[0] for call in machine.calls[before:]] == ["java", "python", "python"]
    assert machine.calls[-1] == f"python -m tidemill.run.archiving {checkout.state}/jars"


def test_jars_are_brought_to_the_folder_that_the_environment_names(machine, checkout):
    host = machine.host(environ={"TIDEMILL_JARS": "/elsewhere"})
    prepare.fetch_jars(host, checkout, Java(home=Path("/java"), version=17))
    assert machine.calls[-1] == "python -m tidemill.run.archiving /elsewhere"


def test_jars_of_another_checkout_are_left_alone(machine, checkout, tmp_path):
    other = tmp_path / "other" / ".tidemill"
    other.mkdir(parents=True)
    (other / "env.sh").touch()
    ours = checkout.state / "jars"
    for named in (other / "jars", ours):
        assert prepare.jar_folder(machine.host(environ={"TIDEMILL_JARS": str(named)}), checkout) == ours


def test_shell_environment_survives_blanks_and_quotes_in_paths(machine, tmp_path):
    checkout = Checkout(tmp_path / "it's a checkout")
    checkout.state.mkdir(parents=True)
    prepare.write_shell(machine.host(), checkout, Java(home=Path("/opt/my java"), version=17))
    command = '. "$0"; printf "%s\\n" "$JAVA_HOME" "$PYSPARK_PYTHON" "$SPARK_LOCAL_IP" "$TIDEMILL_JARS" "$PATH"'
    answer = subprocess.run(
        ["/bin/sh", "-c", command, checkout.state / "env.sh"], env={"PATH": "/bin"}, capture_output=True, check=True
    )
    venv = checkout.venv / "bin"
    jars = f"{checkout.state}/jars"
    said = answer.stdout.decode().splitlines()
    assert said == ["/opt/my java", f"{venv}/python", "127.0.0.1", jars, f"{venv}:/bin"]


def test_uv_that_is_there_is_not_fetched_again(machine, checkout):
    uv, before = _uv(machine), len(machine.calls)
    ensure_uv(machine.host(), uv.folder, checkout.uv_lock)
    assert machine.calls[before:] == ["uv --version", "uv cache dir"]


@pytest.mark.parametrize("writable", [True, False])
def test_cache_of_uv_is_in_the_checkout_where_there_is_no_home(machine, checkout, tmp_path, writable):
    home = tmp_path / "home"
    home.write_text("") if not writable else home.mkdir()
    uv = _uv(machine, f'case "$1" in cache) echo "{home}/.cache/uv";; *) echo uv 9.9.9;; esac')
    settings = ensure_uv(machine.host(), uv.folder, checkout.uv_lock).settings
    assert settings.get("UV_CACHE_DIR") == (None if writable else str(uv.folder.parent / "uv-cache"))


def test_uv_of_another_version_is_replaced(machine, checkout, monkeypatch):
    uv = _uv(machine, "echo uv 9.9.8")
    base = machine.command("base", f'case "$*" in *"-m venv"*) cp "{machine.bin}/base" "{uv.folder}/bin/python";; esac')
    monkeypatch.setattr(sys, "executable", str(base))
    with pytest.raises(SetupError):
        ensure_uv(machine.host(), uv.folder, checkout.uv_lock)
    assert not (uv.folder / "bin" / "uv").exists()
    assert any(call.startswith("base -m venv") for call in machine.calls)


def test_python_without_venv_is_told_in_one_line(machine):
    python = machine.command("python", "exit 1")
    machine.command("apt-get")
    with pytest.raises(SetupError) as error:
        ensure_venv(machine.host(1000), python)
    assert f"sudo apt-get install python{sys.version_info.major}.{sys.version_info.minor}-venv" in str(error.value)
    assert "\n" not in str(error.value)


def test_venv_is_not_installed_for_a_python_that_is_not_debians(machine):
    machine.command("apt-get")
    with pytest.raises(SetupError):
        ensure_venv(machine.host(0), machine.command("python", "exit 1"))
    assert not [call for call in machine.calls if call.startswith("apt-get")]


def test_venv_is_installed_for_debians_python_by_root(machine, monkeypatch):
    python = machine.command("usr/bin/python", f'test -e "{machine.folder}/venv"')
    machine.command("apt-get", f'case "$*" in *-venv) echo > "{machine.folder}/venv";; esac')
    monkeypatch.setattr("uv.DEBIAN_PYTHONS", python.parent)
    ensure_venv(machine.host(0), python)
    version = ".".join(platform.python_version_tuple()[:2])
    assert machine.calls[-2].endswith(f"install --no-install-recommends python{version}-venv")


def test_uv_asks_and_trusts_whom_pip_asks_and_trusts(machine):
    listing = ":env:.cert='/env.pem'\nglobal.cert='/global.pem'\nglobal.index-url='https://mirror/simple'\n"
    settings = settings_for_uv(machine.host(), listing)
    assert settings["SSL_CERT_FILE"] == "/env.pem"
    assert settings["UV_DEFAULT_INDEX"] == "https://mirror/simple"


def test_what_the_user_set_for_uv_goes_before_pips_configuration(machine):
    host = machine.host(environ={"UV_DEFAULT_INDEX": "https://own/simple"})
    assert "UV_DEFAULT_INDEX" not in settings_for_uv(host, "global.index-url='https://mirror/simple'\n")


def test_two_setups_of_one_checkout_wait_for_each_other(checkout):
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import prepare\nfrom environment import Checkout\nfrom pathlib import Path\n"
        "with prepare.alone(Checkout(Path(sys.argv[2]))): print('in', flush=True)\n"
    )
    with prepare.alone(checkout):
        arguments = [sys.executable, "-c", script, str(Path(environment.__file__).parent), str(checkout.root)]
        other = subprocess.Popen(arguments, stdout=subprocess.PIPE)
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(timeout=0.5)
    assert other.communicate(timeout=60)[0] == b"in\n"
    assert os.path.exists(checkout.state / "setup.lock")
