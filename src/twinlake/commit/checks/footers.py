"""The footers of data files as the compatibility rules want them: next to what the log says."""

from __future__ import annotations

from itertools import tee
from typing import TYPE_CHECKING

from twinlake.compat import FileFooter
from twinlake.schema import field_id, physical_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from twinlake.actions import AddFile, Metadata
    from twinlake.runtime import Executor
    from twinlake.storage import Store

__all__ = ["file_footers"]


def file_footers(
    store: Store, adds: Iterable[AddFile], executor: Executor, metadata: Metadata
) -> Iterator[FileFooter]:
    """The footer of every file of a table, in the order of the files and as they are read.

    A file that is not there or is damaged has no root and a problem. Only what the executor has at
    hand is in memory, so a table of any size may be walked through.
    """
    from twinlake.log import read_nodes

    files, named = tee(adds)
    sizes = ((add.path, add.size) for add in named)
    found = read_nodes(store, sizes, executor, columns=_partition_columns(metadata))
    for add, nodes in zip(files, found, strict=True):
        yield FileFooter(
            add=add,
            root=nodes.root,
            num_rows=nodes.num_rows,
            problem=nodes.problem,
            legacy=nodes.legacy,
            bounds=nodes.bounds,
        )


def _partition_columns(metadata: Metadata) -> tuple[tuple[str, int | None], ...]:
    fields = (metadata.schema.get(name) for name in metadata.partition_columns)
    return tuple((physical_name(field), field_id(field)) for field in fields if field is not None)
