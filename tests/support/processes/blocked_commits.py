"""What the control plane does to tables whose disk is full, read-only or closed to it."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.data_files import append
from tests.support.iceberg.both_sides import iceberg_rows, twin
from tests.support.local_engine import rows_of
from tests.support.small_disk import SmallDisk
from tests.support.spark.child_drivers import step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

__all__ = ["blocked_commits"]


def blocked_commits(task: Mapping[str, Any]) -> dict[str, Any]:
    """Every operation against every obstacle; after each obstacle the table has to work."""
    from twinlake import Table, import_iceberg

    disk = SmallDisk(Path(task["folder"], "disk"), "4m")
    path, source = disk.folder / "t", _iceberg_table(disk.folder / "lake")
    numbers = count()
    table = append(twin(path, "id LONG"), path, [{"id": 1}])
    lake = str(Path(source).relative_to(disk.folder))
    # The folders are there by then: the obstacles before it let them be made.
    closed = [".", "t", "t/_delta_log", "t/_iceberg/metadata", lake, f"{lake}/_delta_log"]
    obstacles: Mapping[str, Callable[[], AbstractContextManager[None]]] = {
        "full": disk.full,
        "one page left": partial(disk.full, 4096),
        "read-only": disk.read_only,
        "closed": partial(disk.closed, *closed),
    }
    operations: Mapping[str, Callable[[], object]] = {
        "checkpoint": lambda: Table.open(path).checkpoint().version,
        "sync": lambda: str(Table.open(path).iceberg.sync()),
        "create": lambda: Table.create(disk.folder / f"new{next(numbers)}", "id LONG").version,
        "import": lambda: import_iceberg(source).table.version,
        "command": partial(_command, path),
        # Last: what is left of the disk may do for a commit, and it is one or it is none.
        "commit": lambda: Table.open(path).set_properties({"a": "b"}).version,
    }
    found: dict[str, Any] = {"blocked": [], "rows": []}
    for obstacle, blocked in obstacles.items():
        # Something that the Iceberg metadata does not have yet.
        Table.open(path).set_properties({"before": obstacle})
        for name, call in operations.items():
            version = Table.open(path).version
            with blocked():
                outcome = step(call)
            outcome |= {"obstacle": obstacle, "step": name}
            outcome["commits"] = Table.open(path).version - version
            found["blocked"].append(outcome)
        table = append(Table.open(path), path, [{"id": table.version + 10}])
        table.iceberg.sync()
        found["rows"].append([len(rows_of(table.snapshot)), len(iceberg_rows(path))])
    found["after"] = [step(operations[name]) for name in ("create", "import", "checkpoint")]
    found["temporary"] = [str(file) for file in disk.folder.rglob("*.tmp")]
    return found


def _iceberg_table(folder: Path) -> str:
    import pyarrow as pa
    from pyiceberg.catalog.sql import SqlCatalog

    folder.mkdir()
    catalog = SqlCatalog("c", uri="sqlite://", warehouse=f"file://{folder}")
    catalog.create_namespace("d")
    rows = pa.table({"id": [1, 2]})
    table = catalog.create_table("d.t", rows.schema)
    table.append(rows)
    return table.location().removeprefix("file://")


def _command(path: Path) -> str:
    words = [sys.executable, "-m", "twinlake", "alter", str(path), "--set", "x=y"]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    return f"{found.returncode} {found.stderr}"
