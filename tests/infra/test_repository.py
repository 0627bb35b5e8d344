"""Rules about the repository itself."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
import tomllib
from pathlib import Path

import pytest

from tidemill.engine.spark.jars import locked_jars, read_lock

ROOT = Path(__file__).parents[2]
# In parts, so that this file does not hold what it forbids.
REGISTRIES = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("files", "pythonhosted"),
        ("repo1", "maven"),
        ("repo", "maven", "apache"),
        ("registry", "npmjs"),
        ("crates", "io"),
        ("proxy", "golang"),
        ("deb", "debian"),
    )
]
MACHINE_PATHS = [re.compile(rf"(?<![\w./-]){'/'.join(parts)}/") for parts in (("", "work"), ("", "root"))]
FILE_LIMITS = (("tests/", 400), ("benchmarks/", 400), ("spark_jobs/tidemill/core/", 200), ("", 300))
FUNCTION_LIMITS = (("tests/", 60), ("benchmarks/", 60), ("", 30))


def _files(*suffixes: str) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    names = listed.stdout.decode().rstrip("\0").split("\0")
    return [name for name in names if (ROOT / name).is_file() and name.endswith(suffixes or ("",))]


def _limit(name: str, limits: tuple[tuple[str, int], ...]) -> int:
    return next(limit for prefix, limit in limits if name.startswith(prefix))


def _code_lines(text: str) -> set[int]:
    """The lines that hold more than a comment."""
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {line for token in tokens if token.type not in skipped for line in range(token.start[0], token.end[0] + 1)}


def _function_lengths(text: str, least: int = 0) -> dict[str, int]:
    """Lines of code in the body of each function, by its line and name; a signature and a docstring are none.

    Functions of at most `least` lines may have comments and blank lines among them: to tell them takes longer.
    """
    lengths, code = {}, None
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body if ast.get_docstring(node) is None else node.body[1:]
            lines = range(body[0].lineno, node.end_lineno + 1) if body else ()
            if len(lines) > least:
                code = _code_lines(text) if code is None else code
                lines = code & set(lines)
            lengths[f"{node.lineno} {node.name}"] = len(lines)
    return lengths


def test_repository_has_the_files_that_the_rules_are_about():
    names = _files()
    assert "pyproject.toml" in names
    assert any(name.startswith("spark_jobs/tidemill/core/") for name in names)
    assert any(name.startswith("tests/") for name in names)


def test_no_file_names_a_package_registry():
    found = [
        f"{name}: {host}" for name in _files() for host in REGISTRIES if host.encode() in (ROOT / name).read_bytes()
    ]
    assert found == []


def test_no_file_names_a_path_of_one_machine():
    found = []
    for name in _files():
        text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
        found += [f"{name}: {pattern.pattern}" for pattern in MACHINE_PATHS if pattern.search(text)]
    assert found == []


def test_search_for_machine_paths_finds_one():
    assert MACHINE_PATHS[0].search("see " + "/".join(("", "work", "main")))
    assert not MACHINE_PATHS[0].search("lake/" + "/".join(("frame", "work", "main")))


def test_no_python_file_is_too_long():
    lengths = {name: (ROOT / name).read_text(encoding="utf-8").count("\n") for name in _files(".py")}
    assert {name: length for name, length in lengths.items() if length > _limit(name, FILE_LIMITS)} == {}


def test_no_function_is_too_long():
    found, looked_at = {}, 0
    for name in _files(".py"):
        limit = _limit(name, FUNCTION_LIMITS)
        lengths = _function_lengths((ROOT / name).read_text(encoding="utf-8"), limit)
        looked_at += len(lengths)
        found.update({f"{name}:{where}": length for where, length in lengths.items() if length > limit})
    assert looked_at > 100
    assert found == {}


def test_signatures_docstrings_comments_and_blank_lines_are_not_counted():
    text = 'def f(\n    a\n):\n    """One.\n\n    Two.\n    """\n\n    # why\n    return (\n        1\n    )\n'
    assert _function_lengths(text) == {"1 f": 3}


@pytest.mark.parametrize("name", ["requirements.lock", "bootstrap.lock"])
def test_every_locked_package_has_a_version_and_hashes_and_no_address(name):
    text = (ROOT / "infra" / "setup" / name).read_text()
    entries = re.split(r"\n(?=[a-zA-Z])", re.sub(r"^ *#.*\n", "", text, flags=re.MULTILINE).strip())
    assert entries[0]
    for entry in entries:
        assert re.match(r"[a-z0-9.-]+==[^\s;]+( ; .+)? \\\n( +--hash=sha256:[0-9a-f]{64}( \\\n)?)+$", entry), entry
    assert "//" not in text


def test_every_requirement_of_the_project_is_locked():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]
    names = {re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-") for requirement in required}
    lock = (ROOT / "infra" / "setup" / "requirements.lock").read_text()
    assert names - set(re.findall(r"^([a-z0-9.-]+)==", lock, re.MULTILINE)) == set()


def test_both_packages_that_hold_pyspark_have_one_version():
    lock = (ROOT / "infra" / "setup" / "requirements.lock").read_text()
    versions = dict(re.findall(r"^(pyspark|pyspark-client)==(\S+)", lock, re.MULTILINE))
    assert versions.get("pyspark-client", versions["pyspark"]) == versions["pyspark"]


def test_every_locked_jar_has_coordinates_and_a_checksum():
    jars = (*locked_jars(kafka=True, s3=True), *read_lock((ROOT / "infra" / "local" / "kafka.lock").read_text()))
    assert jars
    assert len({jar.coordinates for jar in jars}) == len(jars)
    for jar in jars:
        assert re.fullmatch(r"[\w.-]+:[\w.-]+:[\w.-]+", jar.coordinates), jar
        assert re.fullmatch(r"[0-9a-f]{64}", jar.sha256), jar


def test_jar_of_delta_and_package_of_delta_have_one_version():
    lock = (ROOT / "infra" / "setup" / "requirements.lock").read_text()
    package = re.search(r"^delta-spark==(\S+)", lock, re.MULTILINE)[1]
    assert {jar.version for jar in locked_jars() if jar.group == "io.delta"} == {package}


def test_license_is_whole_and_the_one_that_the_package_declares():
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert "9. Accepting Warranty or Additional Liability." in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license"] == "Apache-2.0"
