"""What OPTIMIZE did, and the row it gives back with the columns of Delta's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from twinlake.protocol import keys, property_value
from twinlake.spark.read.file_list import hadoop_root
from twinlake.table import files_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from twinlake.actions import AddFile
    from twinlake.commit import HookWarning
    from twinlake.compat import Plan
    from twinlake.table import Table

__all__ = ["OptimizeResult"]

_SIZES: Final = (
    "struct<min: bigint, max: bigint, avg: double NOT NULL, totalFiles: bigint NOT NULL, "
    "totalSize: bigint NOT NULL>"
)
_CUBE: Final = "struct<num: bigint NOT NULL, size: bigint NOT NULL>"
_CLUSTER: Final = "struct<numFiles: bigint NOT NULL, size: bigint NOT NULL>"
_SCHEMA: Final = f"""
path string, metrics struct<
  numFilesAdded: bigint NOT NULL, numFilesRemoved: bigint NOT NULL,
  filesAdded: {_SIZES}, filesRemoved: {_SIZES}, partitionsOptimized: bigint NOT NULL,
  zOrderStats: struct<strategyName: string, inputCubeFiles: {_CUBE}, inputOtherFiles: {_CUBE},
    inputNumCubes: bigint NOT NULL, mergedFiles: {_CUBE}, numOutputCubes: bigint NOT NULL,
    mergedNumCubes: bigint>,
  clusteringStats: struct<inputZCubeFiles: {_CLUSTER}, inputOtherFiles: {_CLUSTER},
    inputNumZCubes: bigint NOT NULL, mergedFiles: {_CLUSTER}, numOutputZCubes: bigint NOT NULL>,
  numBins: bigint NOT NULL, numBatches: bigint NOT NULL, totalConsideredFiles: bigint NOT NULL,
  totalFilesSkipped: bigint NOT NULL, preserveInsertionOrder: boolean NOT NULL,
  numFilesSkippedToReduceWriteAmplification: bigint NOT NULL,
  numBytesSkippedToReduceWriteAmplification: bigint NOT NULL,
  startTimeMs: bigint NOT NULL, endTimeMs: bigint NOT NULL,
  totalClusterParallelism: bigint NOT NULL, totalScheduledTasks: bigint NOT NULL,
  autoCompactParallelismStats: struct<maxClusterActiveParallelism: bigint,
    minClusterActiveParallelism: bigint, maxSessionActiveParallelism: bigint,
    minSessionActiveParallelism: bigint>,
  deletionVectorStats: struct<numDeletionVectorsRemoved: bigint NOT NULL,
    numDeletionVectorRowsRemoved: bigint NOT NULL>,
  numTableColumns: bigint NOT NULL, numTableColumnsWithStats: bigint NOT NULL>
"""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OptimizeResult:
    """What an OPTIMIZE or a REORG did."""

    table: Table
    """The table afterwards."""
    version: int | None
    """The version it made; None if there was nothing to do."""
    added: tuple[AddFile, ...] = ()
    removed: tuple[AddFile, ...] = ()
    partitions: int = 0
    bins: int = 0
    considered: int = 0
    started_ms: int = 0
    metrics: Mapping[str, str] = field(default_factory=dict)
    """As the history shows them; empty if there was nothing to do."""
    warnings: tuple[HookWarning, ...] = ()
    plan: Plan | None = None
    """The steps of an UPGRADE UNIFORM."""

    def __repr__(self) -> str:
        return f"<OptimizeResult of {self.table.location}: {self._summary}>"

    @property
    def _summary(self) -> str:
        if self.version is None:
            return "nothing to do"
        removed, added = (
            files_text(len(files), sum(file.size for file in files))
            for files in (self.removed, self.added)
        )
        return f"{removed} rewritten to {added}, version {self.version}"

    def _repr_html_(self) -> str:
        from twinlake._html import fields, grid, page

        return page(
            f"OPTIMIZE: {self._summary}",
            fields(
                [
                    ("location", self.table.location),
                    ("partitions", self.partitions),
                    ("files considered", self.considered),
                    *(("warning", str(warning)) for warning in self.warnings),
                ]
            ),
            grid(("file added", "size"), ((file.path, file.size) for file in self.added)),
            grid(("file removed", "size"), ((file.path, file.size) for file in self.removed)),
        )

    def to_frame(self, spark: SparkSession) -> DataFrame:
        """One row with the columns of Delta's OPTIMIZE: path and metrics."""
        metadata = self.table.metadata
        columns = len(metadata.schema)
        indexed = int(property_value(metadata, keys.DATA_SKIPPING_NUM_INDEXED_COLS))
        vectors = [f.deletion_vector for f in self.removed if f.deletion_vector is not None]
        metrics = (
            len(self.added),
            len(self.removed),
            _sizes(self.added),
            _sizes(self.removed),
            self.partitions,
            None,
            None,
            self.bins,
            1,
            self.considered,
            self.considered - len(self.removed),
            False,
            0,
            0,
            self.started_ms,
            0,
            spark.sparkContext.defaultParallelism,
            0,
            None,
            (len(vectors), sum(vector.cardinality for vector in vectors)) if vectors else None,
            columns,
            columns if indexed < 0 else min(indexed, columns),
        )
        return spark.createDataFrame([(hadoop_root(self.table.location), metrics)], _SCHEMA)


def _sizes(files: Sequence[AddFile]) -> tuple[Any, ...]:
    sizes = [file.size for file in files]
    if not sizes:
        return None, None, 0.0, 0, 0
    return min(sizes), max(sizes), sum(sizes) / len(sizes), len(sizes), sum(sizes)
