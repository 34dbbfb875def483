"""Deletes by filter: whole files are dropped by their statistics, without a scan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from twinlake.verify.checker import Failure, Next, action, always
from twinlake.verify.models.iceberg.metadata import build
from twinlake.verify.models.iceberg.model import IcebergV2
from twinlake.verify.models.iceberg.operations import CANONICAL, Started
from twinlake.verify.models.iceberg.snapshot_scan import expected, live_data, matches
from twinlake.verify.models.iceberg.validation import V4, new_versions
from twinlake.verify.models.iceberg.values import (
    DELETE,
    DELETE_KIND,
    DELETED,
    IDLE,
    INSERT,
    OVERWRITE,
    REPLACE,
    SERIALIZABLE,
    UPDATE,
    WRITE_DATA_FILES,
    WRITE_METADATA_FILES,
    IcebergDataFile,
    Predicate,
    Table,
    TableVersion,
    Writer,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from twinlake.verify.models.iceberg.validation import Validation

__all__ = ["DeletesByFilter"]

#: Mutants: a file is dropped if its bounds only allow a match; the files to drop are those of the
#: version that was current when the operation started; an UPDATE does not mind that a file it
#: read was dropped by a filter. A control, within limits: a DELETE does not mind.
BOUNDS_ARE_EXACT, FILTERS_THE_SCAN = "bounds-are-exact", "filters-the-scan"
UPDATE_IGNORES_DROPS, DELETE_IGNORES_DROPS = "update-ignores-drops", "delete-ignores-drops"

DELETE_FILES, OVERWRITE_BY_FILTER = "DELETE_FILES", "OVERWRITE_BY_FILTER"
BY_FILTER = (DELETE_FILES, OVERWRITE_BY_FILTER)
IGNORING = {UPDATE: UPDATE_IGNORES_DROPS, DELETE: DELETE_IGNORES_DROPS}
NONE, SOME, ALL = "none", "some", "all"


def match_by_bounds(file: IcebergDataFile, predicate: Predicate) -> str:
    """How many rows of a file match, as far as least and greatest values tell."""
    for column, wanted in enumerate(predicate):
        if wanted is None:
            continue
        values = [row[column] for row in file.rows]
        if not values or not min(values) <= wanted <= max(values):
            return NONE
        return ALL if min(values) == max(values) else SOME
    return ALL


def referenced_files_were_not_rewritten(table: Table, writer: Writer) -> str | None:
    """V1 without a look at files that were dropped and not replaced."""
    referenced = {path for path, _ in writer.deletes}
    for version in new_versions(table, writer, OVERWRITE, REPLACE):
        for entry in version.data.entries:
            if entry.status == DELETED and entry.file.path in referenced:
                return f"{entry.file.path} was removed in version {version.sequence_number}"
    return None


@dataclass(frozen=True, kw_only=True)
class DeletesByFilter(IcebergV2):
    """The base model with deletes that drop the files that match as a whole.

    The filter is applied to the version that the commit builds on, so that it also covers what
    was added since the operation started; a file that matches in part makes it fail. An overwrite
    by filter adds a file in the same commit.
    """

    title: ClassVar[str] = "Iceberg v2 with deletes by filter"
    mutants: ClassVar[tuple[str | None, ...]] = (
        None,
        BOUNDS_ARE_EXACT,
        FILTERS_THE_SCAN,
        UPDATE_IGNORES_DROPS,
        DELETE_IGNORES_DROPS,
    )

    allow_overwrites: bool = False
    identity: str = CANONICAL

    def interchangeable(self) -> tuple[tuple[Hashable, ...], ...]:
        """Nothing: bounds depend on the order of values."""
        return ()

    @action(at=IDLE, writes=("started",))
    def start_filter_delete_operation(
        self, _writer: Writer, table: Table, started: Started
    ) -> Iterator[Next]:
        """Choose a filter; nothing is read and no file is written."""
        if started[0] >= self.max_write_ops:
            return
        for predicate, _ in self._predicates(expected(table, self.history)):
            opened = Writer(
                state=WRITE_METADATA_FILES,
                sql_op=DELETE,
                update=DELETE_FILES,
                scan_version=len(table) - 1,
                predicate=predicate,
            )
            after = {"started": (started[0] + 1, started[1])}
            yield Next(opened, after, {"predicate": predicate})

    @action(at=IDLE, writes=("started", "inserting"))
    def start_filter_overwrite_operation(
        self, _writer: Writer, table: Table, started: Started, inserting: frozenset[str]
    ) -> Iterator[Next]:
        """Replace all rows of an id, whatever they will be, by one new row; nothing is read."""
        if not self.allow_overwrites or started[0] >= self.max_write_ops:
            return
        for col1 in expected(table, self.history):
            if col1 in inserting:
                continue
            for col2 in self.col2_values:
                row = (col1, col2, self.col3_values[0])
                opened = Writer(
                    state=WRITE_DATA_FILES,
                    sql_op=INSERT,
                    update=OVERWRITE_BY_FILTER,
                    scan_version=len(table) - 1,
                    predicate=(col1, None, None),
                    set_values=row,
                    row_history=((row, 0),),
                )
                after: dict[str, Hashable] = {"started": (started[0] + 1, started[1])}
                after["inserting"] = inserting | {col1}
                yield Next(opened, after, {"row": row})

    def validations(self, writer: Writer) -> tuple[Validation, ...]:
        """No file may match in part: there is nobody to rewrite it."""
        if writer.update not in BY_FILTER:
            checks = super().validations(writer)
            if self.mutant is not None and self.mutant == IGNORING.get(writer.sql_op or ""):
                lenient = (
                    "V1 referenced files were not rewritten",
                    referenced_files_were_not_rewritten,
                )
                checks = tuple(lenient if one[0].startswith("V1") else one for one in checks)
            return checks
        strict = self.isolation == SERIALIZABLE and writer.update == OVERWRITE_BY_FILTER
        more: tuple[Validation, ...] = (V4,) if strict else ()
        if self.mutant == BOUNDS_ARE_EXACT:
            return more
        return (("F no file matches in part", self._no_partial_match), *more)

    def _no_partial_match(self, table: Table, writer: Writer) -> str | None:
        for _, file in live_data(self._filtered(table, writer)):
            if match_by_bounds(file, writer.predicate or (None, None, None)) == SOME:
                return f"{file.path} may match in part"
        return None

    def _filtered(self, table: Table, writer: Writer) -> TableVersion:
        return table[writer.scan_version if self.mutant == FILTERS_THE_SCAN else -1]

    def build(self, table: Table, writer: Writer) -> TableVersion:
        """Drop the files that match; the history loses every row that matches by now."""
        if writer.update not in BY_FILTER or writer.predicate is None:
            return super().build(table, writer)
        dropped = tuple(
            file.path
            for _, file in live_data(self._filtered(table, writer))
            if match_by_bounds(file, writer.predicate) != NONE
        )
        if writer.update == OVERWRITE_BY_FILTER:
            return build(table, writer._replace(replaced=dropped))
        gone = tuple(
            ((col1, "", ""), row[2])
            for col1, row in expected(table, self.history).items()
            if matches((col1, row[0], row[1]), writer.predicate)
        )
        version = build(table, writer._replace(replaced=dropped, row_history=gone))
        return version._replace(operation=DELETE_KIND)

    @always
    def dropped_files_matched_as_a_whole(self, table: Table) -> Failure | None:
        """A version made by a filter loses no row that the filter does not match."""
        if table[-1].operation != "delete":
            return None
        before, after = (
            {row for _, rows in self.scan(version) for _, row in rows} for version in table[-2:]
        )
        gone = {record.id for record in table[-1].recorded}
        wrong = sorted(row for row in before - after if row[0] not in gone)
        return Failure(f"{wrong[0]} does not match and is gone") if wrong else None
