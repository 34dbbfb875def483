"""Rows of a table without Spark: reading them, and the operations that change them in this process.

How a single file is read and written belongs to ``twinlake.files``, which files a change adds and
removes to ``twinlake.commit.plans``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from twinlake.table.rows.arrow_data import ArrowData
    from twinlake.table.rows.delete import files_by_partition
    from twinlake.table.rows.given_columns import (
        columns_with_values,
        computed_columns,
        identity_fields,
        identity_paths,
        refuse_explicit,
        refuse_missing,
        refuse_unknown,
        refuse_update,
    )
    from twinlake.table.rows.optimize import ArrowRewriter
    from twinlake.table.rows.removed_files import RemovedFiles, all_files, same_partitions
    from twinlake.table.rows.row_commit import (
        CHANGE_FIELDS,
        CHANGE_FOLDER,
        CHANGE_TYPE,
        UncommittedFiles,
        change_actions,
        commit_change,
        is_committed,
        table_after,
        table_target,
        write_metrics,
        write_vectors,
    )
    from twinlake.table.rows.rule_errors import (
        check_constraints,
        column_invariants,
        generated_rule,
        null_value,
        text_too_long,
    )
    from twinlake.table.rows.schema_evolution import (
        evolve,
        first_schema,
        read_field_metadata,
        refuse_duplicates,
        refuse_mismatch,
        refuse_missing_partitions,
        refuse_partitions_alone,
    )
    from twinlake.table.rows.write import NewRows, metadata_of_write, new_rows

__all__ = [
    "CHANGE_FIELDS",
    "CHANGE_FOLDER",
    "CHANGE_TYPE",
    "ArrowData",
    "ArrowRewriter",
    "NewRows",
    "RemovedFiles",
    "UncommittedFiles",
    "all_files",
    "change_actions",
    "check_constraints",
    "column_invariants",
    "columns_with_values",
    "commit_change",
    "computed_columns",
    "evolve",
    "files_by_partition",
    "first_schema",
    "generated_rule",
    "identity_fields",
    "identity_paths",
    "is_committed",
    "metadata_of_write",
    "new_rows",
    "null_value",
    "read_field_metadata",
    "refuse_duplicates",
    "refuse_explicit",
    "refuse_mismatch",
    "refuse_missing",
    "refuse_missing_partitions",
    "refuse_partitions_alone",
    "refuse_unknown",
    "refuse_update",
    "same_partitions",
    "table_after",
    "table_target",
    "text_too_long",
    "write_metrics",
    "write_vectors",
]

if not TYPE_CHECKING:  # most uses of a table change no rows
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "twinlake.table.rows.arrow_data": ("ArrowData",),
            "twinlake.table.rows.delete": ("files_by_partition",),
            "twinlake.table.rows.given_columns": (
                "columns_with_values",
                "computed_columns",
                "identity_fields",
                "identity_paths",
                "refuse_explicit",
                "refuse_missing",
                "refuse_unknown",
                "refuse_update",
            ),
            "twinlake.table.rows.optimize": ("ArrowRewriter",),
            "twinlake.table.rows.removed_files": (
                "RemovedFiles",
                "all_files",
                "same_partitions",
            ),
            "twinlake.table.rows.row_commit": (
                "CHANGE_FIELDS",
                "CHANGE_FOLDER",
                "CHANGE_TYPE",
                "change_actions",
                "write_vectors",
                "UncommittedFiles",
                "commit_change",
                "is_committed",
                "table_after",
                "table_target",
                "write_metrics",
            ),
            "twinlake.table.rows.rule_errors": (
                "check_constraints",
                "generated_rule",
                "column_invariants",
                "null_value",
                "text_too_long",
            ),
            "twinlake.table.rows.schema_evolution": (
                "evolve",
                "first_schema",
                "read_field_metadata",
                "refuse_duplicates",
                "refuse_mismatch",
                "refuse_missing_partitions",
                "refuse_partitions_alone",
            ),
            "twinlake.table.rows.write": ("NewRows", "metadata_of_write", "new_rows"),
        },
    )
