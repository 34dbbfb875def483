"""A table at one version, to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twinlake.protocol import CLIENT_FEATURES, features
from twinlake.runtime import Runtime, engine_for
from twinlake.schema import check_type_changes
from twinlake.table.arguments import checked_arguments
from twinlake.table.detail import describe, detail_html
from twinlake.table.operations.context import OperationContext
from twinlake.table.rendering import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from twinlake.actions import Metadata, Protocol
    from twinlake.commit import HookWarning
    from twinlake.compat import Report
    from twinlake.log import CommitRecord, Snapshot
    from twinlake.schema import Struct
    from twinlake.table.detail import Detail

__all__ = ["TableView"]


@checked_arguments
class TableView:
    """What a table says of itself at one version; ``Table`` adds what changes it."""

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        policy: str = "bundled",
        runtime: Runtime | None = None,
        warnings: tuple[HookWarning, ...] = (),
    ) -> None:
        self._snapshot = snapshot
        self._policy = policy
        self._runtime = runtime or Runtime()
        self.warnings = warnings
        """Hooks that failed after the commit that made this value; the commit stands."""

    # Values

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot behind this value."""
        return self._snapshot

    @property
    def runtime(self) -> Runtime:
        """The ports this value works through."""
        return self._runtime

    @property
    def policy(self) -> str:
        """How the protocol grows when metadata asks for features."""
        return self._policy

    def operation_context(self, spark: Any = None) -> OperationContext:
        """What operations on this table take from outside it; ``spark`` brings an engine."""
        return OperationContext(
            runtime=self._runtime, policy=self._policy, engine=engine_for(spark)
        )

    @property
    def location(self) -> str:
        """The table's root as a URL."""
        return self._snapshot.store.url

    @property
    def version(self) -> int:
        """The Delta version this value shows."""
        return self._snapshot.version

    @property
    def metadata(self) -> Metadata:
        """Name, schema, partitioning and configuration."""
        return self._snapshot.metadata

    @property
    def protocol(self) -> Protocol:
        """What clients must support."""
        return self._snapshot.protocol

    @property
    def schema(self) -> Struct:
        """The columns."""
        return self._snapshot.schema

    @property
    def properties(self) -> Mapping[str, str]:
        """The stored configuration."""
        return self._snapshot.metadata.configuration

    def __repr__(self) -> str:
        return one_line(self._snapshot)

    def _repr_html_(self) -> str:
        from twinlake._html import tree
        from twinlake.schema import schema_nodes

        return detail_html(self.detail(), tree(schema_nodes(self.schema)))

    # Looking

    def files(self, where: str | None = None) -> pa.Table:
        """The live files that may hold rows matching ``where``, statistics as columns."""
        return self._snapshot.files(where)

    def history(self, limit: int | None = None) -> list[CommitRecord]:
        """The commits up to this version, newest first."""
        from twinlake.log import history

        return history(self._snapshot.store, self._snapshot, limit)

    def detail(self) -> Detail:
        """One record about the table."""
        return describe(self._snapshot)

    def check(
        self,
        name: str,
        files: bool = False,
        profile: str | None = None,
        spark: Any = None,
    ) -> Report:
        """Which rules of a compat feature this version breaks, all of them at once.

        The table need not have the feature. ``files`` also looks into the footer of every live
        file, with ``spark`` on its workers. ``profile`` is ``spec``, ``spark`` or ``kernel``; by
        default the table's own, else ``spec``.
        """
        from twinlake.table.operations.check import check_snapshot

        context = self.operation_context(spark)
        return check_snapshot(context, self._snapshot, name, files=files, profile=profile)

    def _check_readable(self) -> None:
        self.protocol.check_readable(CLIENT_FEATURES)
        if self.protocol.supports_either(features.TYPE_WIDENING):
            check_type_changes(self.schema)
