"""The statements: Delta's own by their grammar, and those of Spark's parser by their node.

A new statement is one class or one function in the module of its family, and one entry here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from twinlake.spark.statements.commands import (
    alterations,
    definitions,
    delta_alterations,
    descriptions,
    inserts,
    rewrites,
    row_changes,
    unsupported,
    vacuum,
    versions,
    with_clause,
)
from twinlake.spark.statements.queries import select

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame

    from twinlake.spark.statements.queries.statement import SparkStatement
    from twinlake.spark.statements.syntax.cursor import TokenCursor

__all__ = ["DELTA_FORMS", "PLAN_HANDLERS", "DeltaForm", "DeltaStatement"]


class DeltaStatement(Protocol):
    """A statement that was read."""

    def run(self, statement: SparkStatement) -> DataFrame:
        """Run it; the result is what Delta Spark returns."""
        ...


class DeltaForm(Protocol):
    """A kind of statement of Delta's own grammar."""

    def parse(self, cursor: TokenCursor) -> DeltaStatement | None:
        """The statement, or None for one of another kind."""
        ...


DELTA_FORMS: Final[tuple[DeltaForm, ...]] = (
    vacuum.VacuumStatement,
    versions.DescribeHistory,
    versions.DescribeDetail,
    versions.RestoreTable,
    rewrites.OptimizeTable,
    rewrites.ReorgTable,
    delta_alterations.AddConstraint,
    delta_alterations.DropConstraint,
    delta_alterations.DropFeature,
    delta_alterations.ClusterTable,
    delta_alterations.SyncIdentity,
    unsupported.GenerateManifest,
    unsupported.ConvertToDelta,
    unsupported.CloneTable,
    unsupported.AnalyzeDelta,
)
"""Tried in this order; a form that is not meant answers None."""

PLAN_HANDLERS: Final[Mapping[str, Callable[[SparkStatement, Any], DataFrame | None]]] = {
    "DeleteFromTable": row_changes.delete_rows,
    "UpdateTable": row_changes.update_rows,
    "MergeIntoTable": row_changes.merge_rows,
    "TruncateTable": row_changes.truncate_table,
    "InsertIntoStatement": inserts.insert_rows,
    "Union": inserts.several_inserts,
    "OverwriteByExpression": inserts.overwrite_by_expression,
    "CreateTable": definitions.create_table,
    "ReplaceTable": definitions.replace_table,
    "CreateTableAsSelect": definitions.create_table_as_select,
    "ReplaceTableAsSelect": definitions.replace_table_as_select,
    "DropTable": definitions.drop_table,
    "CreateViewCommand": definitions.create_view,
    "CreateView": definitions.create_lasting_view,
    "SetTableProperties": alterations.set_properties,
    "UnsetTableProperties": alterations.unset_properties,
    "AddColumns": alterations.add_columns,
    "AlterColumns": alterations.alter_columns,
    "RenameColumn": alterations.rename_column,
    "DropColumns": alterations.drop_columns,
    "DescribeRelation": descriptions.describe_table,
    "DescribeColumn": descriptions.describe_column,
    "ShowColumns": descriptions.show_columns,
    "ShowPartitions": descriptions.show_partitions,
    "ShowTableProperties": descriptions.show_properties,
    "ShowCreateTable": descriptions.show_create_table,
    "ShowTables": descriptions.show_tables,
    "UnresolvedWith": with_clause.run_with_clause,
    "ExplainCommand": select.explain_query,
    "CompoundBody": select.refuse_script,
}
"""By the node that Spark's parser makes; a handler answers None for what is not ours."""
