"""What the pipeline files of a project declare. A fault in one file or pipeline does not stop the others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tidemill.core.declare.columns import unknown
from tidemill.core.declare.operators import Publish
from tidemill.core.declare.pipeline import Pipeline
from tidemill.core.declare.places import lines_in
from tidemill.core.errors import ConfigError, DeclarationError
from tidemill.project.senders import without_sender

_DECLARED = re.compile(r"""\bPipeline\(\s*(?:name\s*=\s*)?["']([^"'\n]+)["']""")


class Load(Protocol):
    """Loads files together and returns what each declares, or what is wrong with it."""

    def __call__(
        self, paths: Iterable[Path], *, wanted: str | None
    ) -> Mapping[Path, tuple[Pipeline, ...] | DeclarationError]:
        """Load the files and keep their order; `wanted` is the pipeline that the caller waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declarations:
    """What the files of a folder declare.

    `pipelines` can be bound to their contracts. `refused` are declared, but share their name or a published table with
    another pipeline, or have their watermark of one that cannot tell it. `unloaded` are files that could not be loaded,
    so what they declare is not known; `empty` are files that declare nothing.
    """

    folder: str
    pipelines: Mapping[str, Pipeline] = field(default_factory=dict)
    refused: Mapping[str, DeclarationError] = field(default_factory=dict)
    unloaded: Mapping[Path, DeclarationError] = field(default_factory=dict)
    empty: tuple[Path, ...] = ()

    @property
    def faults(self) -> tuple[DeclarationError, ...]:
        """Every fault, each one once."""
        return tuple(dict.fromkeys((*self.unloaded.values(), *self.refused.values())))

    @property
    def stopped(self) -> Mapping[str, DeclarationError]:
        """What stops each pipeline that cannot be bound, by its name.

        A file that could not be loaded stops the pipelines that its text declares. If the text shows none of which
        nothing else is known, it stops one that is called as the file.
        """
        found = dict(self.refused)
        for path, error in self.unloaded.items():
            known = found.keys() | self.pipelines.keys()
            names = [name for name in _named_in(path) if name not in known]
            found |= dict.fromkeys(names or [path.stem if path.stem not in known else path.name], error)
        return found

    def knows(self, name: str) -> bool:
        """Whether a file declares this pipeline, or could not be loaded and seems to declare it."""
        return name in self.pipelines or name in self.refused or any(_mentions(path, name) for path in self.unloaded)

    def pipeline(self, name: str) -> Pipeline:
        """Return the pipeline with this name.

        Raises:
            DeclarationError: the pipeline was refused, the file that seems to declare it could not be loaded, or it
                does not exist.
        """
        if name in self.pipelines:
            return self.pipelines[name]
        if name in self.refused:
            raise self.refused[name]
        for path, error in self.unloaded.items():
            if _mentions(path, name):
                raise error
        raise self._unknown(name)

    def _unknown(self, name: str) -> DeclarationError:
        error = unknown(self.folder, "pipeline", name, (*self.pipelines, *self.refused))
        if not self.unloaded:
            if not Path(self.folder).is_dir():
                error.fix = f"make the folder {self.folder}, or change [project] pipelines"
            elif not error.fix:
                error.fix = (
                    f'declare it in a file of this folder: with Pipeline("{name}", every="1 minute") as pipeline: ...'
                )
                if self.empty:
                    error.message += f"; no pipeline is declared in {', '.join(path.name for path in self.empty)}"
            return error
        failed = "\n".join(f"  {fault.message}" for fault in self.unloaded.values())
        return DeclarationError(f"{error.message}; these files could not be loaded:\n{failed}", fix=error.fix)


def read_declarations(folder: Path, load: Load, wanted: str | None = None) -> Declarations:
    """Load what the Python files of a folder declare; empty if the folder does not exist.

    Files that mention the pipeline `wanted` are loaded first.

    Raises:
        ConfigError: it is not a folder, or cannot be read.
    """
    files = _files(folder)
    order = files if wanted is None else sorted(files, key=lambda path: not _mentions(path, wanted))
    found = load(order, wanted=wanted)
    unloaded = {path: error for path in files if isinstance(error := found[path], DeclarationError)}
    declared = [(path, p) for path in files if isinstance(some := found[path], tuple) for p in some]
    refused = _unfinished(declared) | _of_one_name(declared)
    declared = [(path, p) for path, p in declared if p.name not in refused]
    refused |= _of_one_table(declared)
    for name, error in without_sender({p.name: (path, p) for path, p in declared}).items():
        refused.setdefault(name, error)
    pipelines = {p.name: p for _, p in declared if p.name not in refused}
    empty = tuple(path for path in files if found[path] == ())
    return Declarations(folder=str(folder), pipelines=pipelines, refused=refused, unloaded=unloaded, empty=empty)


def _files(folder: Path) -> list[Path]:
    try:
        # Editors create files that begin with a dot.
        named = sorted(p for p in folder.iterdir() if p.suffix == ".py" and not p.name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ConfigError(
            f"{folder}: expected a folder of pipelines: {error.strerror}", fix="change it, or [project] pipelines"
        ) from None
    # Two names of the same file count once.
    return list({path.resolve(): path for path in reversed(named)}.values())[::-1]


def _mentions(path: Path, name: str) -> bool:
    return path.stem == name or re.search(rf"""["']{re.escape(name)}["']""", _text(path)) is not None


def _named_in(path: Path) -> tuple[str, ...]:
    """The names of pipelines that the text of a file seems to declare, each once."""
    return tuple(dict.fromkeys(_DECLARED.findall(_text(path))))


def _text(path: Path) -> str:
    # Reading something that is not a regular file, such as a pipe, might never end.
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    except OSError:
        return ""


def _unfinished(declared: Iterable[tuple[Path, Pipeline]]) -> dict[str, DeclarationError]:
    found = {}
    for path, pipeline in declared:
        try:
            _ = pipeline.spec
        except DeclarationError as error:
            found[pipeline.name] = DeclarationError(f"{path}: {error.message}", fix=error.fix)
    return found


def _of_one_name(declared: Iterable[tuple[Path, Pipeline]]) -> dict[str, DeclarationError]:
    """Refuse both of two pipelines with the same name: nobody can tell which of them owns the ledger."""
    first: dict[str, tuple[Path, Pipeline]] = {}
    found = {}
    for path, pipeline in declared:
        owner, same = first.setdefault(pipeline.name, (path, pipeline))
        if same is not pipeline:
            found[pipeline.name] = DeclarationError(
                f"{_place(path, pipeline)}: a second pipeline is called `{pipeline.name}`, as the one in "
                f"{_place(owner, same)}",
                fix="rename one",
            )
    return found


def _place(path: Path, pipeline: Pipeline) -> str:
    lines = lines_in(str(path), pipeline)
    return f"{path}:{lines[0]}" if lines else str(path)


def _of_one_table(declared: Iterable[tuple[Path, Pipeline]]) -> dict[str, DeclarationError]:
    """Refuse both of two pipelines that publish the same table: each would overwrite the other's rows."""
    owners: dict[str, str] = {}
    found: dict[str, DeclarationError] = {}
    for path, pipeline in declared:
        for table in (o.table for o in pipeline.spec.graph.operators.values() if isinstance(o, Publish)):
            owner = owners.setdefault(table, pipeline.name)
            if owner != pipeline.name:
                error = DeclarationError(
                    f"{path}: `{pipeline.name}` publishes {table}, which `{owner}` publishes",
                    fix="a table has one pipeline: name another table, or unite the streams in one pipeline",
                )
                found |= {owner: found.get(owner, error), pipeline.name: error}
    return found
