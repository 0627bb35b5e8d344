"""The audit of staged rows: every table rule of a contract, checked before anyone can see the rows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.contracts.printable import printable_rows
from tidemill.contracts.suite import columns_of
from tidemill.core.contract import Check, Contract, RowCountBetween
from tidemill.core.errors import ContractError
from tidemill.core.verdict import CheckResult, Json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidemill.contracts.audit_engine import Outcome
