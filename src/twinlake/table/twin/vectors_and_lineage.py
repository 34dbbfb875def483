"""What format version 3 adds to the Iceberg side: deletion vectors by file, and row lineage.

Readers of Iceberg find the file of a vector in different ways, by its field or by its bounds, so
both have to name the same one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.actions import find_row_tracking
from twinlake.table.twin.report import DifferenceKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from twinlake.actions import AddFile
    from twinlake.log import Snapshot
    from twinlake.table.twin.iceberg_side import IcebergFile, IcebergVector
    from twinlake.table.twin.statistics import Remark

__all__ = ["compare_lineage", "compare_next_row_id", "compare_vectors"]

_FORMAT: Final = 3
"""The first format version with row lineage."""


def compare_vectors(
    adds: Mapping[str, AddFile],
    files: Mapping[str, IcebergFile],
    vectors: Iterable[IcebergVector],
) -> Iterator[tuple[str, Remark]]:
    """Every data file, by its path, that has other rows hidden than Delta says."""
    found: dict[str, list[IcebergVector]] = {}
    for vector in vectors:
        found.setdefault(vector.referenced_data_file, []).append(vector)
    said = {path: add.deletion_vector for path, add in adds.items() if add.deletion_vector}
    for path in sorted(said.keys() | found.keys()):
        hidden = said[path].cardinality if path in said else None
        counts = [vector.record_count for vector in found.get(path, ())]
        if counts != ([] if hidden is None else [hidden]):
            yield path, _deletes(_rows(hidden), " and ".join(map(_rows, counts)) or _rows(None))
        for vector in found.get(path, ()):
            yield from ((path, remark) for remark in _vector(vector, files.get(path)))


def _vector(vector: IcebergVector, file: IcebergFile | None) -> Iterator[Remark]:
    others = sorted(vector.bounds - {vector.referenced_data_file})
    if others:
        yield _deletes("a vector of this file", f"one whose bounds name {', '.join(others)}")
    if file is None or file.sequence_number is None or vector.sequence_number is None:
        return
    if vector.sequence_number < file.sequence_number:
        # Iceberg specification, Scan Planning: such a vector is not for this file.
        yield _deletes(
            "a vector that holds",
            f"one of sequence number {vector.sequence_number}, before {file.sequence_number}",
        )


def _deletes(delta: str, iceberg: str) -> Remark:
    return DifferenceKind.DELETES, "", delta, iceberg


def _rows(count: int | None) -> str:
    return "no vector" if count is None else f"{count} rows"


def compare_lineage(add: AddFile, file: IcebergFile, format_version: int) -> Iterator[Remark]:
    """Where rows of a file would get other ids, or would seem to be of another version."""
    if format_version < _FORMAT:
        return
    for name, said, found in (
        ("first_row_id", add.base_row_id, file.first_row_id),
        ("sequence_number", add.default_row_commit_version, file.sequence_number),
    ):
        # Delta may not say the version; then it is the one of the snapshot.
        if said != found and (said is not None or name == "first_row_id"):
            yield DifferenceKind.LINEAGE, "", f"{name} {said}", f"{name} {found}"


def compare_next_row_id(
    delta: Snapshot, next_row_id: int | None, format_version: int
) -> Iterator[Remark]:
    """Whether new rows would get ids that no row has had."""
    if format_version < _FORMAT:
        return
    tracking = find_row_tracking(delta.domains.values())
    if tracking is not None and next_row_id != tracking.high_water_mark + 1:
        wanted = tracking.high_water_mark + 1
        yield DifferenceKind.LINEAGE, "", f"next-row-id {wanted}", f"next-row-id {next_row_id}"
