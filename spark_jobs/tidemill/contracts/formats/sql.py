"""Contracts of tables from and to CREATE TABLE."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.contracts.changes.described import Described
from tidemill.contracts.conditions import Condition
from tidemill.contracts.formats.draft import Column, Draft, Stated, whole_key
from tidemill.contracts.formats.exporting import Exported, Rules
from tidemill.contracts.formats.sources import name_for, text_of
from tidemill.contracts.formats.sql_checks import Checks, add_check, checks_of, column_of, pairs_of, parts_of
from tidemill.contracts.formats.sql_script import Created, Script
from tidemill.contracts.formats.sql_types import counts_up, options_of_sql, type_of_sql
from tidemill.core.contract.contract import LengthBetween
from tidemill.core.contract.schema import DataType, Field, Scalar, spark_type
from tidemill.core.errors import InputError
from tidemill.core.sql.text import quoted, text_literal

if TYPE_CHECKING:
    from sqlglot import exp

DIALECT = "spark"


def of_sql(path: Path, picked: str, dialect: str) -> Draft:
    """The contract of a table that a statement creates; `picked` names one of several.

    Raises:
        InputError: the file is not SQL of this dialect, or creates no table with columns.
    """
    script = Script.of(path, _statements(path, dialect))
    name, created = script.pick(picked)
    return _Table(name, path, [*script.losses, *created.losses]).draft(created)


def _statements(path: Path, dialect: str) -> list[exp.Expr]:
    import sqlglot  # noqa: PLC0415
    from sqlglot.errors import SqlglotError  # noqa: PLC0415

    text = text_of(path)
    # It logs what it cannot parse, which is told as left out, anyway.
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    try:
        return [found for found in sqlglot.parse(text, dialect=dialect) if found is not None]
    except SqlglotError as error:
        first = (getattr(error, "errors", None) or [{}])[0]
        said = first.get("description") or str(error).splitlines()[0]
        raise InputError(
            f"{path}:{first.get('line', 1)}: not SQL of {dialect}: {said}", fix="give the dialect with --dialect"
        ) from error
    except ValueError as error:
        raise InputError(f"--dialect {dialect}: {str(error).splitlines()[0]}", fix="for example postgres") from error
    except RecursionError:
        raise InputError(f"{path}: nested too deep") from None


@dataclass(slots=True)
class _Table:
    name: str
    path: Path
    losses: list[str] = field(default_factory=list)
    key: list[str] = field(default_factory=list)
    single: set[str] = field(default_factory=set)
    needed: set[str] = field(default_factory=set)
    comments: Mapping[str, str] = field(default_factory=dict)
    checks: dict[str, list[exp.Expr]] = field(default_factory=dict)
    stated: list[Stated] = field(default_factory=list)
    names: Mapping[str, str] = field(default_factory=dict)

    def draft(self, created: Created) -> Draft:
        from sqlglot import exp  # noqa: PLC0415

        table = created.statement
        self.comments = created.comments
        parts = table.this.expressions
        self.names = {part.name.lower(): part.name for part in parts if isinstance(part, exp.ColumnDef)}
        for part in parts:
            if not isinstance(part, exp.ColumnDef):
                self._constraint(part)
        columns = list(self._columns([part for part in parts if isinstance(part, exp.ColumnDef)]))
        columns = whole_key(columns, self.key, self.losses)
        for name, checks in self.checks.items():
            for check in checks:
                self._lose(check, f"`{name}`")
        ordered = sorted(columns, key=lambda c: self.key.index(c.field.name.lower()) if c.key else len(self.key))
        if self.key and [c.field.name for c in columns if c.key] != [c.field.name for c in ordered if c.key]:
            columns = ordered
        comment = table.find(exp.SchemaCommentProperty)
        return Draft(
            name=name_for(self.name, self.path),
            description=created.comments.get("")
            or (comment.this.name if comment else "")
            or f"Imported from {self.path.name}.",
            columns=tuple(columns),
            rules=tuple(self.stated),
            losses=tuple(self.losses),
        )

    def _constraint(self, part: exp.Expr) -> None:
        """A constraint of the whole table."""
        from sqlglot import exp  # noqa: PLC0415

        kinds = part.expressions if isinstance(part, exp.Constraint) else [part]
        for kind in kinds:
            names = [e.name.lower() for e in kind.find_all(exp.Identifier)]
            if isinstance(kind, exp.PrimaryKey):
                self.key = names
            elif isinstance(kind, exp.UniqueColumnConstraint) and len(names) == 1:
                self.single.add(names[0])
            elif isinstance(kind, exp.CheckColumnConstraint):
                self._check(kind, "the table", part.name if isinstance(part, exp.Constraint) else "")
            else:
                self._lose(kind, "the table")

    def _check(self, check: exp.CheckColumnConstraint, where: str, name: str = "") -> None:
        """A CHECK of one column, or one that compares two."""
        if column := column_of(check):
            self.checks.setdefault(column, []).append(check)
        elif pairs := pairs_of(check, self.names):
            self.stated += [Stated(predicate=each, name=name if len(pairs) == 1 else "") for each in pairs]
        elif len(parts := parts_of(check)) > 1:
            # A constraint of several parts is as many constraints.
            for part in parts:
                self._check(part, where)
        else:
            self._lose(check, where)

    def _lose(self, part: exp.Expr, where: str) -> None:
        self.losses.append(f"{part.sql(DIALECT)} of {where} is left out: contracts cannot say it")

    def _columns(self, parts: list[exp.ColumnDef]) -> Iterator[Column]:
        for part in parts:
            said = self._constraints(part)
            kind = part.args.get("kind")
            typed = None if kind is None else type_of_sql(kind, part.name, self.losses)
            if kind is None:
                self.losses.append(f"`{part.name}` is left out: it has no type")
            if kind is None or typed is None:
                continue
            checks = self._checks(part.name, typed)
            key = part.name.lower() in self.key
            required = part.name.lower() in self.needed or key or counts_up(kind)
            yield Column(
                field=Field(name=part.name, type=typed, required=required, description=said),
                key=key,
                unique=part.name.lower() in self.single,
                options=checks.beside(options_of_sql(kind, typed)),
                allowed=checks.allowed,
            )

    def _checks(self, column: str, typed: DataType) -> Checks:
        """What the CHECK constraints of a column say; those that a contract cannot say are noted."""
        found = Checks()
        for check in self.checks.pop(column.lower(), []):
            new = Checks(dict(found.options), found.allowed)
            if add_check(new, check) and new.fits(typed):
                found = new
            else:
                self._lose(check, f"`{column}`")
        return found

    def _constraints(self, part: exp.ColumnDef) -> str:
        """Note the constraints of a column, and return its comment."""
        from sqlglot import exp  # noqa: PLC0415

        comment, name = "", part.name.lower()
        for constraint in part.constraints:
            match constraint.kind:
                case exp.NotNullColumnConstraint() as kind:
                    self.needed |= set() if kind.args.get("allow_null") else {name}
                case exp.PrimaryKeyColumnConstraint():
                    self.key.append(name)
                case exp.UniqueColumnConstraint():
                    self.single.add(name)
                case exp.CommentColumnConstraint() as kind:
                    comment = " ".join(kind.this.name.split())
                case exp.CheckColumnConstraint() as kind:
                    self._check(kind, f"`{part.name}`")
                case exp.GeneratedAsIdentityColumnConstraint() as kind:
                    self.needed.add(name)
                    self._lose(kind, f"`{part.name}`")
                case kind:
                    self._lose(kind, f"`{part.name}`")
        return self.comments.get(name, comment)


def to_sql(source: Described) -> Exported:
    """The contract as CREATE TABLE in the SQL of Spark."""
    contract, rules = source.contract, Rules(source, "CREATE TABLE")
    lines = [_column(f, rules) for f in contract.fields]
    if key := rules.takes_key():
        lines.append(f"PRIMARY KEY ({', '.join(map(quoted, key))})")
    lines += [f"UNIQUE ({quoted(f.name)})" for f in contract.fields if rules.is_unique(f.name)]
    lines += [f"CHECK ({quoted(c.left)} {c.operator} {quoted(c.right)})" for c in rules.compared()]
    body = ",\n  ".join(lines)
    comment = f" COMMENT {text_literal(contract.description)}" if contract.description else ""
    return Exported(text=f"CREATE TABLE {quoted(contract.name)} (\n  {body}\n){comment};\n", losses=rules.losses())


def sql_type(field_: Field, rules: Rules) -> str:
    """The type of a column in the SQL of Spark, with the greatest length of a text."""

    def is_length(condition: Condition) -> bool:
        return isinstance(condition, LengthBetween) and not condition.minimum and (condition.maximum or 0) > 0

    sizes = rules.of_column(field_.name, is_length) if field_.type is Scalar.STRING else []
    most = min((c.maximum for c in sizes if isinstance(c, LengthBetween) and c.maximum), default=0)
    _note_inner(field_, rules)
    return f"varchar({most})" if most else spark_type(field_.type)


def _note_inner(field_: Field, rules: Rules) -> None:
    from tidemill.contracts.rules import required_paths  # noqa: PLC0415

    for path in required_paths(field_.type):
        rules.lose(f"`{'.'.join((field_.name, *path))}` may be null: SQL cannot say what is required inside")


def _column(field_: Field, rules: Rules) -> str:
    parts = [quoted(field_.name), sql_type(field_, rules)]
    parts += ["NOT NULL"] if rules.required(field_.name) else []
    parts += checks_of(field_, rules, {f.name: f.type for f in rules.source.contract.fields})
    parts += [f"COMMENT {text_literal(field_.description)}"] if field_.description else []
    return " ".join(parts)
