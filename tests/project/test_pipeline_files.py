"""Each pipeline file is loaded on its own: what is wrong with one is named, and stops no other."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any

import pytest

from support.projects import NO_SPARK, Mill, sums
from tidemill.core.errors import ConfigError, ContractError, DeclarationError, TidemillError
from tidemill.project.pipeline_files import load_files
from tidemill.project.project import Project

PATIENCE = timedelta(milliseconds=200)
OTHER = """
from tidemill import Pipeline
with Pipeline("NAME", every="1 minute") as other:
    other.read("events", contract="events").select("user").publish("TABLE", contract="CONTRACT")
"""


@pytest.fixture
def mill(tmp_path: Path) -> Mill:
    return sums(tmp_path, NO_SPARK)


def again(mill: Mill, files: dict[str, str | bytes]) -> Project:
    """The project with these files in its folder of pipelines."""
    for name, text in files.items():
        (mill.project.folder / "pipelines" / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return Project.load(mill.project.folder)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import sys\nsys.exit(0)\n", r"a\.py:2: leaves the process \(SystemExit: 0\) while it is loaded"),
        ("raise SystemExit\n", r"a\.py:1: leaves the process \(SystemExit: 0\)"),
        ("raise KeyboardInterrupt\n", r"a\.py:1: KeyboardInterrupt\Z"),
        ("\nraise GeneratorExit('now')\n", r"a\.py:2: GeneratorExit: now\Z"),
        ("x = (\n", r"a\.py:1: SyntaxError: '\(' was never closed\Z"),
        (b"x = '\xe4'\n", r"a\.py:\d: SyntaxError: .*utf-8"),
        # Before 3.11.4, Python raised the other error.
        (b"x = 1\0\n", r"a\.py: (Syntax|Value)Error: source code string cannot contain null bytes"),
        ("def f():\n    f()\nf()\n", r"a\.py:2: RecursionError: maximum recursion"),
        ("\n\nimport no_such_module\n", r"a\.py:3: ModuleNotFoundError: No module named 'no_such_module'"),
        ("class E(Exception):\n    def __str__(self):\n        raise ValueError\nraise E\n", r"a\.py:4: E\Z"),
        ("class P:\n    __class__ = property(lambda _: 1 / 0)\np = P()\n", r"a\.py:2: ZeroDivisionError"),
        ("from tidemill import Pipeline\nPipeline('x', every='soon')\n", r"a\.py:2: every: not a duration: 'soon'"),
    ],
)
def test_a_file_that_raises_anything_is_named_with_its_line_and_others_go_on(
    mill: Mill, text: str | bytes, told: str
) -> None:
    project = again(mill, {"a.py": text})
    assert project.pipeline("sums").name == "sums"
    assert project.pipeline_names() == ("sums",)
    [fault] = project.faults
    assert fault.message.startswith(str(mill.project.folder / "pipelines" / "a.py"))
    with pytest.raises(DeclarationError, match=told):
        raise DeclarationError(fault.message)


def _folder(path: Path) -> None:
    path.mkdir()


def _dangling(path: Path) -> None:
    path.symlink_to("nothing")


@pytest.mark.parametrize(
    ("make", "told"), [(_folder, "found no file"), (_dangling, "found a link to nothing"), (os.mkfifo, "found no file")]
)
def test_what_is_no_file_is_named_and_not_waited_for(mill: Mill, make: Callable[[Path], Any], told: str) -> None:
    make(mill.project.folder / "pipelines" / "a.py")
    project = Project.load(mill.project.folder)
    assert project.pipeline("sums").name == "sums"
    assert told in project.faults[0].message
    with pytest.raises(DeclarationError, match="there is no pipeline `nobody`"):
        project.pipeline("nobody")


@pytest.mark.parametrize(
    "text",
    [
        "while True:\n    pass\n",
        "from time import sleep\nsleep(5)\n",
        "class E(Exception):\n    def __str__(self):\n        while True:\n            pass\nraise E\n",
    ],
    ids=["busy", "waiting", "telling"],
)
@pytest.mark.parametrize("beside", [False, True], ids=["main thread", "other thread"])
def test_a_file_that_does_not_return_ends_in_an_error_that_names_it(tmp_path: Path, text: str, beside: bool) -> None:
    path, found = tmp_path / "a.py", []
    path.write_text(text)

    def load() -> None:
        found.append(load_files([path], patience=PATIENCE)[path])

    began = monotonic()
    if beside:
        (thread := Thread(target=load)).start()
        thread.join()
    else:
        load()
    [fault] = found
    assert isinstance(fault, DeclarationError)
    assert str(fault).startswith(f"{path}: not loaded after 200 ms, waiting in line ")
    assert "load_timeout" in fault.fix
    assert monotonic() - began < 3


def test_files_that_do_not_return_take_one_bound_together_are_all_named_and_let_others_load(mill: Mill) -> None:
    (mill.project.folder / "tidemill.toml").write_text('[project]\nload_timeout = "2 seconds"\n')
    hang = "from time import sleep\nwhile True:\n    sleep(0.1)\n"
    project = again(mill, {f"{name}.py": hang for name in ("a", "b", "c", "z")})
    began = monotonic()
    assert project.pipeline_names() == ("sums",)
    assert 2 <= monotonic() - began < 4
    folder = mill.project.folder / "pipelines"
    told = [f"{folder / name}.py: not loaded after 2 seconds, waiting in line " for name in ("a", "b", "c", "z")]
    assert [fault.message[:-1] for fault in project.faults] == told


def test_other_files_are_waited_for_a_short_time_once_the_wanted_pipeline_is_found(
    mill: Mill, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tidemill.project.pipeline_files.OTHERS", PATIENCE)
    hang = "from time import sleep\nwhile True:\n    sleep(0.1)\n"
    project = again(mill, {"a.py": hang})
    began = monotonic()
    assert project.pipeline("sums").name == "sums"
    assert monotonic() - began < 5 < project.settings.load_timeout.total_seconds()
    [told] = caplog.messages
    assert "a.py: not loaded after 200 ms, waiting in line" in told
    assert told.endswith("what it declares is not known")


def test_a_pipeline_of_a_slow_file_is_found_whatever_its_name_is_written_like(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.project.pipeline_files.OTHERS", timedelta(0))
    slow = "from time import sleep\nsleep(0.5)\n" + OTHER.replace('"NAME"', '"sl" + "ow"')
    project = again(mill, {"z.py": slow.replace("TABLE", "users").replace("CONTRACT", "sums")})
    project.check_declared("slow")
    with pytest.raises(DeclarationError, match="there is no pipeline `slo`"):
        project.check_declared("slo")


def test_files_load_one_after_the_other_while_none_takes_long(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.py" for name in "abc"]
    for path in paths:
        path.write_text(
            "import sys\nassert not hasattr(sys, 'loads_alone')\nsys.loads_alone = __file__\n"
            "from time import sleep\nsleep(0.05)\ndel sys.loads_alone\n"
        )
    assert load_files(paths, patience=timedelta(seconds=60)) == dict.fromkeys(paths, ())


def test_a_file_that_takes_long_is_named_while_it_loads(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.py"
    path.write_text("from time import sleep\nsleep(1)\n")
    found = load_files([path], patience=timedelta(seconds=1.5), told_after=timedelta(milliseconds=800))
    assert found == {path: ()}
    assert caplog.messages == [f"{path}: still loading after 800 ms"]


def test_ctrl_c_ends_the_wait_for_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("import os, signal\nfrom time import sleep\nos.kill(os.getpid(), signal.SIGINT)\nsleep(20)\n")
    began = monotonic()
    with pytest.raises(KeyboardInterrupt):
        load_files([path], patience=timedelta(seconds=60))
    assert monotonic() - began < 10


def test_streams_and_folder_stay_and_what_a_file_prints_is_not_output(
    mill: Mill, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (sys.stdin, sys.stdout, sys.stderr, Path.cwd())
    text = "import os, sys\nprint('loading')\nos.chdir('/')\nsys.stdin = sys.stdout = sys.stderr = None\n"
    assert again(mill, {"a.py": text}).pipeline_names() == ("sums",)
    assert (sys.stdin, sys.stdout, sys.stderr, Path.cwd()) == before
    assert capsys.readouterr() == ("", "loading\n")


def test_names_that_are_no_identifiers_and_hidden_files_and_second_names_do_no_harm(mill: Mill) -> None:
    folder = mill.project.folder / "pipelines"
    (folder / "b.py").symlink_to("pipeline.py")
    other = OTHER.replace("NAME", "other").replace("TABLE", "users").replace("CONTRACT", "sums")
    project = again(mill, {"1-a.b c.py": other, ".#pipeline.py": "raise ValueError", "sums.py.bak": "("})
    assert project.pipeline_names() == ("other", "sums")
    assert project.faults == ()


def test_neither_of_two_pipelines_with_one_name_runs_and_others_do(mill: Mill) -> None:
    text = (mill.project.folder / "pipelines" / "pipeline.py").read_text()
    other = OTHER.replace("NAME", "other").replace("TABLE", "users").replace("CONTRACT", "sums")
    project = again(mill, {"a_copy.py": text, "other.py": other})
    assert project.pipeline_names() == ("other",)
    with pytest.raises(DeclarationError, match=r"pipeline\.py:\d+: a second pipeline is called `sums`.*a_copy\.py"):
        project.pipeline("sums")
    assert len(project.faults) == 1


def test_neither_of_two_pipelines_that_publish_one_table_runs(mill: Mill) -> None:
    other = OTHER.replace("NAME", "other").replace("TABLE", "sums").replace("CONTRACT", "sums")
    project = again(mill, {"other.py": other})
    for name in ("sums", "other"):
        with pytest.raises(DeclarationError, match=r"publishes sums, which `(sums|other)` publishes"):
            project.pipeline(name)
    assert (project.pipeline_names(), len(project.faults)) == ((), 1)


def test_a_pipeline_of_a_file_that_cannot_be_loaded_is_answered_with_the_fault_of_that_file(mill: Mill) -> None:
    project = again(mill, {"a.py": "1/0\n", "shops.py": "Pipeline('sales')\n"})
    with pytest.raises(DeclarationError, match=r"shops\.py:1: NameError"):
        project.pipeline("sales")
    with pytest.raises(DeclarationError, match=r"no pipeline `sum`.*could not be loaded:[\s\S]*a\.py:1: ZeroDivision"):
        project.pipeline("sum")


def test_pipelines_that_are_a_file_are_refused_by_name(mill: Mill) -> None:
    (mill.project.folder / "tidemill.toml").write_text('[project]\npipelines = "tidemill.toml"\n')
    with pytest.raises(ConfigError, match=r"tidemill\.toml: expected a folder of pipelines: Not a directory"):
        Project.load(mill.project.folder).pipeline_names()


@pytest.mark.parametrize(
    ("name", "used"),
    [("unused.odcs.yaml", False), ("unused.odcs.yml", False), ("SUMS.odcs.yml", False), ("sums.odcs.yaml", True)],
)
def test_a_wrong_contract_stops_only_who_uses_it(mill: Mill, name: str, used: bool) -> None:
    (mill.project.folder / "data_contracts" / name).write_text("no contract")
    project = Project.load(mill.project.folder)
    if not used:
        assert project.pipeline("sums").name == "sums"
        return
    with pytest.raises(ContractError, match=r"sums\.odcs\.yaml"):
        project.pipeline("sums")


def test_a_contract_is_found_in_any_folder_and_by_any_suffix_but_once(mill: Mill) -> None:
    folder = mill.project.folder / "data_contracts"
    below = folder / "sales" / "sums.yml"
    below.parent.mkdir()
    text = (folder / "sums.odcs.yaml").read_text(encoding="utf-8")
    (folder / "sums.odcs.yaml").rename(below)
    assert Project.load(mill.project.folder).pipeline("sums").name == "sums"
    (folder / "sums.odcs.yml").write_text(text, encoding="utf-8")
    with pytest.raises(ContractError, match=r"two files are the contract `sums`: .*sums\.yml and .*sums\.odcs\.yml"):
        Project.load(mill.project.folder).pipeline("sums")
    (folder / "sums.odcs.yml").unlink()
    below.unlink()
    with pytest.raises(TidemillError, match="there is no contract `sums`; there are: events"):
        Project.load(mill.project.folder).pipeline("sums")


CHAINED = """
from tidemill import Count, Pipeline, Tumbling

with Pipeline("NAME", every="1 minute") as pipeline:
    stream = pipeline.read(READ, contract="events", event_time="ts", watermark_of="OF")
    stream.window(Tumbling("1 hour")).aggregate(n=Count()).publish("NAME", contract="sums", topic="SENT")
"""


def chained(name: str, of: str, read: str = '"in"', sent: str = "out") -> str:
    return CHAINED.replace("NAME", name).replace("READ", read).replace("OF", of).replace("SENT", sent)


def test_pipelines_that_would_wait_for_their_own_watermark_are_refused(mill: Mill) -> None:
    project = again(mill, {"own.py": chained("own", "own")})
    with pytest.raises(DeclarationError, match=r"own\.py.*own\.py:5.*watermark of itself: `own` -> `own`"):
        project.pipeline("own")
    files = {
        "own.py": chained("own", "own"),
        "p.py": chained("p", "q", '"b"', "a"),
        "q.py": chained("q", "p", '"a"', "b"),
    }
    project = again(mill, {**files, "r.py": chained("r", "p", '"a"', "c")})
    assert (project.pipeline_names(), set(project.stopped)) == (("r", "sums"), {"own", "p", "q"})
    assert "`p` -> `q` -> `p`" in project.stopped["p"].message


@pytest.mark.parametrize(
    ("read", "sent", "why"),
    [
        ('"in"', "out", "sends nothing to in; it sends to out"),
        ('pattern="in-.*"', "in", "sends nothing to .*; it sends to in"),
        ('"in"', "in", None),
        ('"other", "in"', "in", None),
        ('pattern="in-.*"', "in-1", None),
    ],
)
def test_a_watermark_is_that_of_a_pipeline_that_sends_to_what_is_read(
    mill: Mill, read: str, sent: str, why: str | None
) -> None:
    sender = chained("sender", "elsewhere", '"first"', sent)
    project = again(mill, {"sender.py": sender, "reader.py": chained("reader", "sender", read)})
    assert ("sender" in project.pipeline_names(), "reader" in project.pipeline_names()) == (True, why is None)
    if why is not None:
        with pytest.raises(DeclarationError, match=why):
            project.pipeline("reader")


def test_a_watermark_of_a_pipeline_without_a_topic_is_refused(mill: Mill) -> None:
    project = again(mill, {"reader.py": chained("reader", "sums")})
    with pytest.raises(DeclarationError, match=r"'sums', which sends nothing to in; it sends to no topic"):
        project.pipeline("reader")
