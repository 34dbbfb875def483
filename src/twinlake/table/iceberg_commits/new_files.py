"""Data files that a client wrote, as files of the Delta table.

They are judged by the schema of the version that the commit follows, not by the one the client
knew. The footer rules of the table's compat feature come on top: a commit checks them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from twinlake.iceberg.format import leaves
from twinlake.iceberg.requests import add_action, count_problem, partition_problem
from twinlake.log import read_nodes
from twinlake.schema import (
    Array,
    Map,
    Repetition,
    Struct,
    field_id,
    nested_ids,
    physical_name,
    render_path,
    walk_nodes,
)
from twinlake.table.iceberg_commits.file_columns import FileColumns
from twinlake.table.iceberg_commits.refusals import refuse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from twinlake.actions import AddFile, Metadata
    from twinlake.iceberg.requests import SourceFile
    from twinlake.log import FooterNodes
    from twinlake.runtime import Executor
    from twinlake.schema import ColumnPath, DataType, ParquetNode, StructField
    from twinlake.table.iceberg_commits.client_files import ClientFiles

__all__ = ["NewFiles"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFiles:
    """The new files of one request."""

    files: ClientFiles
    metadata: Metadata
    """Of the version that the files come in with."""
    spec_id: int
    executor: Executor

    def actions(
        self,
        added: Iterable[SourceFile],
        *,
        modification_time: int,
        data_change: bool,
        tags: Mapping[str, str],
    ) -> dict[str, AddFile]:
        """The files as actions, by their path; all that is against them in one error."""
        known = tuple(leaves(self.metadata.schema))
        partitions = tuple(self._partition_columns())
        problems: list[str] = []
        found: dict[str, AddFile] = {}
        for file in added:
            if problem := self._problem(file):
                problems.append(f"file {file.path} {problem}")
                continue
            path = self.files.data_key(file.path)
            if path in found:
                problems.append(f"file {file.path} is added twice")
                continue
            found[path] = add_action(
                file,
                path,
                partitions,
                known,
                modification_time=modification_time,
                data_change=data_change,
                tags=tags,
            )
        refuse(problems)
        refuse(self._footer_problems(found))
        return found

    def _partition_columns(self) -> Iterator[StructField]:
        for name in self.metadata.partition_columns:
            column = self.metadata.schema.get(name)
            if column is not None:
                yield column

    def _problem(self, file: SourceFile) -> str:
        if file.content != 0:
            return "is no data file"
        if file.format != "PARQUET":
            return f"is of format {file.format}, and Delta reads Parquet"
        if file.is_encrypted:
            return "is encrypted"
        if file.spec_id != self.spec_id:
            return f"is of partition spec {file.spec_id}, and the table has {self.spec_id}"
        return count_problem(file) or partition_problem(file, len(self.metadata.partition_columns))

    def _footer_problems(self, added: Mapping[str, AddFile]) -> Iterator[str]:
        """Files of other types, or that may have nulls where the table has none, by the footers."""
        if not added:
            return
        required = dict(_required(self.metadata.schema))
        known = FileColumns(self.metadata)
        # Files of one writer share one tree, and hashing a wide one takes its time.
        of_tree: dict[int, tuple[ParquetNode, tuple[str, ...]]] = {}
        columns = tuple(
            (one.physical, number) for number, one in required.items() if one.physical is not None
        )
        sizes = ((add.path, add.size) for add in added.values())
        footers = read_nodes(self.files.store, sizes, self.executor, columns=columns)
        for path, footer in zip(added, footers, strict=True):
            # A footer that cannot be read is for the rules of the commit to refuse.
            if footer.root is None:
                continue
            root = footer.root
            if id(root) not in of_tree:
                of_tree[id(root)] = root, tuple(known.problems(root))
            for problem in of_tree[id(root)][1]:
                yield f"file {path} {problem}"
            for column in _nullable(footer, required):
                yield f"file {path} may have nulls in required column {column}"


class _Required(NamedTuple):
    """A column without nulls."""

    path: str
    parent: int | None
    """The id of the column that it is in; None at the top."""
    physical: str | None = None
    """Its name in statistics; None below the top, where a null may be that of a column above."""


def _required(
    struct: Struct, path: ColumnPath = (), parent: int | None = None
) -> Iterator[tuple[int, _Required]]:
    """The columns that have no nulls, elements and values of maps among them, by their ids."""
    for column in struct:
        here = (*path, column.name)
        number = field_id(column)
        if number is not None and not column.nullable:
            physical = None if path else physical_name(column)
            yield number, _Required(render_path(here), parent, physical)
        inside = _Inside(here, physical_name(column), nested_ids(column), number)
        yield from _required_inside(column.type, inside)


class _Inside(NamedTuple):
    """Where a type is: the column, the key of its part in the nested ids, and what it is in."""

    path: ColumnPath
    at: str
    ids: Mapping[str, int]
    parent: int | None

    def part(self, name: str) -> _Inside:
        own = f"{self.at}.{name}"
        return _Inside((*self.path, name), own, self.ids, self.ids.get(own, self.parent))


def _required_inside(kind: DataType, where: _Inside) -> Iterator[tuple[int, _Required]]:
    match kind:
        case Struct():
            yield from _required(kind, where.path, where.parent)
        case Array(element=inner, contains_null=has_nulls):
            yield from _required_part(inner, has_nulls, where, "element")
        case Map(key=key, value=inner, value_contains_null=has_nulls):
            # Iceberg's keys are never null, and every writer says so in the file.
            yield from _required_inside(key, where.part("key"))
            yield from _required_part(inner, has_nulls, where, "value")


def _required_part(
    kind: DataType, has_nulls: bool, where: _Inside, name: str
) -> Iterator[tuple[int, _Required]]:
    part = where.part(name)
    if not has_nulls and part.at in part.ids:
        yield part.ids[part.at], _Required(render_path(part.path), where.parent)
    yield from _required_inside(kind, part)


def _nullable(footer: FooterNodes, required: Mapping[int, _Required]) -> Iterator[str]:
    """The required columns in which a file may have nulls, or which it lacks."""
    if footer.root is None:
        return
    counts = {one.name: one.nulls for one in footer.bounds}
    by_id = {node.field_id: node for _, node in walk_nodes(footer.root)}
    for number, column in required.items():
        node = by_id.get(number)
        if node is None:
            # Where all around it is left out, that is null, which is looked at by itself.
            if column.parent is None or column.parent in by_id:
                yield column.path
        elif node.repetition is not Repetition.REQUIRED and (
            column.physical is None or counts.get(column.physical) != 0
        ):
            yield column.path
