"""What a mistake in a pipeline file says to do about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from project.test_pipeline_files import OTHER, again
from support.projects import NO_SPARK, Mill, sums
from tidemill.core.errors import DeclarationError

BEGINNING = """from tidemill import *
with Pipeline('x', every='1 minute') as p:
    rows = p.read('t', contract='events')
    """


@pytest.fixture
def mill(tmp_path: Path) -> Mill:
    return sums(tmp_path, NO_SPARK)


@pytest.mark.parametrize(
    ("text", "said", "fix"),
    [
        ("from tidemill import Avg\n", "a.py:1: ImportError: cannot import name 'Avg' from 'tidemill'", "`Average`?"),
        ("from tidemill import Tumblin\n", "a.py:1: ImportError", "did you mean `Tumbling`?"),
        ("from tidemill.sinks import X\n", "a.py:1: ModuleNotFoundError", "from tidemill import Pipeline"),
        ("import no_such_module\n", "a.py:1: ModuleNotFoundError", "install the package"),
        (f"{BEGINNING}rows.window(Tumbling('1 s'), lateness='1 s')\n", "a.py:4: TypeError", "`allowed_lateness`?"),
        (f"{BEGINNING}p.read('u', eventtime='ts')\n", "a.py:4: TypeError", "did you mean `event_time`?"),
        (f"{BEGINNING}Sum(expresion='n')\n", "a.py:4: TypeError", "did you mean `expression`?"),
        (f"{BEGINNING}Sum(zzz='n')\n", "a.py:4: TypeError", "takes: expression, overflow"),
        (f"{BEGINNING}Tumbling()\n", "a.py:4: TypeError", "takes: size, offset"),
        ("x = Cuont()\n", "a.py:1: NameError: name 'Cuont' is not defined", "did you mean `Count`?"),
        ("x = Count()\n", "a.py:1: NameError", "add the line: from tidemill import Count"),
        ("x = (\n", "a.py:1: SyntaxError: '(' was never closed", "correct line 1, or the one before it"),
        ("def f():\n    f()\nf()\n", "a.py:2: RecursionError", "a function calls itself without an end"),
        ("import json\njson.loads('{')\n", "a.py:2: JSONDecodeError", "correct line 2: Tidemill runs the file"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_what_to_do(mill: Mill, text: str, said: str, fix: str) -> None:
    [fault] = again(mill, {"a.py": text}).faults
    assert said in fault.message
    assert fix in fault.fix
    assert "spark_jobs/tidemill" not in fault.message


def test_what_is_raised_elsewhere_names_the_other_file_too(mill: Mill) -> None:
    [fault] = again(mill, {"a.py": "import json\njson.loads('{')\n"}).faults
    assert "(raised in " in fault.message
    assert "decoder.py:" in fault.message


@pytest.mark.parametrize("text", ["", "x = 1\n", "# from tidemill import Pipeline\n"])
def test_files_that_declare_nothing_are_named(mill: Mill, text: str) -> None:
    with pytest.raises(DeclarationError, match=r"no pipeline is declared in a\.py") as error:
        again(mill, {"a.py": text}).pipeline("nobody")
    assert 'with Pipeline("nobody"' in error.value.fix


def test_a_pipeline_that_a_second_one_hides_is_found_and_two_of_one_name_are_refused_with_their_lines(
    mill: Mill,
) -> None:
    one, two = (OTHER.replace("NAME", f"of_{n}").replace("TABLE", f"table_{n}") for n in "ab")
    project = again(mill, {"shops.py": one + two})
    assert project.pipeline_names() == ("of_a", "of_b", "sums")
    project = again(mill, {"shops.py": one + one})
    with pytest.raises(DeclarationError, match=r"shops\.py:8: a second pipeline is called `of_a`.*shops\.py:4"):
        project.pipeline("of_a")
