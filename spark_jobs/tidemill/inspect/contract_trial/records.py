"""Tries an input contract on the records of a file, decoded as a pipeline decodes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.contracts.changes.described import Described
from tidemill.contracts.meanings import meaning
from tidemill.core.contract.contract import Contract, Format, Severity
from tidemill.core.contract.reasons import detail_of, sort_of, stored_reason
from tidemill.engine.read.decode import Decoder, decoder_for
from tidemill.inspect.contract_trial.conditions import OpenSpark, broken_records
from tidemill.inspect.contract_trial.outcome import SHOWN, Outcome, Sample, Tried, fix_of, observed

_LONGEST = 300


@dataclass(slots=True)
class _Tally:
    bad: int = 0
    samples: list[Sample] = field(default_factory=list)

    def add(self, number: int, value: bytes | None, detail: str = "") -> None:
        self.bad += 1
        if len(self.samples) < SHOWN:
            shown = "null" if value is None else value.decode("utf-8", "backslashreplace")
            shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
            self.samples.append(Sample(number=number, text=f"{detail}: {shown}" if detail else shown))


@dataclass(slots=True)
class Decoding:
    """Decodes records, and counts by reason those that cannot be."""

    decoder: Decoder
    count: int = 0
    faults: dict[str, _Tally] = field(default_factory=dict)

    @staticmethod
    def of(contract: Contract) -> Decoding:
        """A decoder of the records of a contract; rows of a table are read from JSON."""
        return Decoding(decoder_for(contract if contract.format else replace(contract, format=Format.JSON)))

    def rows(self, values: pa.ChunkedArray) -> tuple[pa.Table, Any]:
        """The rows of the records that can be decoded, and the positions of these records."""
        decoded = self.decoder.decode(values)
        errors = decoded.errors.to_pylist()
        for place in (k for k, error in enumerate(errors) if error is not None):
            reason = stored_reason(errors[place])
            tally = self.faults.setdefault(sort_of(reason), _Tally())
            tally.add(self.count + place + 1, values[place].as_py(), detail_of(reason))
        good = np.array([k for k, error in enumerate(errors) if error is None], dtype=np.int64)
        self.count += len(values)
        return pa.Table.from_batches([decoded.columns]).take(pa.array(good)), good

    def outcomes(self, found: Described) -> Iterator[Outcome]:
        """One broken promise for each reason; or one that holds, if every record can be decoded."""
        for reason, tally in sorted(self.faults.items()):
            line = _line(found, reason)
            fix = f"correct what writes these values, or the type and the format that the contract gives in line {line}"
            yield replace(_outcome(reason, Severity.ERROR, line, tally, self.count), fix=fix, is_rule=False)
        if not self.faults:
            yield Outcome(rule="decoded", severity=Severity.ERROR, line=found.schema.line, is_rule=False)


def try_records(found: Described, chunks: Iterable[pa.ChunkedArray], spark: OpenSpark) -> Tried:
    """Try every promise of an input contract on records that come in chunks."""
    decoding = Decoding.of(found.contract)
    types = {f.name: f.type for f in found.contract.fields}
    tallies: Mapping[str, _Tally] = {name: _Tally() for name in found.rules}
    for values in chunks:
        before = decoding.count
        rows, good = decoding.rows(values)
        for name, rule in found.rules.items():
            for place in broken_records(rule, rows, types, spark, found.contract.source):
                at = int(good[place])
                tallies[name].add(before + at + 1, values[at].as_py())
    ruled = (
        replace(
            _outcome(name, rule.severity, rule.line, tallies[name], decoding.count),
            expected=f"that each record keeps this: {meaning(rule.condition)}",
            fix=fix_of(rule.line),
        )
        for name, rule in found.rules.items()
    )
    return Tried(
        contract=found.contract.name,
        file=found.contract.source,
        noun="record",
        count=decoding.count,
        outcomes=(*decoding.outcomes(found), *ruled),
    )


def _outcome(rule: str, severity: Severity, line: int, tally: _Tally, count: int) -> Outcome:
    said = observed(tally.bad, count, "record")
    return Outcome(rule=rule, severity=severity, line=line, observed=said, samples=tuple(tally.samples))


def _line(found: Described, reason: str) -> int:
    """The line of the field that a reason names, else of the schema object."""
    _, _, rest = reason.partition("(")
    path = tuple(part for name in rest.removesuffix(")").replace("[]", ".[]").split(".") if (part := name))
    return found.line_at(path) if path else found.schema.line
