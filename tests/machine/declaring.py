"""The pipeline `sums` declared anew: with other tables, each with a filter that leaves out one user."""

from __future__ import annotations

from collections.abc import Mapping

from support.projects import SUMS_CONTRACT, Mill
from tidemill.project.project import Project

PIPELINE = """
from tidemill import Count, Pipeline, Sliding, Sum, Tumbling

with Pipeline("NAME", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts")
    for table, user in TABLES.items():
        (
            events.filter(f"coalesce(user, '') != '{user}'")
            .with_columns(user="coalesce(user, 'unknown')")
            .key_by("user")
            .window(WINDOW, allowed_lateness="LATENESS")
            .aggregate(n=Count(), amount=Sum("amount"))
            .publish(table, contract=table, trigger="TRIGGER")
        )
"""


def declare(
    mill: Mill,
    tables: Mapping[str, str],
    *,
    lateness: str = "10 s",
    window: str = 'Tumbling("10 seconds")',
    trigger: str = "on_close",
) -> Mill:
    """The project with a pipeline that publishes these tables, each without the user named."""
    text = PIPELINE.replace("NAME", mill.name).replace("TABLES", repr(dict(tables))).replace("WINDOW", window)
    folder = mill.project.folder
    (folder / "pipelines" / "pipeline.py").write_text(text.replace("LATENESS", lateness).replace("TRIGGER", trigger))
    for table in tables:
        contract = SUMS_CONTRACT.replace("id: sums", f"id: {table}").replace("- name: sums", f"- name: {table}")
        (folder / "data_contracts" / f"{table}.odcs.yaml").write_text(contract)
    return Mill(Project.load(folder), mill.session, mill.name)
