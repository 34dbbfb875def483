"""The models of writers of an Iceberg table in the catalogue."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from twinlake.verify.models.catalogue.model_case import (
    CONTROL,
    FINDING,
    ICEBERG,
    MUTANT,
    SAFE,
    ModelCase,
    ModelSuite,
    case,
)
from twinlake.verify.models.iceberg import (
    DeleteFileCompaction,
    DeletesByFilter,
    DeletionVectors,
    EqualityDeletes,
    IcebergV2,
    PartitionedTable,
    SnapshotExpiry,
)
from twinlake.verify.models.iceberg.values import COPY_ON_WRITE, SERIALIZABLE

__all__ = ["DANGLING", "ICEBERG_MODELS", "REDUCED"]

TWO = ("jack", "sarah")
READ = "ConsistentRead"
WHOLE = "RetainedVersionsAreWhole"
COMPACTION, ABORT = "StartCompactionOperation", "WriteMetadataFiles (abort)"
EVOLVE = "EvolvePartitionSpec"

#: A delete file may well be left without its data file: readers tolerate it.
DANGLING = ("NoDanglingDeleteFiles",)
REDUCED = MappingProxyType({"symmetry": True, "reduction": True})


def _writing(kind: str, name: str, *unreached: str, **rest: Any) -> ModelCase:
    """A case of a model of writers, in which compactions start only if there is a budget."""
    if not rest.get("max_compaction_ops"):
        unreached = (*unreached, COMPACTION)
    return case(kind, name, unreached=() if rest.get("violates") else unreached, **rest)


BASE = ModelSuite(
    name="writers",
    format=ICEBERG,
    shows="A merge-on-read DELETE that does not look at new delete files loses to an UPDATE.",
    model=IcebergV2,
    without=DANGLING,
    cases=(
        _writing(
            FINDING,
            "snapshot isolation as published",
            violates=READ,
            steps=14,
            shows="DELETE and UPDATE of one row both commit, and the row is still there. No serial "
            "order of the statements has this result either.",
        ),
        _writing(SAFE, "with the fix", fix="A", states=2741),
        _writing(SAFE, "with the fix, canonical names", fix="A", identity="canonical", states=1837),
        _writing(SAFE, "serializable", isolation=SERIALIZABLE),
        _writing(SAFE, "copy-on-write", update_mode=COPY_ON_WRITE, delete_mode=COPY_ON_WRITE),
        _writing(SAFE, "with fix B", fix="B", identity="canonical"),
        _writing(
            SAFE, "with the fix, compaction", fix="A", identity="canonical", max_compaction_ops=1
        ),
        _writing(
            MUTANT,
            "copy-on-write ignores deletes",
            mutant="cow-ignores-deletes",
            violates=READ,
            steps=23,
            writers=1,
            identity="canonical",
            update_mode=COPY_ON_WRITE,
            col1_values=TWO,
            max_write_ops=4,
            max_compaction_ops=1,
        ),
    ),
)

PARTITIONS = ModelSuite(
    name="partitions",
    format=ICEBERG,
    shows="Conflicts are looked for only where the predicate may match, and none is missed.",
    model=PartitionedTable,
    without=DANGLING,
    options=REDUCED,
    cases=(
        _writing(SAFE, "by col2", EVOLVE, fix="A"),
        _writing(SAFE, "by col2, 4 writes", EVOLVE, fix="A", col1_values=TWO, max_write_ops=4),
        _writing(SAFE, "by id", EVOLVE, fix="A", col1_values=TWO, partition_by=0),
        _writing(
            SAFE,
            "copy-on-write",
            EVOLVE,
            update_mode=COPY_ON_WRITE,
            delete_mode=COPY_ON_WRITE,
            col1_values=TWO,
            max_write_ops=4,
        ),
        _writing(SAFE, "compaction", EVOLVE, fix="A", col1_values=TWO, max_compaction_ops=1),
        _writing(SAFE, "serializable", EVOLVE, isolation=SERIALIZABLE, fix="A", col1_values=TWO),
        _writing(SAFE, "the spec changes", fix="A", evolve_to=2),
        _writing(
            FINDING,
            "without the fix",
            violates=READ,
            steps=14,
            moves=9,
            shows="No serial order of the statements has this result either.",
        ),
        _writing(
            MUTANT,
            "exclusive projection",
            fix="A",
            mutant="exclusive-projection",
            violates=READ,
            steps=14,
            moves=9,
        ),
        _writing(
            MUTANT,
            "filter of the new value",
            fix="A",
            mutant="filter-of-new-value",
            violates=READ,
            steps=14,
            moves=9,
        ),
        _writing(
            MUTANT,
            "new spec on old files",
            fix="A",
            evolve_to=2,
            mutant="new-spec-on-old-files",
            violates=READ,
            steps=14,
            moves=9,
        ),
    ),
)

EQUALITY = ModelSuite(
    name="equality-deletes",
    format=ICEBERG,
    shows="Writers that never read are safe if compaction keeps sequence numbers or looks.",
    model=EqualityDeletes,
    without=DANGLING,
    options=REDUCED,
    cases=(
        # Writers that do not read have nothing to validate under snapshot isolation.
        _writing(SAFE, "one id", ABORT, max_compaction_ops=1),
        _writing(SAFE, "two ids", ABORT, max_compaction_ops=1, col1_values=TWO),
        _writing(SAFE, "serializable", max_compaction_ops=1, isolation=SERIALIZABLE),
        _writing(
            SAFE,
            "compaction takes a new sequence number and looks",
            max_compaction_ops=1,
            starting_sequence=False,
        ),
        _writing(
            MUTANT,
            "equal sequence number hides",
            mutant="equal-sequence",
            max_compaction_ops=1,
            max_write_ops=1,
            violates=READ,
            steps=4,
            moves=2,
        ),
        _writing(
            MUTANT,
            "compaction takes a new sequence number and does not look",
            mutant="unchecked-rewrite",
            starting_sequence=False,
            max_compaction_ops=1,
            max_write_ops=2,
            violates=READ,
            steps=13,
            moves=6,
        ),
    ),
)

NO_OVERWRITE = "StartFilterOverwriteOperation"

FILTERS = ModelSuite(
    name="filter-deletes",
    format=ICEBERG,
    shows="Files are dropped by their bounds, judged against the version that is built on.",
    model=DeletesByFilter,
    without=DANGLING,
    options=REDUCED,
    cases=(
        _writing(SAFE, "one id", NO_OVERWRITE, fix="A"),
        _writing(
            SAFE,
            "two ids, compaction",
            NO_OVERWRITE,
            fix="A",
            col1_values=TWO,
            max_compaction_ops=1,
        ),
        _writing(
            SAFE,
            "overwrites by filter, compaction",
            fix="A",
            col1_values=TWO,
            max_compaction_ops=1,
            allow_overwrites=True,
        ),
        _writing(
            SAFE,
            "overwrites by filter, serializable",
            isolation=SERIALIZABLE,
            fix="A",
            col1_values=TWO,
            allow_overwrites=True,
        ),
        _writing(
            CONTROL,
            "DELETE ignores dropped files",
            NO_OVERWRITE,
            fix="A",
            mutant="delete-ignores-drops",
            shows="The row that it deletes is gone anyway.",
        ),
        _writing(
            CONTROL,
            "DELETE ignores dropped files, 4 writes, rows have an identity",
            NO_OVERWRITE,
            fix="A",
            mutant="delete-ignores-drops",
            max_write_ops=4,
            history="row",
            shows="A row that was inserted again is another row.",
        ),
        _writing(
            MUTANT,
            "DELETE ignores dropped files, 4 writes, rows are keys",
            fix="A",
            mutant="delete-ignores-drops",
            max_write_ops=4,
            violates=READ,
            steps=16,
            moves=8,
            shows="A row that was inserted again counts as deleted, and is still there.",
        ),
        _writing(
            MUTANT,
            "UPDATE ignores dropped files",
            fix="A",
            mutant="update-ignores-drops",
            violates=READ,
            steps=12,
            moves=6,
        ),
        _writing(
            MUTANT,
            "bounds are exact",
            fix="A",
            col1_values=TWO,
            max_compaction_ops=1,
            mutant="bounds-are-exact",
            violates=READ,
            steps=16,
            moves=8,
        ),
        _writing(
            MUTANT,
            "filter on the scan version",
            fix="A",
            col1_values=TWO,
            mutant="filters-the-scan",
            violates=READ,
            steps=11,
            moves=6,
        ),
    ),
)

VECTORS = ModelSuite(
    name="deletion-vectors",
    format=ICEBERG,
    shows="On format version 3 the anomaly is gone without a fix: one vector a file, checked.",
    model=DeletionVectors,
    without=DANGLING,
    options=REDUCED,
    cases=(
        _writing(SAFE, "no fix needed"),
        _writing(SAFE, "two ids, 4 writes", col1_values=TWO, max_write_ops=4),
        _writing(SAFE, "update copies", update_mode=COPY_ON_WRITE, max_write_ops=4),
        _writing(
            MUTANT,
            "vector without union",
            mutant="no-union",
            writers=1,
            max_write_ops=4,
            max_compaction_ops=1,
            col1_values=TWO,
            violates=READ,
            steps=23,
            moves=10,
        ),
        _writing(
            MUTANT, "vector unchecked", mutant="unchecked-vector", violates=READ, steps=14, moves=6
        ),
    ),
)

DELETE_FILES = ModelSuite(
    name="delete-file-compaction",
    format=ICEBERG,
    shows="Delete files may be merged, and dangling entries dropped, without changing a scan.",
    model=DeleteFileCompaction,
    without=DANGLING,
    options=REDUCED,
    cases=(
        _writing(SAFE, "one id", fix="A"),
        _writing(SAFE, "two ids, compaction", fix="A", max_compaction_ops=1, col1_values=TWO),
        _writing(
            CONTROL,
            "the result gets the new sequence number",
            fix="A",
            mutant="new-sequence",
            shows="A position delete names its file, so a greater number hides nothing more.",
        ),
        _writing(
            CONTROL,
            "dangling is judged at the scan",
            fix="A",
            mutant="drops-at-scan",
            max_compaction_ops=1,
            col1_values=TWO,
            shows="A path that is gone never comes back.",
        ),
        _writing(
            MUTANT,
            "delete files lost",
            fix="A",
            mutant="loses-deletes",
            violates=READ,
            steps=19,
            moves=8,
        ),
    ),
)

# Without compaction every old file is still in use.
IN_USE = ("DeleteFile", "ReadDataFiles (file is gone)")

EXPIRY = ModelSuite(
    name="expiry-and-writers",
    format=ICEBERG,
    shows="A writer whose scan snapshot is expired must abort, and keep its files if unsure.",
    model=SnapshotExpiry,
    without=DANGLING,
    options=REDUCED,
    cases=(
        _writing(SAFE, "no compaction", *IN_USE, fix="A"),
        _writing(SAFE, "compaction", fix="A", max_compaction_ops=1),
        _writing(SAFE, "lost replies", fix="A", max_compaction_ops=1, max_unknowns=1),
        _writing(
            MUTANT,
            "scan snapshot missing, validation skipped",
            fix="A",
            mutant="skips-validation",
            violates=READ,
            steps=15,
            moves=12,
        ),
        _writing(
            MUTANT,
            "clean-up on unknown outcome",
            fix="A",
            mutant="cleans-on-unknown",
            max_unknowns=1,
            violates=WHOLE,
            steps=4,
            moves=3,
        ),
        _writing(
            MUTANT,
            "shared files deleted",
            fix="A",
            mutant="deletes-shared",
            violates=WHOLE,
            steps=11,
            moves=9,
        ),
    ),
)

ICEBERG_MODELS = (BASE, PARTITIONS, EQUALITY, FILTERS, VECTORS, DELETE_FILES, EXPIRY)
