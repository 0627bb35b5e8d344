"""Contract files are read as they are written, not as YAML 1.1 guesses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tidemill.contracts.document import Node, parse
from tidemill.contracts.findings import Findings
from tidemill.contracts.lint import lint


def plain(node: Node | None) -> Any:
    assert node is not None
    if isinstance(node.value, Mapping):
        return {key: plain(child) for key, child in node.value.items()}
    return [plain(item) for item in node.value] if isinstance(node.value, tuple) else node.value


def read(text: str) -> Any:
    findings = Findings("f")
    node = parse(text, findings)
    assert findings.all == []
    return plain(node)


@pytest.mark.parametrize("word", ["no", "off", "on", "yes", "y", "n", "No", "TRUE", "True", "False", "NULL"])
def test_words_that_yaml_1_1_takes_for_booleans_stay_text(word: str) -> None:
    assert read(f"a: {word}") == {"a": word}


@pytest.mark.parametrize(
    "text",
    [
        "2024-01-31",
        "2024-01-31T23:59:59Z",
        "12:30",
        "190:20:30",
        "1_000",
        "010",
        "007",
        "0o17",
        "0x1f",
        "0b1",
        "1.0.0",
        ".inf",
        ".nan",
        ".",
        "-",
        "e5",
        ".e5",
        "1e",
        "1e400",
        "9" * 5_000,
    ],
)
def test_what_only_looks_like_a_date_or_number_stays_text(text: str) -> None:
    assert read(f"a: {text}" if text != "-" else "a: '-'") == {"a": text}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("0", 0),
        ("-12", -12),
        ("9223372036854775807", 2**63 - 1),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-2.5E-3", -0.0025),
    ],
)
def test_plain_values_have_the_type_they_show(text: str, value: object) -> None:
    found = read(f"a: {text}")["a"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", ["'true'", '"12"', "'null'", "''", "'2024-01-31'"])
def test_quoted_values_are_text(text: str) -> None:
    assert read(f"a: {text}") == {"a": text.strip("'\"")}


def test_every_value_knows_the_line_of_its_key() -> None:
    node = parse("# comment\na:\n  b:\n    - 1\n\n    - c: 2\n", Findings("f"))
    assert node is not None
    assert (node.child("a") or node).line == 2
    b = (node.child("a") or node).child("b") or node
    assert b.line == 3
    assert [item.line for item in (node.child("a") or node).items("b")] == [4, 6]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3", 3, "key `a` stands twice, first in line 1"),
        ("x:\n  a: 1\n  a: 1", 3, "stands twice, first in line 2"),
        ("a: [1, 2\nb: 3", 2, "not YAML"),
        ("a: 1\n\tb: 2", 2, "not YAML"),
        ("a: 1\n---\nb: 2", 2, "not YAML: but found another document"),
        ("? [1, 2]\n: 3", 1, "a key must be a word"),
        ("a: 1\nb: !!python/object:os.system x", 2, "tag `tag:yaml.org,2002:python/object:os.system`"),
        ("a: 1\nb: !!str 12", 2, "tag `tag:yaml.org,2002:str`"),
        ("a: 1\nb: &x !!str 12", 2, "tag `tag:yaml.org,2002:str`"),
        ("a: 1\nb: !mine [x]", 2, "tag `!mine`"),
        ("a: 1\nb: &b\n  c: *b", 3, "an alias refers to what it stands in"),
        ("a: 1\nb: \x07", 2, "not YAML"),
        ('a: 1\nb: "\\UFFFFFFFF"', 2, "not YAML: OverflowError"),
        ('a: 1\nb: "x\\ud800"', 2, r"`\ud800` is half a character"),
        ('a: 1\n"\\udfff": 2', 2, r"`\udfff` is half a character"),
        ("", 1, "the document is empty"),
        ("# only a comment", 1, "the document is empty"),
    ],
)
def test_what_is_no_plain_yaml_is_named_with_its_line(text: str, line: int, words: str) -> None:
    findings = Findings("f")
    parse(text, findings)
    assert [f.line for f in findings.all] == [line]
    assert words in findings.all[0].message


def nested(levels: int) -> str:
    return "\n".join(" " * level + "a:" for level in range(levels))


def bomb(levels: int) -> str:
    words = [f"k{level}: &k{level} [{', '.join([f'*k{level - 1}'] * 10)}]" for level in range(1, levels)]
    return "\n".join(["k0: &k0 [x, x, x, x, x, x, x, x, x, x]", *words])


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[" * 20_000, 1, "100 levels"),
        ("{a: " * 20_000, 1, "100 levels"),
        ("- " * 20_000, 1, "100 levels"),
        ("x: 1\n" + nested(101), 101, "100 levels"),
        ("a: &a0 [x]\n" + "".join(f"b{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 110)) + "#" * 20_000, 1, "100 levels"),
        (bomb(9), 1, "values if it is as short as this one, aliases counted as what they stand for"),
        ("a: " + "x" * 500_000, 1, "500,000 characters"),
    ],
    ids=["lists", "keys", "dashes", "block", "aliases in a row", "aliases that multiply", "long"],
)
def test_a_document_has_bounds_and_says_where_it_exceeds_them(text: str, line: int, words: str) -> None:
    findings = Findings("f")
    began = monotonic()
    assert parse(text, findings) is None
    assert monotonic() - began < 10
    [finding] = findings.all
    assert finding.line == line
    assert finding.message.startswith("a document has at most ")
    assert finding.message.endswith(words)


def test_what_is_within_the_bounds_is_read() -> None:
    assert read(nested(98) + " [x]")
    assert len(read(bomb(2))["k1"]) == 10
    assert len(read(f"a: [{'x, ' * 3_000}]")["a"]) == 3_000


def test_a_merge_key_is_a_key_like_any_other() -> None:
    assert read("a: &a {x: 1}\nb:\n  <<: *a") == {"a": {"x": 1}, "b": {"<<": {"x": 1}}}


def test_a_value_that_is_a_part_of_itself_is_one_fault(tmp_path: Path) -> None:
    path = tmp_path / "a.odcs.yaml"
    path.write_text(
        "kind: DataContract\nschema:\n  - name: a\n    properties:\n      - &p {name: a, properties: [*p]}\n"
    )
    assert [f"{f.line}: {f.message}" for f in lint(path)] == ["5: an alias refers to what it stands in"]
