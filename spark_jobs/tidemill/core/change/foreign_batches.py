"""Open batches that this declaration, or this version of the code, cannot complete: why, in words."""

from __future__ import annotations

from tidemill.core.bind.flow import Flow
from tidemill.core.errors import Incompatible
from tidemill.core.identity.semantics import SEMANTICS, is_ours, version_of
from tidemill.core.plan.plan import BatchPlan


def given_up(plan: BatchPlan) -> str:
    """Why a batch is given up that has published nothing."""
    changed = "the declaration or a contract" if is_ours(plan.semantics) else _versions(plan)
    return f"{changed} changed before anything was published"


def refused(flow: Flow, plan: BatchPlan) -> Incompatible:
    """The error for a batch that this version cannot complete, but that may be published in part."""
    if not is_ours(plan.semantics):
        return Incompatible(
            f"{flow.name}: batch {plan.batch_id} may be published in part, and {_versions(plan)} changed since it was "
            "planned; nothing was moved",
            fix="run it once with the version of Tidemill that planned it, until it has committed; then with this one",
        )
    return Incompatible(
        f"{flow.name}: batch {plan.batch_id} may be published in part, and was planned by another version of the "
        f"declaration or its contracts ({plan.logical_hash[:12]}, now {flow.logical_hash[:12]})",
        fix="put the old version back until this batch has committed, then change it",
    )


def _versions(plan: BatchPlan) -> str:
    return f"what Tidemill computes (version {version_of(plan.semantics)}, now {SEMANTICS})"
