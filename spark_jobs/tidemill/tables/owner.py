"""Which pipeline a table belongs to: a property of the table, which writers, folds and copies keep.

A table of before has none. There the commits say whose batches it has, and the next write of its owner writes it down.
"""

from __future__ import annotations

import json

from deltalake import CommitProperties, DeltaTable

from tidemill.core.errors import ForeignTable
from tidemill.tables.fence import transactions_of
from tidemill.tables.interface import TableSpec

OWNER = "tidemill.owner"


def owner_of(handle: DeltaTable, wanted: str) -> str | None:
    """The pipeline whose table it is, None when it belongs to nobody yet.

    Whoever has written a table of before owns it, somebody else rather than the one who is `wanted`.
    """
    found = handle.metadata().configuration.get(OWNER)
    if found is not None:
        return str(found)
    writers = {transaction.app_id.partition("/")[0] for transaction in transactions_of(handle)}
    return min(writers, key=lambda writer: (writer == wanted, writer), default=None)


def check_owner(handle: DeltaTable, spec: TableSpec, *, thoroughly: bool = False) -> None:
    """Make sure that the table may be opened by the pipeline that `spec` names; a spec without one may open any.

    Raises:
        ForeignTable: it belongs to another pipeline. Of a table of before that is found out `thoroughly` only.
    """
    if not spec.owner:
        return
    found = owner_of(handle, spec.owner) if thoroughly else handle.metadata().configuration.get(OWNER)
    if found is not None and found != spec.owner:
        raise ForeignTable(
            f"table {spec.name} ({spec.uri}) belongs to pipeline {found}, and not to {spec.owner}; nothing was written",
            fix=f"if {spec.owner} is a new name of {found}: `tidemill rename {found} {spec.owner}`; to take the table "
            f"over with its rows: `tidemill adopt {spec.owner} {spec.name} --why ...`; else publish to another table",
        )


def write_owner(handle: DeltaTable, spec: TableSpec) -> None:
    """Make the table that of the pipeline which `spec` names, unless it is already.

    Raises:
        ForeignTable: it belongs to another pipeline.
        CommitFailedError: somebody else changed the table meanwhile.
    """
    if spec.owner and OWNER not in handle.metadata().configuration:
        check_owner(handle, spec, thoroughly=True)
        hand_over(handle, spec, {})


def hand_over(handle: DeltaTable, spec: TableSpec, said: dict[str, str]) -> None:
    """Make the table that of the pipeline which `spec` names, whoever owns it; the commit keeps what is `said`.

    A write that began before fails, because it was of another owner.

    Raises:
        CommitFailedError: somebody else changed the table meanwhile.
    """
    kept = {"userMetadata": json.dumps({"owner": spec.owner, **said})}
    handle.alter.set_table_properties(
        {OWNER: spec.owner},
        raise_if_not_exists=False,
        commit_properties=CommitProperties(custom_metadata=kept, max_commit_retries=0),
    )
