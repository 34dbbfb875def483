"""What a table's rows are changed by without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from twinlake.commit import CommitOptions
from twinlake.protocol import CLIENT_FEATURES
from twinlake.table.arguments import checked_arguments
from twinlake.table.rows.readable_table import ReadableTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from twinlake.commit import CommitResult

__all__ = ["WritableTable"]


@checked_arguments
class WritableTable(ReadableTable):
    """Rows of a table, changed by this process: each call is one commit."""

    def append(
        self,
        data: Any,
        *,
        merge_schema: bool = False,
        txn: tuple[str, int] | None = None,
        user_metadata: str | None = None,
    ) -> Self:
        """Add rows: of Arrow, pandas, polars, or anything with ``__arrow_c_stream__``.

        Columns are found by name. ``merge_schema`` adds columns that the table lacks.
        ``txn=(application, version)`` makes the append happen once, however often it is tried.

        >>> import tempfile, twinlake
        >>> t = twinlake.Table.create(tempfile.mkdtemp(), "id INT, name STRING")
        >>> t.append({"id": [1, 2], "name": ["a", None]}).count()
        2
        """
        return self._write(data, "Append", merge_schema, txn, user_metadata)

    def overwrite(
        self,
        data: Any,
        where: str | None = None,
        *,
        merge_schema: bool = False,
        overwrite_schema: bool = False,
        txn: tuple[str, int] | None = None,
        user_metadata: str | None = None,
    ) -> Self:
        """Put rows in the place of all rows, or of those that match ``where``."""
        return self._write(
            data,
            "Overwrite",
            merge_schema,
            txn,
            user_metadata,
            where=where,
            overwrite_schema=overwrite_schema,
        )

    def delete(self, where: str | None = None, *, user_metadata: str | None = None) -> Self:
        """Delete the rows for which ``where`` is true; without it, all rows."""
        from twinlake.table.rows.delete import delete_rows

        self._check_writable()
        return self._changed(delete_rows(self, where, options=self._options(user_metadata)))

    def update(
        self,
        set: Mapping[str, Any],
        where: str | None = None,
        *,
        user_metadata: str | None = None,
    ) -> Self:
        """Give columns new values in the rows for which ``where`` is true.

        A text is an SQL expression over the row as it was, any other value a constant.

        >>> import tempfile, twinlake
        >>> t = twinlake.Table.create(tempfile.mkdtemp(), "id INT, n INT").append({"id": [1]})
        >>> t.update({"n": "id + 1"}, where="id = 1").to_arrow().to_pylist()
        [{'id': 1, 'n': 2}]
        """
        from twinlake.table.rows.update import update_rows

        self._check_writable()
        return self._changed(update_rows(self, set, where, options=self._options(user_metadata)))

    def merge(
        self,
        data: Any,
        on: str | Sequence[str],
        *,
        update: bool | Sequence[str] = True,
        insert: bool = True,
        delete: bool = False,
        merge_schema: bool = False,
        txn: tuple[str, int] | None = None,
        user_metadata: str | None = None,
    ) -> Self:
        """Upsert rows by key columns: rows that match are updated, the others inserted.

        ``update`` names the columns to take from the data, or is False to leave matched rows as
        they are; ``delete`` deletes matched rows instead.

        >>> import tempfile, twinlake
        >>> t = twinlake.Table.create(tempfile.mkdtemp(), "id INT, n INT").append({"id": [1]})
        >>> t.merge({"id": [1, 2], "n": [5, 6]}, on="id").to_arrow().to_pydict()
        {'id': [1, 2], 'n': [5, 6]}
        """
        from twinlake.table.rows.merge import RowMerge

        self._check_writable()
        return self._changed(
            RowMerge(
                table=self,
                data=data,
                on=(on,) if isinstance(on, str) else tuple(on),
                update=update if isinstance(update, bool) else tuple(update),
                insert=insert,
                delete=delete,
                merge_schema=merge_schema,
                options=self._options(user_metadata),
                txn=txn,
            ).run()
        )

    def optimize(
        self,
        where: str | None = None,
        *,
        target_size: int | None = None,
        user_metadata: str | None = None,
    ) -> Self:
        """Pack small files into larger ones; ``where`` chooses partitions.

        The target size is the argument, the table's ``delta.targetFileSize`` or 1 GiB.
        """
        from twinlake.table.rows.optimize import optimize_files

        self._check_writable()
        options = self._options(user_metadata)
        return self._changed(optimize_files(self, where, target_size, options=options))

    def _write(
        self,
        data: Any,
        mode: str,
        merge_schema: bool,
        txn: tuple[str, int] | None,
        user_metadata: str | None,
        *,
        where: str | None = None,
        overwrite_schema: bool = False,
    ) -> Self:
        from twinlake.table.rows.write import RowWrite

        self._check_writable()
        return self._changed(
            RowWrite(
                table=self,
                data=data,
                mode=mode,
                where=where,
                merge_schema=merge_schema,
                overwrite_schema=overwrite_schema,
                options=self._options(user_metadata),
                txn=txn,
            ).run()
        )

    def _options(self, user_metadata: str | None) -> CommitOptions:
        return CommitOptions(policy=self.policy, user_metadata=user_metadata)

    def _check_writable(self) -> None:
        self.protocol.check_read_write(CLIENT_FEATURES, metadata=self.metadata)

    def _changed(self, result: CommitResult | None) -> Self:
        """The table after a commit; itself where nothing was to be changed."""
        from twinlake.table.rows.row_commit import table_after

        return self if result is None else table_after(self, result)
