"""PyIceberg writes a Delta table through the catalog server, and Spark sees each commit at once."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, Final

from twinlake import Table
from twinlake.spark import DeltaTable, scan

from .step import Step, calls, grid, prose, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

NAMES: Final = "shop.orders"
_START_SECONDS: Final = 30.0


def steps(folder: Path, spark: SparkSession) -> Iterator[Step]:
    """A table that PyIceberg makes and fills, changed by both sides in turn."""
    try:
        from pyiceberg.catalog.rest import RestCatalog
    except ImportError:
        yield missing("PyIceberg is not installed: `pip install 'twinlake[catalogs]'`.")
        return
    with contextlib.ExitStack() as stack:
        try:
            uri = stack.enter_context(server(folder))
        except RuntimeError as error:
            yield missing(str(error))
            return
        catalog = RestCatalog("lake", uri=uri)
        catalog.create_namespace("shop")
        yield appended(catalog, spark)
        yield changed(catalog, spark)


@contextlib.contextmanager
def server(folder: Path) -> Iterator[str]:
    """``twinlake serve`` on a free port of this machine, until the end of the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    uri = f"http://127.0.0.1:{port}"
    command = [
        *(sys.executable, "-m", "twinlake", "serve", "--port", str(port)),
        *("--warehouse", f"lake={folder / 'lake'}", "--database", str(folder / "server.db")),
    ]
    (folder / "lake").mkdir(parents=True, exist_ok=True)
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        until = time.monotonic() + _START_SECONDS
        while not _is_ready(uri):
            if process.poll() is not None or time.monotonic() > until:
                text = (folder / "server.log").read_text(encoding="utf-8").strip()
                raise RuntimeError(f"The server did not start: {text}")
            time.sleep(0.05)
        yield uri
    finally:
        process.terminate()
        process.wait()


def _is_ready(uri: str) -> bool:
    try:
        with urllib.request.urlopen(f"{uri}/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def appended(catalog: Any, spark: SparkSession) -> Step:
    """PyIceberg makes a table and appends; Spark reads it as a Delta table."""
    import pyarrow as pa

    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "state": ["new", "new", "paid"]})
    table = catalog.create_table(NAMES, rows.schema)
    table.append(rows)
    path = table.location()
    delta = Table.open(path)
    found = [(row.id, row.state) for row in scan(spark, path).orderBy("id").collect()]
    features = sorted(delta.protocol.writer_features or ())
    return Step(
        name="catalog_append",
        title="PyIceberg appends, Spark reads",
        data={"rows": [list(row) for row in found], "version": delta.version},
        parts=[
            prose(
                "`twinlake serve --warehouse lake=lake` is a standard Iceberg REST catalog. A "
                "commit of an Iceberg client is a commit of the Delta log: there is no pointer "
                "and no copy beside it."
            ),
            calls(
                'catalog = RestCatalog("lake", uri="http://127.0.0.1:8181")',
                f'table = catalog.create_table("{NAMES}", rows.schema)',
                "table.append(rows)",
                'scan(spark, "lake/shop/orders").show()',
            ),
            grid("id state", found),
            prose(f"Delta version {delta.version}, with the features {', '.join(features)}."),
        ],
    )


def changed(catalog: Any, spark: SparkSession) -> Step:
    """Spark updates the Delta side, PyIceberg deletes on the Iceberg side."""
    table = catalog.load_table(NAMES)
    path = table.location()
    DeltaTable.forPath(spark, path).update("state = 'new'", {"state": "'sent'"})
    table.refresh()
    table.delete("id = 2")
    by_iceberg = sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())
    by_delta = [(row.id, row.state) for row in scan(spark, path).orderBy("id").collect()]
    history = [
        (one.version, one.operation, (one.operation_parameters or {}).get("icebergSnapshotId"))
        for one in Table.open(path).history()
    ]
    return Step(
        name="catalog_change",
        title="Both sides write the same table",
        data={"iceberg": [list(r) for r in by_iceberg], "delta": [list(r) for r in by_delta]},
        parts=[
            calls(
                """DeltaTable.forPath(spark, path).update("state = 'new'", {"state": "'sent'"})""",
                'table.refresh().delete("id = 2")',
            ),
            grid("id state", by_iceberg, title="PyIceberg reads:"),
            grid("id state", by_delta, title="Spark reads:"),
            grid("version operation snapshot_of_PyIceberg", history, title="One history:"),
        ],
    )


def missing(reason: str) -> Step:
    """What to do where the example cannot run."""
    return Step(
        name="catalog",
        title="Iceberg clients write the table",
        is_opening=True,
        data={"missing": reason},
        parts=[prose(reason)],
    )


if __name__ == "__main__":
    run(steps, on_spark=True)
