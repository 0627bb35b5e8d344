"""The formats of other tools."""

from __future__ import annotations

from enum import StrEnum


class Other(StrEnum):
    """A format of other tools."""

    JSON_SCHEMA = "json-schema"
    AVRO = "avro"
    SQL = "sql"
    DBT = "dbt"
