"""Rules about data files, as their Parquet footers describe them.

Iceberg finds the columns of a file by the field ids in its footer, so every node needs one, and it
has to be the id of that very column. The wrapper groups inside lists and maps have none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from twinlake.compat.rule import Finding
from twinlake.compat.rules.partition_bounds import contradicts
from twinlake.compat.rules.schema_index import index_schema
from twinlake.protocol import keys
from twinlake.schema import (
    Array,
    ColumnPath,
    DataType,
    Map,
    ParquetNode,
    Primitive,
    Repetition,
    Struct,
    field_id,
    nested_ids,
    physical_name,
    render_path,
    walk_nodes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from twinlake.compat.rule import Case, Check
    from twinlake.compat.subject import FileFooter
    from twinlake.schema import LegacyColumn

__all__ = [
    "ROW_COMMIT_VERSION_ID",
    "ROW_ID_ID",
    "field_ids_are_right",
    "footers_are_readable",
    "no_int96",
    "no_legacy_calendar",
    "partition_values_agree",
    "partitions_are_in_the_files",
    "partitions_come_last",
    "row_counts_agree",
    "row_tracking_ids",
]

ROW_ID_ID: Final = 2147483540
ROW_COMMIT_VERSION_ID: Final = 2147483539
_ROW_TRACKING: Final[Mapping[str, int]] = {
    keys.MATERIALIZED_ROW_ID: ROW_ID_ID,
    keys.MATERIALIZED_ROW_COMMIT_VERSION: ROW_COMMIT_VERSION_ID,
}
_MAPS: Final = frozenset(("MAP", "MAP_KEY_VALUE"))


@dataclass(frozen=True, slots=True)
class _Flaw:
    """What is wrong with a column of a file; the same in every file of that schema."""

    path: tuple[str, ...]
    found: str
    wanted: str
    text: str
    """What follows the name of the file in the message."""


def _finding(footer: FileFooter, column: str, found: str, wanted: str, text: str) -> Finding:
    return Finding(
        path=f"{footer.path}: {column}" if column else footer.path,
        found=found,
        wanted=wanted,
        message=f"file {footer.path} {text}",
    )


def _each_schema(examine: Callable[[Case, ParquetNode], Iterable[_Flaw]]) -> Check:
    """A check of files that looks once at each schema among them: most files share one."""

    def check(case: Case) -> Iterator[Finding]:
        # By identity: files of one schema share one tree, and hashing a wide one takes its time.
        known: dict[int, tuple[_Flaw, ...]] = {}
        for footer in case.subject.footers:
            root = footer.root
            if root is None:
                continue
            flaws = known.get(id(root))
            if flaws is None:
                flaws = known[id(root)] = tuple(examine(case, root))
            for flaw in flaws:
                column = render_path(flaw.path)
                yield _finding(footer, column, flaw.found, flaw.wanted, flaw.text)

    return check


def footers_are_readable(case: Case) -> Iterator[Finding]:
    """Nothing can be checked of a file whose footer cannot be read."""
    for footer in case.subject.footers:
        if footer.root is None:
            why = footer.problem.rstrip(".") or "no reason is known"
            yield _finding(footer, "", why, "a footer", f"has no footer that can be read: {why}")


def row_counts_agree(case: Case) -> Iterator[Finding]:
    """Iceberg trusts the number of rows in the manifest, which comes from the statistics."""
    for footer in case.subject.footers:
        counted = None if footer.root is None else footer.add.num_records
        if counted is not None and counted != footer.num_rows:
            text = f"holds {footer.num_rows} rows, and its statistics say {counted}"
            yield _finding(footer, "", str(counted), str(footer.num_rows), text)


def no_legacy_calendar(case: Case) -> Iterator[Finding]:
    """Spark moves such values as it reads them, Iceberg readers take them as they are."""
    for footer in case.subject.footers:
        for column in footer.legacy:
            if column.is_read_differently:
                shown = render_path(column.path)
                yield _finding(
                    footer,
                    shown,
                    "Spark's legacy calendar",
                    "the proleptic Gregorian calendar",
                    f"stores {shown} in Spark's legacy calendar{_since(column)}",
                )


def _since(column: LegacyColumn) -> str:
    if column.minimum is None:
        return ", and its footer has no minimum of the column"
    return ", with values before 1900-01-01"


def partition_values_agree(case: Case) -> Iterator[Finding]:
    """Delta readers take a partition column from the log, Iceberg readers from the file."""
    metadata = case.subject.metadata
    columns = {
        physical_name(field): field
        for name in metadata.partition_columns
        if (field := metadata.schema.get(name)) is not None
    }
    for footer in case.subject.footers if columns else ():
        for bounds in footer.bounds:
            column = columns.get(bounds.name)
            values = footer.add.partition_values
            if column is None or bounds.name not in values:
                continue
            if contradicts(values[bounds.name], column.type, bounds):
                shown = render_path((column.name,))
                yield _finding(
                    footer,
                    shown,
                    "other values",
                    "the partition value",
                    f"holds other values in partition column {shown} than its partition value",
                )


def _int96(_: Case, root: ParquetNode) -> Iterator[_Flaw]:
    for path, node in walk_nodes(root):
        if node.physical_type == "INT96":
            yield _Flaw(path, "INT96", "INT64", f"stores {render_path(path)} as INT96")


def _partition_places(case: Case, root: ParquetNode) -> dict[str, int | None]:
    """Each partition column with its place among the columns of the file."""
    metadata = case.subject.metadata
    by_name = {node.name: place for place, node in enumerate(root.children)}
    by_id = {node.field_id: place for place, node in enumerate(root.children)}
    found: dict[str, int | None] = {}
    for name in metadata.partition_columns:
        column = metadata.schema.get(name)
        own = None if column is None else field_id(column)
        place = None if own is None else by_id.get(own)
        if place is None and column is not None:
            place = by_name.get(physical_name(column))
        found[name] = place
    return found


def _partitions_absent(case: Case, root: ParquetNode) -> Iterator[_Flaw]:
    for name, place in _partition_places(case, root).items():
        if place is None:
            text = f"does not hold the partition column {render_path((name,))}"
            yield _Flaw((name,), "absent", "in the file", text)


def _partitions_before_data(case: Case, root: ParquetNode) -> Iterator[_Flaw]:
    yield from _partitions_absent(case, root)
    places = _partition_places(case, root)
    taken = set(places.values())
    last_data = max((i for i in range(len(root.children)) if i not in taken), default=-1)
    for name, place in places.items():
        if place is not None and place < last_data:
            text = f"has the partition column {render_path((name,))} before data columns"
            yield _Flaw((name,), f"column {place + 1}", "after the data columns", text)


def _hidden(case: Case) -> dict[str, int]:
    """The columns that row tracking keeps in files, with the ids that Iceberg reserves for them."""
    names = case.subject.metadata.configuration
    return {names[key]: wanted for key, wanted in _ROW_TRACKING.items() if key in names}


def _row_tracking(case: Case, root: ParquetNode) -> Iterator[_Flaw]:
    hidden = _hidden(case)
    for node in root.children:
        wanted = hidden.get(node.name)
        if wanted is not None and node.field_id != wanted:
            found = "no field id" if node.field_id is None else f"field id {node.field_id}"
            text = f"has {found} on {node.name}, and Iceberg looks for {wanted}"
            yield _Flaw((node.name,), found, f"field id {wanted}", text)


def _field_ids(case: Case, root: ParquetNode) -> Iterator[_Flaw]:
    metadata = case.subject.metadata
    owners: dict[int, ColumnPath] = {}
    for claim in index_schema(metadata).claims:
        owners.setdefault(claim.id, claim.path)
    hidden = _hidden(case)
    columns = tuple(node for node in root.children if node.name not in hidden)
    yield from _IdWalk(owners).struct(columns, metadata.schema, ())


no_int96: Final = _each_schema(_int96)
partitions_are_in_the_files: Final = _each_schema(_partitions_absent)
partitions_come_last: Final = _each_schema(_partitions_before_data)
row_tracking_ids: Final = _each_schema(_row_tracking)
field_ids_are_right: Final = _each_schema(_field_ids)


@dataclass(frozen=True, slots=True)
class _Place:
    """What the table knows of an element, key or value: its type, and the ids of its field."""

    kind: DataType | None
    ids: Mapping[str, int]
    where: str

    def below(self, part: str) -> _Place:
        match self.kind, part:
            case Array(element), "element":
                inner: DataType | None = element
            case Map(key), "key":
                inner = key
            case Map(_, value), "value":
                inner = value
            case _:
                inner = None
        return _Place(inner, self.ids, f"{self.where}.{part}")

    @property
    def id(self) -> int | None:
        return self.ids.get(self.where)


_UNKNOWN: Final = _Place(None, {}, "")


@dataclass(frozen=True, slots=True)
class _IdWalk:
    """Holds the nodes of a file against the columns of the table, from the root down."""

    owners: Mapping[int, ColumnPath]
    """The column of every id of the table."""

    def struct(
        self, nodes: tuple[ParquetNode, ...], kind: DataType | None, path: tuple[str, ...]
    ) -> Iterator[_Flaw]:
        """The fields of a group, which are columns of the table or were some day."""
        fields = kind.fields if isinstance(kind, Struct) else ()
        by_name = {physical_name(field): field for field in fields}
        by_id = {own: field for field in fields if (own := field_id(field)) is not None}
        seen: set[int] = set()
        for node in nodes:
            here = (*path, node.name)
            found = node.field_id
            field = by_name.get(node.name)
            if field is None and found is not None:
                field = by_id.get(found)
            wanted = None if field is None else field_id(field)
            yield from self.own(node, wanted, here)
            if found is not None and found in seen:
                yield self.wrong(here, str(found), "an id of its own", "has the id of another")
            elif found is not None:
                seen.add(found)
            place = _UNKNOWN
            if field is not None:
                place = _Place(field.type, nested_ids(field), physical_name(field))
            yield from self.node(node, place, here)

    def own(self, node: ParquetNode, wanted: int | None, path: tuple[str, ...]) -> Iterator[_Flaw]:
        """The id of one node: there, and the one that the table gives the column."""
        found = node.field_id
        if found is None:
            shown = "an id" if wanted is None else str(wanted)
            yield self.wrong(path, "no id", shown, "has no field id")
        elif wanted is not None and found != wanted:
            yield self.wrong(path, str(found), str(wanted), f"has field id {found}, not {wanted}")
        elif wanted is None and found in self.owners:
            text = f"has field id {found}, which is that of {render_path(self.owners[found])}"
            yield self.wrong(path, str(found), "the id of its column", text)

    def node(self, node: ParquetNode, place: _Place, path: tuple[str, ...]) -> Iterator[_Flaw]:
        """What is below a node that has been looked at."""
        if node.repetition is Repetition.REPEATED:
            yield self.two_levels(path)
            return
        if not node.is_group or node.annotation == "VARIANT" or place.kind == Primitive("variant"):
            return
        if node.annotation == "LIST":
            yield from self.list(node, place, path)
        elif node.annotation in _MAPS:
            yield from self.map(node, place, path)
        else:
            yield from self.struct(node.children, place.kind, path)

    def list(self, node: ParquetNode, place: _Place, path: tuple[str, ...]) -> Iterator[_Flaw]:
        wrapper = node.children[0] if len(node.children) == 1 else None
        if (
            wrapper is None
            or wrapper.repetition is not Repetition.REPEATED
            or len(wrapper.children) != 1
            # Old writers named the group after the element it is, not after the list.
            or wrapper.name in ("array", f"{node.name}_tuple")
        ):
            yield self.two_levels(path)
            return
        yield from self.part(wrapper.children[0], place.below("element"), (*path, "element"))

    def map(self, node: ParquetNode, place: _Place, path: tuple[str, ...]) -> Iterator[_Flaw]:
        wrapper = node.children[0] if len(node.children) == 1 else None
        if wrapper is None or not wrapper.children:
            yield self.wrong(path, "another shape", "key_value", "is no map of keys and values")
            return
        for part, child in zip(("key", "value"), wrapper.children, strict=False):
            yield from self.part(child, place.below(part), (*path, part))

    def part(self, node: ParquetNode, place: _Place, path: tuple[str, ...]) -> Iterator[_Flaw]:
        """An element, key or value."""
        yield from self.own(node, place.id, path)
        yield from self.node(node, place, path)

    def two_levels(self, path: tuple[str, ...]) -> _Flaw:
        return self.wrong(path, "a list of two levels", "three levels", "is a list of two levels")

    def wrong(self, path: tuple[str, ...], found: str, wanted: str, text: str) -> _Flaw:
        return _Flaw(path, found, wanted, f"has a column {render_path(path)} that {text}")
