"""Deletes by filter: whole files are dropped by their statistics, without a scan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from twinlake.verify.checker import Failure, Next, action, always
from twinlake.verify.models.iceberg.metadata import build
from twinlake.verify.models.iceberg.model import IcebergV2
from twinlake.verify.models.iceberg.reading import expected, live_data, matches
from twinlake.verify.models.iceberg.starting import CANONICAL, Started
from twinlake.verify.models.iceberg.values import (
    DELETE,
    IDLE,
    WRITE_METADATA_FILES,
    DataFile,
    Predicate,
    Table,
    Version,
    Writer,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from twinlake.verify.models.iceberg.validation import Validation

__all__ = ["BOUNDS_ARE_EXACT", "FILTERS_THE_SCAN", "FilterDeletes"]

#: Mutants: a file is dropped if its bounds only allow a match; the files to drop are those of the
#: version that was current when the operation started.
BOUNDS_ARE_EXACT, FILTERS_THE_SCAN = "bounds-are-exact", "filters-the-scan"

DELETE_FILES = "DELETE_FILES"
NONE, SOME, ALL = "none", "some", "all"


def match_by_bounds(file: DataFile, predicate: Predicate) -> str:
    """How many rows of a file match, as far as least and greatest values tell."""
    for column, wanted in enumerate(predicate):
        if wanted is None:
            continue
        values = [row[column] for row in file.rows]
        if not values or not min(values) <= wanted <= max(values):
            return NONE
        return ALL if min(values) == max(values) else SOME
    return ALL


@dataclass(frozen=True, kw_only=True)
class FilterDeletes(IcebergV2):
    """The base model with deletes that drop the files that match as a whole.

    The filter is applied to the version that the commit builds on, so that it also covers what
    was added since the operation started; a file that matches in part makes it fail.
    """

    title: ClassVar[str] = "Iceberg v2 with deletes by filter"
    mutants: ClassVar[tuple[str | None, ...]] = (None, BOUNDS_ARE_EXACT, FILTERS_THE_SCAN)

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

    def validations(self, writer: Writer) -> tuple[Validation, ...]:
        """No file may match in part: there is nobody to rewrite it."""
        if writer.update != DELETE_FILES:
            return super().validations(writer)
        if self.mutant == BOUNDS_ARE_EXACT:
            return ()
        return (("F no file matches in part", self._no_partial_match),)

    def _no_partial_match(self, table: Table, writer: Writer) -> str | None:
        for _, file in live_data(self._filtered(table, writer)):
            if match_by_bounds(file, writer.predicate or (None, None, None)) == SOME:
                return f"{file.path} may match in part"
        return None

    def _filtered(self, table: Table, writer: Writer) -> Version:
        return table[writer.scan_version if self.mutant == FILTERS_THE_SCAN else -1]

    def build(self, table: Table, writer: Writer) -> Version:
        """Drop the files that match; the history loses every row that matches by now."""
        if writer.update != DELETE_FILES or writer.predicate is None:
            return super().build(table, writer)
        dropped = tuple(
            file.path
            for _, file in live_data(self._filtered(table, writer))
            if match_by_bounds(file, writer.predicate) != NONE
        )
        gone = tuple(
            ((col1, "", ""), row[2])
            for col1, row in expected(table, self.history).items()
            if matches((col1, row[0], row[1]), writer.predicate)
        )
        version = build(table, writer._replace(replaced=dropped, row_history=gone))
        return version._replace(operation="delete")

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
