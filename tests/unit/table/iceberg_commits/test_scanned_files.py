"""Deletes by position of a client that says which snapshot it scanned."""

from __future__ import annotations

import pytest

from twinlake.errors import UserError
from twinlake.runtime import RandomIds, Runtime
from twinlake.verify.code import WORKLOADS
from twinlake.verify.code.row_engine import RowEngine
from twinlake.verify.code.server.client_files import SnapshotFiles
from twinlake.verify.code.server.client_statements import ClientDelete
from twinlake.verify.code.server.iceberg_client import IcebergClient
from twinlake.verify.code.statements import Delete


def engine(number: int) -> RowEngine:
    """An actor on a table of format 3 with the rows 1 to 3 in one file."""
    workload = WORKLOADS["client-vectors"]
    store, clock = workload.table()
    runtime = Runtime(clock=clock, ids=RandomIds(number))
    return RowEngine(tag="w0", store=store, runtime=runtime, hooks=workload.layout.hooks)


def ids(one: RowEngine) -> list[int]:
    """The rows that an Iceberg reader sees."""
    client = IcebergClient(one, "reader")
    files = SnapshotFiles(client, client.load()).scan()
    return sorted(
        row[1] for file in files for n, row in enumerate(file.rows) if n not in file.hidden
    )


def test_rows_are_deleted_where_nothing_changed_since_the_scan() -> None:
    one = engine(1)
    assert ids(one) == [1, 2, 3, 4, 5, 6]
    assert ClientDelete("a", 1).run(one) == 1
    assert ids(one) == [2, 3, 4, 5, 6]
    # The file has a vector now, and is as the next scan finds it.
    assert ClientDelete("a", 2, also=3).run(one) == 2
    assert ids(one) == [4, 5, 6]


def test_a_file_that_lost_other_rows_since_the_scan_is_refused() -> None:
    one = engine(1)
    client = IcebergClient(one, one.tag)
    scanned = client.load()
    file = next(f for f in SnapshotFiles(client, scanned).scan() if f.rows[0][0] == "a")
    assert Delete("a", 1).run(one) == 1
    now = SnapshotFiles(client, client.load())
    # The vector contains the live one, so that nothing else is against it.
    vectors = now.write_manifest(now.write_vectors({file.path: [frozenset({0, 1})]}))
    kept = now.kept_but_vectors(frozenset({file.path}))
    scan = {"twinlake.scanned-snapshot-id": str(scanned.table_metadata.current_snapshot_id)}
    request = client.snapshot_request(
        now.state,
        1,
        operation="delete",
        manifest_list=now.write_list([vectors, *kept]),
        summary=scan,
    )
    with pytest.raises(UserError) as refused:
        client.server.commit(one.store, request.body, request.key)
    assert refused.value.what == "Rows of the files were changed after they were scanned."
    path = file.path.removeprefix(f"{client.location}/")
    assert refused.value.fields["paths"] == [path]
    assert ids(one) == [2, 3, 4, 5, 6]
