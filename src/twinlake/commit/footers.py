"""The footers of data files as the compatibility rules want them: next to what the log says."""

from __future__ import annotations

from itertools import tee
from typing import TYPE_CHECKING

from twinlake.compat import FileFooter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from twinlake.actions import AddFile
    from twinlake.runtime import Executor
    from twinlake.storage import Store

__all__ = ["file_footers"]


def file_footers(store: Store, adds: Iterable[AddFile], executor: Executor) -> Iterator[FileFooter]:
    """The footer of every file, in the order of the files and as they are read.

    A file that is not there or is damaged has no root and a problem. Only what the executor has at
    hand is in memory, so a table of any size may be walked through.
    """
    from twinlake.log import read_nodes

    files, named = tee(adds)
    found = read_nodes(store, ((add.path, add.size) for add in named), executor)
    for add, nodes in zip(files, found, strict=True):
        yield FileFooter(
            add=add,
            root=nodes.root,
            num_rows=nodes.num_rows,
            problem=nodes.problem,
            legacy=nodes.legacy,
        )
