"""Reads a script of SQL: which tables it creates, and what later statements change in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.contracts.formats.sources import pick
from tidemill.core.errors import InputError

if TYPE_CHECKING:
    from sqlglot import exp

_ABOUT_OTHER_THINGS = (
    "Set",
    "Use",
    "Insert",
    "Grant",
    "Revoke",
    "Transaction",
    "Commit",
    "Copy",
    "Analyze",
    "Semicolon",
)
"""Statements that say nothing about what a table may hold."""

_WHAT = "CREATE TABLE with columns"
_SHORT = 80


@dataclass(slots=True)
class Created:
    """A statement that creates a table, with what later statements added, and what of these could not be taken over."""

    statement: exp.Create
    comments: dict[str, str] = field(default_factory=dict)
    losses: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Script:
    """The tables of a script, by their whole names in lower case, such as `s1.a`."""

    path: Path
    tables: dict[str, Created] = field(default_factory=dict)
    losses: list[str] = field(default_factory=list)

    @staticmethod
    def of(path: Path, statements: list[exp.Expr]) -> Script:
        """Read the statements in their order.

        Raises:
            InputError: a table is created twice.
        """
        found = Script(path)
        for statement in statements:
            if not found._taken(statement):
                found._lose(statement)
        return found

    def pick(self, picked: str) -> tuple[str, Created]:
        """The name of one table without its schema, and what creates it. `picked` may leave out the schema.

        Raises:
            InputError: there is none, or several fit.
        """
        lasts = [name.rpartition(".")[2] for name in self.tables]
        short = {last: name for last, name in zip(lasts, self.tables, strict=True) if lasts.count(last) == 1}
        wanted = picked.lower()
        known: Mapping[str, Created] = {
            (name if lasts.count(last) > 1 else _name_of(found)): found
            for (name, found), last in zip(self.tables.items(), lasts, strict=True)
        }
        if wanted in self.tables or wanted in short:
            found = self.tables[short.get(wanted, wanted)]
            return _name_of(found), found
        return _name_of(found := pick(self.path, _WHAT, known, picked)[1]), found

    def _taken(self, statement: exp.Expr) -> bool:
        """Whether the statement is applied, or says nothing about tables."""
        from sqlglot import exp  # noqa: PLC0415

        match statement:
            case exp.Create() if statement.kind == "TABLE" and isinstance(statement.this, exp.Schema):
                name = _whole(statement.this.this)
                if name in self.tables:
                    raise InputError(f"{self.path}: the table `{name}` is created 2 times", fix="remove one of them")
                self.tables[name] = Created(statement)
            case exp.Create() if statement.kind == "INDEX":
                return self._index(statement)
            case exp.Create():
                return statement.kind in ("SCHEMA", "DATABASE", "SEQUENCE")
            case exp.Drop():
                # Scripts often begin with DROP TABLE IF EXISTS.
                names = [_whole(table) for table in statement.args.get("tables") or []]
                return statement.kind == "TABLE" and all(self.tables.pop(name, None) is None or True for name in names)
            case exp.Alter():
                return self._alter(statement)
            case exp.Comment():
                return self._comment(statement)
            case _:
                return type(statement).__name__ in _ABOUT_OTHER_THINGS
        return True

    def _alter(self, statement: exp.Alter) -> bool:
        from sqlglot import exp  # noqa: PLC0415

        created = self.tables.get(_whole(statement.this))
        if created is None:
            return False
        for action in statement.args.get("actions") or []:
            match action:
                case exp.AddConstraint() | exp.Schema():
                    created.statement.this.expressions.extend(action.expressions)
                case exp.ColumnDef():
                    created.statement.this.expressions.append(action)
                case exp.AlterColumn() if action.args.get("allow_null") is False and (c := _column(created, action)):
                    c.append("constraints", exp.ColumnConstraint(kind=exp.NotNullColumnConstraint()))
                case exp.Drop() if action.kind == "COLUMN":
                    gone = {table.name.lower() for table in action.args.get("tables") or [action.this] if table}
                    parts = created.statement.this.expressions
                    kept = [p for p in parts if not isinstance(p, exp.ColumnDef) or p.name.lower() not in gone]
                    created.statement.this.set("expressions", kept)
                case _:
                    created.losses.append(_ignored(statement))
        return True

    def _index(self, statement: exp.Create) -> bool:
        from sqlglot import exp  # noqa: PLC0415

        created = self.tables.get(_whole(statement.this.args.get("table")))
        if not statement.args.get("unique"):
            return True
        parameters = statement.this.args.get("params")
        columns = list(parameters.find_all(exp.Column)) if parameters else []
        if created is None:
            return False
        unique = exp.UniqueColumnConstraint(this=exp.Schema(expressions=[exp.to_identifier(c.name) for c in columns]))
        partial = parameters is not None and parameters.args.get("where") is not None
        if partial or not columns:
            created.losses.append(_ignored(statement))
        else:
            created.statement.this.expressions.append(unique)
        return True

    def _comment(self, statement: exp.Comment) -> bool:
        from sqlglot import exp  # noqa: PLC0415

        target, text = statement.this, " ".join(statement.expression.name.split())
        if isinstance(target, exp.Column):
            table, column = ".".join(part.name.lower() for part in target.parts[:-1]), target.name.lower()
        else:
            table, column = _whole(target), ""
        if table not in self.tables or statement.args.get("kind") not in ("TABLE", "COLUMN"):
            return False
        self.tables[table].comments[column] = text
        return True

    def _lose(self, statement: exp.Expr) -> None:
        self.losses.append(_ignored(statement))


def _column(created: Created, action: exp.AlterColumn) -> exp.ColumnDef | None:
    from sqlglot import exp  # noqa: PLC0415

    columns = (part for part in created.statement.this.expressions if isinstance(part, exp.ColumnDef))
    return next((column for column in columns if column.name.lower() == action.name.lower()), None)


def _name_of(created: Created) -> str:
    return str(created.statement.this.this.name)


def _whole(table: exp.Expr | None) -> str:
    return "" if table is None else ".".join(part.name.lower() for part in getattr(table, "parts", [table]))


def _ignored(statement: exp.Expr) -> str:
    text = " ".join(statement.sql("spark").split())
    return f"{text if len(text) <= _SHORT else f'{text[:_SHORT]}...'} is not applied"
