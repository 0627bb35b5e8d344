"""Pipelines under other names, and other projects on the same lake."""

from __future__ import annotations

from pathlib import Path

from support.projects import Mill
from tidemill.project.project import Project


def called(mill: Mill, name: str) -> Mill:
    """The project with its pipeline under another name, as if somebody had edited the file."""
    file = mill.project.folder / "pipelines" / "pipeline.py"
    text = file.read_text().replace(f'Pipeline("{mill.name}"', f'Pipeline("{name}"')
    file.write_text(text)
    return Mill(Project.load(mill.project.folder), mill.session, name)


def beside(mill: Mill, folder: Path, name: str) -> Mill:
    """Another project on the same lake and log, whose pipeline publishes the same table."""
    for part in ("pipelines", "data_contracts"):
        (folder / part).mkdir(parents=True, exist_ok=True)
        for file in (mill.project.folder / part).iterdir():
            text = file.read_text().replace(f'Pipeline("{mill.name}"', f'Pipeline("{name}"')
            (folder / part / file.name).write_text(text)
    settings = (mill.project.folder / "tidemill.toml").read_text()
    lake, log = mill.project.settings.lake, mill.project.settings.log
    (folder / "tidemill.toml").write_text(f'{settings}[lake]\npath = "{lake}"\n[log]\npath = "{log}"\n')
    return Mill(Project.load(folder), mill.session, name)
