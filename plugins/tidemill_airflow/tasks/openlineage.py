"""Lineage of batches for Airflow's OpenLineage provider. Only the provider calls it, so only then it is imported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs
from airflow.providers.openlineage import conf
from airflow.providers.openlineage.extractors import OperatorLineage
from airflow.providers.openlineage.plugins import macros
from airflow.providers.openlineage.plugins.adapter import OpenLineageAdapter
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    RunFacet,
    column_lineage_dataset,
    dataset_version_dataset,
    documentation_dataset,
    input_statistics_input_dataset,
    output_statistics_output_dataset,
    parent_run,
    schema_dataset,
    storage_dataset,
)
from openlineage.client.uuid import generate_static_uuid

from tidemill.core.contract.contract import Contract
from tidemill.core.contract.schema import Array, DataType, Field, Object, spark_type
from tidemill.core.protocol.summary import ACCOUNT
from tidemill.inspect.column_lineage import Origin, Way
from tidemill_airflow.tasks.lineage import BatchLineage, Place, Table, Topic

FACET = "tidemill_batch"
"""The name of the facet of a run that has the facts of its batch."""

_TOLD = ("batch_id", "attempt", "kind", "offsets", "watermark", "verdict", *ACCOUNT)

_WAYS = {
    Way.IDENTITY: ("DIRECT", "IDENTITY"),
    Way.TRANSFORMATION: ("DIRECT", "TRANSFORMATION"),
    Way.AGGREGATION: ("DIRECT", "AGGREGATION"),
    Way.FILTER: ("INDIRECT", "FILTER"),
    Way.GROUP: ("INDIRECT", "GROUP_BY"),
    Way.WINDOW: ("INDIRECT", "WINDOW"),
}


@attrs.define
class TidemillBatchRunFacet(RunFacet):
    """The batch that a run committed: what it read, how it was judged, and where it left the watermark."""

    pipeline: str
    batch: dict[str, Any]


def lineage_of(batches: Sequence[BatchLineage], task_instance: Any) -> OperatorLineage[Any, Any] | None:
    """The lineage of a task's last batch, for the event that the provider sends when the task ends; None if none is.

    The batches before it have an event each, which is sent here: a run of the same job with the task's run as parent.
    """
    if not batches:
        return None
    for batch in batches[:-1]:
        OpenLineageAdapter().emit(_event(batch, task_instance))
    last = batches[-1]
    return OperatorLineage(inputs=_inputs(last), outputs=_outputs(last), run_facets=_run_facets(last))


def _event(batch: BatchLineage, ti: Any) -> RunEvent:
    namespace, name = conf.namespace(), macros.lineage_job_name(ti)
    # The same batch has the same id, whoever sends it again.
    run_id = generate_static_uuid(batch.at, f"{batch.pipeline}/{batch.facts['batch_id']}".encode())
    parent = parent_run.ParentRunFacet(
        run=parent_run.Run(runId=macros.lineage_run_id(ti)),
        job=parent_run.Job(namespace=namespace, name=name),
        root=parent_run.Root(
            run=parent_run.RootRun(runId=macros.lineage_root_run_id(ti)),
            job=parent_run.RootJob(
                namespace=macros.lineage_root_job_namespace(ti), name=macros.lineage_root_job_name(ti)
            ),
        ),
    )
    return RunEvent(
        eventType=RunState.COMPLETE,
        eventTime=batch.at.isoformat(),
        run=Run(runId=str(run_id), facets={**_run_facets(batch), "parent": parent}),
        job=Job(namespace=namespace, name=name),
        inputs=_inputs(batch),
        outputs=_outputs(batch),
    )


def _run_facets(batch: BatchLineage) -> dict[str, Any]:
    told = {name: batch.facts[name] for name in _TOLD}
    return {FACET: TidemillBatchRunFacet(pipeline=batch.pipeline, batch=told)}


def _inputs(batch: BatchLineage) -> list[InputDataset]:
    return [
        InputDataset(
            namespace=topic.place.namespace,
            name=topic.place.name,
            facets={} if topic.contract is None else _described(topic.contract),
            inputFacets=_counted(topic),
        )
        for topic in batch.topics
    ]


def _counted(topic: Topic) -> dict[str, Any]:
    if topic.records is None:
        return {}
    return {"inputStatistics": input_statistics_input_dataset.InputStatisticsInputDatasetFacet(rowCount=topic.records)}


def _outputs(batch: BatchLineage) -> list[OutputDataset]:
    return [
        OutputDataset(
            namespace=table.place.namespace,
            name=table.place.name,
            facets={**_described(table.contract), **_stored(table), "columnLineage": _columns(table)},
            outputFacets={
                "outputStatistics": output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
                    rowCount=table.rows
                )
            },
        )
        for table in batch.tables
    ]


def _stored(table: Table) -> dict[str, Any]:
    if table.version is None:
        return {}
    return {
        "version": dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=str(table.version)),
        "storage": storage_dataset.StorageDatasetFacet(storageLayer="delta", fileFormat="parquet"),
    }


def _described(contract: Contract) -> dict[str, Any]:
    found: dict[str, Any] = {"schema": schema_dataset.SchemaDatasetFacet(fields=_fields(contract.fields))}
    if contract.description:
        found["documentation"] = documentation_dataset.DocumentationDatasetFacet(description=contract.description)
    return found


def _fields(fields: Iterable[Field]) -> list[schema_dataset.SchemaDatasetFacetFields]:
    return [
        schema_dataset.SchemaDatasetFacetFields(
            name=each.name,
            type=spark_type(each.type),
            description=each.description or None,
            ordinal_position=number,
            fields=_fields(_inside(each.type)),
        )
        for number, each in enumerate(fields, start=1)
    ]


def _inside(kind: DataType) -> tuple[Field, ...]:
    match kind:
        case Object(fields):
            return fields
        case Array(item):
            return _inside(item)
        case _:
            return ()


def _columns(table: Table) -> column_lineage_dataset.ColumnLineageDatasetFacet:
    fields: dict[str, list[Any]] = {}
    rows: list[Any] = []
    for place, came in table.came_from:
        for name, found in came.columns.items():
            if found:
                fields.setdefault(name, []).extend(_input_fields(place, found))
        rows += _input_fields(place, came.rows)
    return column_lineage_dataset.ColumnLineageDatasetFacet(
        fields={name: column_lineage_dataset.Fields(inputFields=inputs) for name, inputs in fields.items()},
        dataset=rows,
    )


def _input_fields(place: Place, found: Iterable[Origin]) -> list[column_lineage_dataset.InputField]:
    ways: dict[str, list[Any]] = {}
    for origin in sorted(found):
        kind, subtype = _WAYS[origin.way]
        ways.setdefault(origin.column, []).append(column_lineage_dataset.Transformation(type=kind, subtype=subtype))
    return [
        column_lineage_dataset.InputField(
            namespace=place.namespace, name=place.name, field=column, transformations=transformations
        )
        for column, transformations in ways.items()
    ]
