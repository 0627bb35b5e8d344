"""Tries the contract of a table on rows: of a Delta table, a Parquet file, or records in JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.contracts.audit import audit
from tidemill.contracts.changes.described import Described
from tidemill.contracts.meanings import expected, looks_at
from tidemill.contracts.outcomes import columns_of
from tidemill.core.contract.contract import Contract, Expectation, RowCountBetween, Severity, TableRule, Unique
from tidemill.core.contract.fitting import Fit, fit
from tidemill.core.contract.schema import Field, spark_type
from tidemill.core.contract.verdict import CheckResult
from tidemill.core.counts import many
from tidemill.core.errors import InputError
from tidemill.inspect.contract_trial.conditions import OpenSpark, where
from tidemill.inspect.contract_trial.outcome import SHOWN, Outcome, Sample, Tried, fix_of
from tidemill.inspect.contract_trial.records import Decoding
from tidemill.tables.arrow_types import arrow_type, data_type


def try_rows(found: Described, rows: pa.Table, spark: OpenSpark) -> Tried:
    """Try every promise of a table's contract on all of these rows together."""
    wrong = {f.name: said for f in found.contract.fields if (said := _misfit(f, rows.schema) or _loss(f, rows))}
    return _tried(found, _typed(found.contract, rows, wrong), (), wrong, spark)


def try_json_rows(found: Described, chunks: Iterable[pa.ChunkedArray], spark: OpenSpark) -> Tried:
    """Try every promise of a table's contract on rows that are written in JSON."""
    decoding = Decoding.of(found.contract)
    rows = pa.concat_tables([decoding.decoder.schema.empty_table(), *(decoding.rows(values)[0] for values in chunks)])
    tried = _tried(found, rows, tuple(decoding.outcomes(found)), {}, spark)
    return replace(tried, count=decoding.count, outcomes=tuple(_without(tried, found, decoding.count - len(rows))))


def _without(tried: Tried, found: Described, unread: int) -> Iterator[Outcome]:
    """The outcomes; rules that count rows are not judged without those that could not be read."""
    counting = {rule.name: rule for rule in found.contract.table_rules if _counts(rule)}
    for outcome in tried.outcomes:
        rule = counting.get(outcome.rule) if unread else None
        # A key that stands twice among some rows stands twice among all.
        if rule is None or (outcome.observed and isinstance(rule.check, Unique)):
            yield outcome
        else:
            said = f"cannot be checked: {many(unread, 'row')} could not be read"
            yield replace(outcome, observed=said, samples=(), fix="mend the rows that cannot be read first")


def _counts(rule: TableRule) -> bool:
    return rule.tolerance is not None or isinstance(rule.check, Unique | RowCountBetween | Expectation)


def rows_of_delta(uri: str, columns: Iterable[str] | None, options: Mapping[str, str]) -> pa.Table:
    """The rows of the newest version of a Delta table, of these columns where it has them; None means all.

    Raises:
        TableDamaged: the table's log is damaged.
        EngineError: the table cannot be opened.
        InputError: one of its files cannot be read.
    """
    from tidemill.tables.handles import open_table
    from tidemill.tables.interface import TableSpec

    handle = open_table(TableSpec(name=Path(uri).name, uri=uri, fields=(), storage=lambda: options))
    known = pa.schema(handle.schema().to_arrow()).names
    columns = None if columns is None else set(columns)
    try:
        return handle.to_pyarrow_table(columns=[c for c in known if columns is None or c in columns])
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{uri}: its rows cannot be read: {error}") from error


def rows_of_parquet(path: str) -> pa.Table:
    """The rows of a Parquet file.

    Raises:
        InputError: there is no such file, or it is not Parquet.
    """
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    if not Path(path).exists():
        raise InputError(f"{path}: there is no such file", fix="check its path")
    try:
        names = pq.read_schema(path).names
        if (twice := next((name for name in names if names.count(name) > 1), None)) is not None:
            raise InputError(f"{path}: the column `{twice}` stands twice in it", fix="write it with one of them only")
        return pq.read_table(path, partitioning=None)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read as Parquet: {error}", fix="check the file and its format") from error


def _tried(
    found: Described, rows: pa.Table, decoded: tuple[Outcome, ...], wrong: Mapping[str, str], spark: OpenSpark
) -> Tried:
    contract = found.contract
    can = [rule for rule in contract.table_rules if not set(columns_of(rule.check)) & wrong.keys()]
    audited = audit(contract.name, rows, replace(contract, table_rules=tuple(can)), where=where(spark, found))
    results = {r.rule: r for r in audited}
    typed = [_of_column(found, field, wrong.get(field.name, "")) for field in contract.fields]
    return Tried(
        contract=contract.name,
        file=contract.source,
        noun="row",
        count=rows.num_rows,
        outcomes=(*decoded, *([] if decoded else typed), *_of_rules(found, results, wrong)),
    )


def _misfit(field: Field, schema: pa.Schema) -> str:
    """Why a column does not hold what the contract says; empty if it does."""
    if field.name not in schema.names:
        return "there is no such column"
    arrow = schema.field(field.name).type
    try:
        kind = data_type(arrow)
    except ValueError:
        return f"the column is {arrow}, the contract says {spark_type(field.type)}"
    if fit(kind, field.type) is not Fit.FITS:
        return f"the column is {spark_type(kind)}, the contract says {spark_type(field.type)}"
    return ""


def _loss(field: Field, rows: pa.Table) -> str:
    """Why a column of a type that fits does not keep its values; empty if it does."""
    try:
        rows.column(field.name).cast(arrow_type(field.type))
    except pa.ArrowInvalid as error:
        found = rows.schema.field(field.name).type
        return f"the column is {found}, and {spark_type(field.type)} cannot hold all of its values: {error}"
    return ""


def _typed(contract: Contract, rows: pa.Table, wrong: Mapping[str, str]) -> pa.Table:
    """The columns of the contract that are not wrong, in its types."""
    good = [field for field in contract.fields if field.name not in wrong]
    # A table without columns has no rows in Arrow, but these rows are there.
    if not good:
        return pa.table({"_row": pa.nulls(rows.num_rows)})
    return pa.table({f.name: rows.column(f.name).cast(arrow_type(f.type)) for f in good})


def _of_column(found: Described, field: Field, said: str) -> Outcome:
    line = found.line_at((field.name,))
    fix = f"give the table this column as {spark_type(field.type)}, or correct the contract in line {line}"
    return Outcome(rule=f"{field.name}.type", severity=Severity.ERROR, line=line, observed=said, fix=fix, is_rule=False)


def _of_rules(found: Described, results: Mapping[str, CheckResult], wrong: Mapping[str, str]) -> Iterator[Outcome]:
    for rule in found.contract.table_rules:
        stated = found.rules.get(rule.name)
        columns = columns_of(rule.check)
        line = stated.line if stated else found.line_at(columns[:1])
        samples: tuple[Sample, ...] = ()
        fix = fix_of(line)
        if rule.name not in results:
            missing = next(c for c in columns if c in wrong)
            said, fix = f"cannot be checked: `{missing}` is wrong", f"mend `{missing}` first"
        else:
            result = results[rule.name]
            rows = result.failing_rows[:SHOWN]
            said = "" if result.passed else result.observed or "does not hold"
            samples = tuple(
                Sample(number=0, text=json.dumps(dict(row), ensure_ascii=False, default=str)) for row in rows
            )
        yield Outcome(
            rule=rule.name,
            severity=rule.severity,
            line=line,
            observed=said,
            expected=expected(rule.check, rule.tolerance),
            looks_at=looks_at(rule),
            fix=fix,
            samples=samples,
        )
