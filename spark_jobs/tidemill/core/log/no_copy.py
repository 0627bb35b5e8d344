"""What is left to do when a log lost records for good."""

from __future__ import annotations


def without_copy(pipeline: str = "PIPELINE") -> str:
    """The ways on for somebody who has no copy of what the log lost, to be written behind the better way."""
    return (
        f"if there is no copy: `tidemill rebuild {pipeline} --accept-loss` builds the tables anew from what the log "
        "still holds, so they lose the numbers of lost records; to keep them as they are, declare a pipeline of "
        "another name that publishes other tables"
    )
