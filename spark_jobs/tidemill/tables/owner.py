"""Which pipeline a table belongs to: a table property, which writers, compactions and copies keep.

An older table lacks the property. There the commits show whose batches it has, and the owner's next write sets it.
"""

from __future__ import annotations

import json

from deltalake import CommitProperties, DeltaTable

from tidemill.core.errors import ForeignTable
from tidemill.tables.fence import transactions_of
from tidemill.tables.interface import TableSpec

OWNER = "tidemill.owner"


def owner_of(handle: DeltaTable, wanted: str) -> str | None:
    """The pipeline that the table belongs to; None when it belongs to nobody yet.

    An older table belongs to the pipeline that has written it. If several have, the answer is not `wanted`.
    """
    found = handle.metadata().configuration.get(OWNER)
    if found is not None:
        return str(found)
    writers = {transaction.app_id.partition("/")[0] for transaction in transactions_of(handle)}
    return min(writers, key=lambda writer: (writer == wanted, writer), default=None)


def check_owner(handle: DeltaTable, spec: TableSpec, *, thoroughly: bool = False) -> None:
    """Check that the pipeline which `spec` names may open the table; a spec without owner may open any table.

    Raises:
        ForeignTable: it belongs to another pipeline. For an older table, only a `thoroughly` check finds out.
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
    """Set the owner that `spec` names, unless the table has an owner already.

    Raises:
        ForeignTable: it belongs to another pipeline.
        CommitFailedError: another process changed the table meanwhile.
    """
    if spec.owner and OWNER not in handle.metadata().configuration:
        check_owner(handle, spec, thoroughly=True)
        hand_over(handle, spec, {})


def hand_over(handle: DeltaTable, spec: TableSpec, said: dict[str, str]) -> None:
    """Set the owner that `spec` names, whoever owned the table before; the commit keeps what is `said`.

    A write that began before fails, because the table has changed.

    Raises:
        CommitFailedError: another process changed the table meanwhile.
    """
    kept = {"userMetadata": json.dumps({"owner": spec.owner, **said})}
    handle.alter.set_table_properties(
        {OWNER: spec.owner},
        raise_if_not_exists=False,
        commit_properties=CommitProperties(custom_metadata=kept, max_commit_retries=0),
    )
