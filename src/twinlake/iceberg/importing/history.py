"""The history of an Iceberg table as a line of Delta commits to be.

Snapshot by snapshot, only the manifests that came and went are read. A snapshot that holds what
Delta cannot say ends the history before it; if it is the current one, the table is refused with
all there is against it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, CorruptTable, StorageError, UserError, listed
from twinlake.iceberg.importing.metadata import key_or_url, read_file
from twinlake.iceberg.requests import (
    EntryStatus,
    ImportedSchema,
    decode_manifest,
    decode_manifest_list,
    import_schema,
    partition_problem,
)
from twinlake.log import read_nodes
from twinlake.schema import Repetition, Struct, field_id, walk_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from twinlake.iceberg.importing.metadata import SourceSnapshot, SourceTable
    from twinlake.iceberg.requests import SourceFile
    from twinlake.runtime import Executor
    from twinlake.storage import Store

__all__ = ["ImportStep", "SourceHistory", "read_history"]

_DATA: Final = 0
_EQUALITY: Final = 2
_IDENTITY: Final = "identity"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportStep:
    """What one snapshot changes."""

    snapshot: SourceSnapshot
    schema: Struct
    added: tuple[SourceFile, ...]
    removed: tuple[str, ...]
    """Paths of files that go."""
    vectors: Mapping[str, frozenset[int]]
    """The hidden positions of all files that have any, by path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceHistory:
    """What is to be imported."""

    source: SourceTable
    schema: Struct
    """The schema of today."""
    partition_ids: tuple[int, ...]
    """The columns that files are partitioned by, by id: their names change."""
    steps: tuple[ImportStep, ...]
    """The first one brings all files that are live in it."""
    left_out: int = 0
    """How many older snapshots cannot be said in Delta."""
    why_left_out: tuple[str, ...] = ()
    is_widened: bool = False
    has_vectors: bool = False
    notes: tuple[str, ...] = ()


@dataclass
class _Walk:
    """The state at one snapshot, and what is against it."""

    live: dict[str, SourceFile] = field(default_factory=dict)
    deletes: dict[str, SourceFile] = field(default_factory=dict)
    bad: dict[str, str] = field(default_factory=dict)
    manifests: dict[str, list[SourceFile]] = field(default_factory=dict)
    positions: dict[str, Mapping[str, frozenset[int]]] = field(default_factory=dict)
    listed: Counter[str] = field(default_factory=Counter)
    """How often each file is listed."""
    repeated: dict[str, None] = field(default_factory=dict)
    """Files of rows that are listed more than once, each of which counts for Iceberg."""


def read_history(source: SourceTable, store: Store, executor: Executor) -> SourceHistory:
    """The steps to import; ``UserError`` with the whole list where the table cannot be."""
    schemas = _schemas(source)
    current = schemas[source.current_schema_id]
    against = [*source.problems(), *current.problems, *_spec_problems(source)]
    reader = _HistoryReader(source, store, executor)
    steps: list[ImportStep] = []
    reasons: tuple[str, ...] = ()
    newest: tuple[str, ...] = ()
    for snapshot in source.ancestry():
        own = schemas.get(snapshot.schema_id, current)
        try:
            steps.append(reader.step(snapshot, own, whole=not steps))
            found = [*own.problems, *reader.problems(), *reader.lacking(own.schema)]
        except (CorruptTable, StorageError) as error:
            if isinstance(error, StorageError) and error.code is not Code.STORAGE_NOT_FOUND:
                raise
            found = [f"snapshot {snapshot.id} cannot be read: {error.what}"]
            # The next one is read from its own files alone.
            reader = _HistoryReader(source, store, executor)
        newest = tuple(dict.fromkeys(found))
        if newest:
            reasons, steps = newest, []
    against += [one for one in newest if one not in against]
    if against:
        raise UserError(
            Code.COMPAT,
            f"The Iceberg table at {source.location} cannot become a Delta table.",
            why=listed(against) + ".",
            fix="Rewrite the table without these with an Iceberg engine, then import it.",
            fields={"location": source.location, "problems": against},
        )
    parts = tuple(part["source-id"] for part in source.specs[source.default_spec_id])
    return SourceHistory(
        source=source,
        schema=current.schema,
        partition_ids=parts,
        steps=tuple(steps),
        left_out=len(source.ancestry()) - len(steps),
        why_left_out=reasons,
        is_widened=current.is_widened or any(schemas[i].is_widened for i in schemas),
        has_vectors=any(step.vectors for step in steps),
        notes=tuple(_notes(source)),
    )


def _schemas(source: SourceTable) -> dict[int, ImportedSchema]:
    listed = source.schemas
    documents = list(listed.values())
    return {
        number: import_schema(document, documents[:position])
        for position, (number, document) in enumerate(listed.items())
    }


def _spec_problems(source: SourceTable) -> Iterator[str]:
    """What is against the spec of today."""
    columns = {one["id"] for one in source.schemas[source.current_schema_id]["fields"]}
    for part in source.specs.get(source.default_spec_id, []):
        if part["transform"] != _IDENTITY:
            yield f"partition field {part['name']} has transform {part['transform']}"
        elif part["source-id"] not in columns:
            yield f"partition field {part['name']} is not made from a column at the top"


def _notes(source: SourceTable) -> Iterator[str]:
    for name, ref in source.refs.items():
        if ref.get("type") == "tag":
            yield f"tag {name} is not carried over"
    schema = source.schemas[source.current_schema_id]
    if schema.get("identifier-field-ids"):
        yield "identifier fields are not carried over"
    orders = source.document.get("sort-orders") or ()
    chosen = source.document.get("default-sort-order-id", 0)
    if any(one["order-id"] == chosen and one["fields"] for one in orders):
        yield "the sort order is not carried over"


class _HistoryReader:
    def __init__(self, source: SourceTable, store: Store, executor: Executor) -> None:
        self._source = source
        self._store = store
        self._executor = executor
        self._state = _Walk()
        self._sources = self._partition_sources(source.default_spec_id)

    def problems(self) -> Iterator[str]:
        """What is against the state after the last step."""
        state = self._state
        yield from state.bad.values()
        for path in state.repeated:
            yield f"file {path} is listed twice, and Iceberg reads its rows twice"

    def lacking(self, schema: Struct) -> Iterator[str]:
        """Columns that the table is partitioned by and a schema does not have yet."""
        known = {field_id(column) for column in schema}
        for source, _ in self._sources:
            if source not in known:
                yield f"the partition column with id {source} was not there yet"

    def step(self, snapshot: SourceSnapshot, schema: ImportedSchema, *, whole: bool) -> ImportStep:
        """Go on to a snapshot; ``whole`` for a step that nothing comes before."""
        state = self._state
        listed = self._listed(snapshot)
        came = [key for key in listed if key not in state.manifests]
        gone = [key for key in state.manifests if key not in listed]
        for key in came:
            state.manifests[key] = self._entries(key, *listed[key])
        new = [file for key in came for file in state.manifests[key]]
        old = [file for key in gone for file in state.manifests[key]]
        for key in gone:
            del state.manifests[key]
        # The same file may stand in a manifest that was rewritten.
        added = list({f.path: f for f in new if not state.listed[f.path]}.values())
        removed = self._count(new, old)
        for path in removed:
            for known in (state.live, state.deletes, state.bad, state.positions):
                known.pop(path, None)
        for file in new:
            # A file that left and came back at once is newer than deletes from before.
            (state.live if file.content == _DATA else state.deletes)[file.path] = file
        self._judge(added)
        return ImportStep(
            snapshot=snapshot,
            schema=schema.schema,
            added=tuple(state.live.values() if whole else (f for f in added if f.content == _DATA)),
            removed=() if whole else tuple(p for p, f in removed.items() if f.content == _DATA),
            vectors=self._vectors(),
        )

    def _count(self, new: list[SourceFile], old: list[SourceFile]) -> dict[str, SourceFile]:
        """Note which files are listed now, and how often; returns those that no longer are."""
        state = self._state
        state.listed.update(file.path for file in new)
        state.listed.subtract(file.path for file in old)
        for file in (*new, *old):
            if file.content == _DATA and state.listed[file.path] > 1:
                state.repeated[file.path] = None
            else:
                state.repeated.pop(file.path, None)
        gone = {file.path: file for file in old if not state.listed[file.path]}
        for path in gone:
            del state.listed[path]
        return gone

    def _listed(self, snapshot: SourceSnapshot) -> dict[str, tuple[int | None, int]]:
        if snapshot.manifest_list is None:
            return dict.fromkeys(snapshot.manifests, (None, 0))
        data = read_file(self._store, self._source.location, snapshot.manifest_list)
        found = decode_manifest_list(data, snapshot.manifest_list)
        return {row.path: (row.spec_id, row.sequence_number) for row in found}

    def _entries(self, path: str, spec_id: int | None, number: int) -> list[SourceFile]:
        data = read_file(self._store, self._source.location, path)
        found = decode_manifest(data, path, spec_id=spec_id, sequence_number=number)
        return [entry.file for entry in found if entry.status is not EntryStatus.DELETED]

    def _judge(self, added: Iterable[SourceFile]) -> None:
        """Note what Delta cannot say of files that came in."""
        bad = self._state.bad
        sound = []
        for file in added:
            problem = self._file_problem(file)
            if problem:
                bad[file.path] = problem
            elif file.content == _DATA:
                sound.append(file)
        sizes = ((key_or_url(self._source.location, f.path)[0], f.size) for f in sound)
        for file, nodes in zip(sound, read_nodes(self._store, sizes, self._executor), strict=True):
            problem = _footer_problem(nodes, file)
            if problem:
                bad[file.path] = f"file {file.path} {problem}"

    def _file_problem(self, file: SourceFile) -> str:
        if file.content == _EQUALITY:
            return f"file {file.path} deletes rows by equality"
        if file.format != "PARQUET":
            return f"file {file.path} is of format {file.format}"
        if file.is_encrypted:
            return f"file {file.path} is encrypted"
        if file.content == _DATA:
            if self._partition_sources(file.spec_id) != self._sources:
                transforms = self._spec_text(file.spec_id)
                return f"file {file.path} is partitioned by {transforms}"
            problem = partition_problem(file)
            return problem and f"file {file.path} {problem}"
        return ""

    def _partition_sources(self, spec_id: int) -> tuple[tuple[int, str], ...]:
        fields = self._source.specs.get(spec_id, [])
        return tuple((part["source-id"], part["transform"]) for part in fields)

    def _spec_text(self, spec_id: int) -> str:
        fields = self._source.specs.get(spec_id, [])
        return ", ".join(f"{part['transform']}({part['name']})" for part in fields) or "nothing"

    def _vectors(self) -> dict[str, frozenset[int]]:
        state = self._state
        hidden: dict[str, set[int]] = {}
        for path, file in state.deletes.items():
            if file.content == _EQUALITY or path in state.bad:
                continue
            if path not in state.positions:
                data = read_file(self._store, self._source.location, path)
                state.positions[path] = _positions(data)
            for target, positions in state.positions[path].items():
                own = state.live.get(target)
                # Deletes reach what was there before them, and rows of their own commit.
                if own is not None and own.sequence_number <= file.sequence_number:
                    within = (position for position in positions if position < own.record_count)
                    hidden.setdefault(target, set()).update(within)
        return {path: frozenset(positions) for path, positions in hidden.items() if positions}


def _positions(data: bytes) -> dict[str, frozenset[int]]:
    """The positions that a file of position deletes names, by data file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(pa.BufferReader(data), columns=["file_path", "pos"])
    found: dict[str, set[int]] = {}
    paths, positions = table.column("file_path").to_pylist(), table.column("pos").to_pylist()
    for path, position in zip(paths, positions, strict=True):
        found.setdefault(path, set()).add(position)
    return {path: frozenset(own) for path, own in found.items()}


def _footer_problem(nodes: Any, file: SourceFile) -> str:
    if nodes.root is None:
        return f"cannot be read: {nodes.problem}"
    if nodes.num_rows != file.record_count:
        return f"has {nodes.num_rows} rows, and its manifest says {file.record_count}"
    lacking = [
        ".".join(path)
        for path, node in walk_nodes(nodes.root)
        if node.field_id is None and node.repetition is not Repetition.REPEATED
    ]
    if lacking:
        return f"has no field ids on {', '.join(lacking)}"
    legacy = [".".join(column.path) for column in nodes.legacy if column.is_read_differently]
    if legacy:
        return f"stores {', '.join(legacy)} in Spark's legacy calendar"
    return ""
