"""OPTIMIZE in this process: small files of a partition become larger ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from twinlake.commit import Operation, OperationName
from twinlake.commit.plans import OptimizeOptions, TableRules, plan_optimize
from twinlake.errors import Code, TwinlakeError, UnsupportedFeature, UserError
from twinlake.files import RewriteBin, RewriteJob, RewriteTask, map_ahead
from twinlake.protocol import keys, property_value
from twinlake.runtime import RewriteRequest
from twinlake.schema.predicates import is_partition_only
from twinlake.table.rows.delete import files_by_partition
from twinlake.table.rows.row_commit import UncommittedFiles, commit_change
from twinlake.table.rows.row_scan import exact_predicate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twinlake.actions import AddFile
    from twinlake.commit import CommitOptions, CommitResult
    from twinlake.table.view import TableView

__all__ = ["ArrowRewriter", "optimize_files"]

_GIB: Final = 1 << 30
_HOLLOW: Final = 0.05


def optimize_files(
    table: TableView,
    where: str | None,
    target_size: int | None,
    *,
    options: CommitOptions,
) -> CommitResult | None:
    """Pack small files and those with many deleted rows; None if there is nothing to pack."""
    snapshot, metadata = table.snapshot, table.metadata
    files = [add for add in _chosen(table, where) if add.clustering_provider is None]
    asked = target_size or property_value(metadata, keys.TARGET_FILE_SIZE) or _GIB
    plan = plan_optimize(
        files,
        rules=TableRules.of(metadata),
        options=OptimizeOptions(
            target_size=asked, min_file_size=None, max_deleted_ratio=_HOLLOW, lone_files=False
        ),
    )
    if not plan.bins:
        return None
    parameters = {
        "predicate": [] if where is None else [where],
        "zOrderBy": [],
        "clusterBy": [],
        "auto": False,
    }
    request = RewriteRequest(
        snapshot=snapshot,
        bins=tuple(packed.files for packed in plan.bins),
        metadata=metadata,
        row_ids=plan.materialise_row_ids,
        progress=table.runtime.progress,
    )
    written = ArrowRewriter().rewrite(request)
    with UncommittedFiles(snapshot.store) as made:
        made.add(*(file for new in written for file in new))
        outcome = plan.finish(written, now=table.runtime.clock.now_ms())
        return commit_change(
            table,
            Operation(name=OperationName.OPTIMIZE, parameters=parameters),
            outcome.actions,
            reads=outcome.reads,
            metrics=outcome.metrics,
            options=options,
            tags=outcome.tags,
            made=made,
        )


def _chosen(table: TableView, where: str | None) -> Sequence[AddFile]:
    snapshot = table.snapshot
    if where is None:
        return list(snapshot.adds())
    expr = exact_predicate(where, snapshot)
    if not is_partition_only(expr, table.metadata.partition_columns):
        columns = ", ".join(table.metadata.partition_columns)
        raise UserError(
            Code.PREDICATE_INVALID,
            f"The predicate {where} names columns that are not partition columns.",
            why=f"whole files are selected, by the partition columns [{columns}]",
            fix="Leave the other columns out, or leave the predicate out.",
            delta_class="DELTA_NON_PARTITION_COLUMN_REFERENCE",
            fields={"columnList": columns},
        )
    return list(snapshot.live_files(files_by_partition(snapshot, expr)).values())


@dataclass(frozen=True, slots=True)
class ArrowRewriter:
    """Rewrites files in this process, several bins at once."""

    def rewrite(self, request: RewriteRequest) -> Sequence[Sequence[AddFile]]:
        """The new files of each bin, in the order of the bins; nothing is committed."""
        job = RewriteJob.of(request)
        bins = [RewriteBin(number=n, files=tuple(some)) for n, some in enumerate(request.bins)]
        made: list[tuple[AddFile, ...]] = []
        failed: TwinlakeError | None = None if job.fits_arrow() else _needs_spark()
        results = map_ahead(RewriteTask(job), bins if failed is None else ())
        with UncommittedFiles(request.snapshot.store, commits=False) as written:
            for result in results:
                if result is None or isinstance(result, TwinlakeError):
                    failed = failed or result or _needs_spark()
                    continue
                written.add(*result)
                made.append(result)
                request.progress("rewrite", len(made), len(bins))
            if failed is not None:
                raise failed
        return [job.placed(packed.files, new) for packed, new in zip(bins, made, strict=True)]


def _needs_spark() -> UnsupportedFeature:
    return UnsupportedFeature(
        Code.SPARK_REQUIRED,
        "Files of the table can only be rewritten on Spark.",
        why="They hold types or values that Arrow does not read as Spark does.",
        fix="Run `twinlake.spark.DeltaTable.forPath(spark, path).optimize().executeCompaction()`.",
    )
