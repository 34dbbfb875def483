"""What a Delta writer does to the metadata of a table while Iceberg clients commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlake.commit import CommitOptions, Operation, OperationName, Transaction
from twinlake.compat import with_column_mapping
from twinlake.schema import add_column, parse_field_ddl
from twinlake.verify.code.row_engine import RowEffect

if TYPE_CHECKING:
    from collections.abc import Callable

    from twinlake.protocol import Metadata
    from twinlake.verify.code.row_engine import RowEngine, Rows, StatementResult

__all__ = ["AddColumn", "SetProperty"]


class _MetadataChange:
    """A commit of metadata alone, which makes no Iceberg snapshot."""

    __slots__ = ()

    def _commit(
        self, engine: RowEngine, operation: OperationName, change: Callable[[Metadata], Metadata]
    ) -> StatementResult:
        snapshot = engine.load()
        engine.effect = RowEffect(read_version=snapshot.version)
        txn = Transaction(
            snapshot,
            Operation(name=operation),
            engine.runtime,
            engine.hooks,
            options=CommitOptions(user_metadata=engine.tag),
        )
        return txn.update_metadata(change(snapshot.metadata)).commit().version

    def apply(self, rows: Rows) -> Rows:
        """The same rows."""
        return rows


@dataclass(frozen=True, slots=True)
class SetProperty(_MetadataChange):
    """SET TBLPROPERTIES: nothing that a client requires."""

    name: str = "set property"

    def run(self, engine: RowEngine) -> StatementResult:
        """Load, set, commit."""
        return self._commit(
            engine,
            OperationName.SET_TBLPROPERTIES,
            lambda metadata: metadata.with_configuration({"owner": engine.tag}),
        )


@dataclass(frozen=True, slots=True)
class AddColumn(_MetadataChange):
    """ADD COLUMN: another schema, though no file changes."""

    name: str = "add column"

    def run(self, engine: RowEngine) -> StatementResult:
        """Load, add, commit."""
        _, column = parse_field_ddl("note STRING")
        return self._commit(
            engine,
            OperationName.ADD_COLUMNS,
            lambda metadata: with_column_mapping(
                metadata,
                metadata.with_schema(add_column(metadata.schema, column)),
                engine.runtime.ids,
            ),
        )
