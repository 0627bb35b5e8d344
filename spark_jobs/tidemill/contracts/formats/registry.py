"""The formats that contracts are imported from and exported to."""

from __future__ import annotations

from pathlib import Path
from typing import assert_never

from tidemill.contracts.changes.described import Described
from tidemill.contracts.formats.draft import Draft
from tidemill.contracts.formats.exporting import Exported
from tidemill.contracts.formats.others import Other


def imported(other: Other, path: Path, picked: str, dialect: str) -> Draft:
    """What a file in another format says, as a draft of a contract.

    Raises:
        InputError: the file is not of this format, or says nothing that a contract could say.
    """
    from tidemill.contracts.formats import avro, dbt, json_schema_reading, sql  # noqa: PLC0415

    match other:
        case Other.JSON_SCHEMA:
            return json_schema_reading.of_json_schema(path, picked)
        case Other.AVRO:
            return avro.of_avro(path)
        case Other.SQL:
            return sql.of_sql(path, picked, dialect)
        case Other.DBT:
            return dbt.of_dbt(path, picked, dialect)
        case _:
            assert_never(other)


def exported(other: Other, source: Described) -> Exported:
    """A contract in another format, and what that does not say.

    Raises:
        InputError: nothing of the contract can be said in the format.
    """
    from tidemill.contracts.formats import avro, dbt, json_schema, sql  # noqa: PLC0415

    match other:
        case Other.JSON_SCHEMA:
            return json_schema.to_json_schema(source)
        case Other.AVRO:
            return avro.to_avro(source)
        case Other.SQL:
            return sql.to_sql(source)
        case Other.DBT:
            return dbt.to_dbt(source)
        case _:
            assert_never(other)
