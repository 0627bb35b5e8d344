"""Whatever a column is called: contract, declaration and parser see the same column."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill import Pipeline, Sum, Tumbling
from tidemill.contracts.findings import Level
from tidemill.contracts.lint import lint
from tidemill.contracts.load import load_contract
from tidemill.core.bind.binding import bind
from tidemill.core.declare.columns import HIDDEN_COLUMNS
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.expressions import columns_of
from tidemill.core.sql.functions import WITHOUT_BRACKETS
from tidemill.core.sql.text import quoted

_TEXT = """
    hour year end order from select values case when then else and or not null true false between distinct
    interval date timestamp user current_date current_user left right join on set table group limit window row
    rows over map array struct int string cast trim extract position begin commit desc asc nulls filter all any
    exists like in is attempt_ pane hash sum count key value default
"""
WORDS = _TEXT.split()
NAMES = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from(WORDS).map(str.upper),
    st.text(st.sampled_from("aZ9_ äÖ`.'-{}$é名"), min_size=1, max_size=8).filter(str.strip),
)

CONTRACT = """
apiVersion: v3.1.0
kind: DataContract
id: t
version: 1.0.0
status: active
schema:
  - name: t
    logicalType: object
    customProperties:
      - {{property: format, value: json}}
    properties:
      - {{name: ts, logicalType: timestamp}}
      - {{name: {name}, logicalType: integer}}
    quality:
      - {{type: custom, engine: tidemill, implementation: {rule}}}
"""
TABLE = """
apiVersion: v3.1.0
kind: DataContract
id: out
version: 1.0.0
status: active
schema:
  - name: out
    logicalType: object
    properties:
      - {name: window_start, logicalType: timestamp}
      - {name: window_end, logicalType: timestamp}
      - {name: total, logicalType: integer}
"""


def yaml_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def written(folder: Path, name: str) -> Path:
    path = folder / "t.odcs.yaml"
    rule = f"{quoted(name)} > 1"
    path.write_text(CONTRACT.format(name=yaml_text(name), rule=yaml_text(rule)), encoding="utf-8")
    (folder / "out.odcs.yaml").write_text(TABLE, encoding="utf-8")
    return path


@settings(max_examples=80)
@given(name=NAMES)
def test_contract_and_declaration_see_the_column_that_is_quoted(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    folder = tmp_path_factory.mktemp("names")
    path = written(folder, name)
    wrong = [f for f in lint(path) if f.severity is Level.ERROR]
    if name.lower() in {"ts", *HIDDEN_COLUMNS} or "${" in name:
        assert wrong
        return
    assert not wrong
    contracts = {n: load_contract(folder / f"{n}.odcs.yaml") for n in ("t", "out")}
    with Pipeline("p", every="1 minute") as pipeline:
        rows = pipeline.read("t", contract="t", event_time="ts").filter(f"{quoted(name)} > 1")
        rows = rows.with_columns(copied=f"abs({quoted(name)})")
        rows.window(Tumbling("1 s")).aggregate(total=Sum(f"{quoted(name)} + copied")).publish("out", contract="out")
    flow = bind(pipeline.spec, contracts)
    assert [sink.table for sink in flow.sinks] == ["out"]
    assert columns_of(f"1 + {quoted(name)}") == {name}


@given(name=NAMES)
def test_a_bare_name_is_that_column_or_is_refused(name: str) -> None:
    try:
        found = columns_of(f"{name} > 1")
    except DeclarationError:
        return
    plain = name.replace("_", "").isalnum()
    assert not plain or name.lower() in {"null", "true", "false"} or name.isdigit() or found == {name}
    assert name.lower() not in WITHOUT_BRACKETS
