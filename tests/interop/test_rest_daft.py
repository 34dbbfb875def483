"""daft reads and appends to a table of the catalog; what it commits is a Delta commit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.not_run import not_run
from tests.support.servers.catalog import catalog_server
from twinlake import Table

pytestmark = pytest.mark.process

_PROJECT = Path(__file__).resolve().parents[2]
_DAFT = _PROJECT / ".tools" / "daft"
_DRIVER = _PROJECT / "tests" / "support" / "rest" / "daft_driver.py"


def test_daft_reads_and_appends(tmp_path: Path) -> None:
    if not (_DAFT / "daft").is_dir():
        not_run("daft is missing; run `make daft`", required_by="TWINLAKE_REQUIRE_DAFT")
    with catalog_server(tmp_path) as server:
        catalog = server.address.pyiceberg()
        catalog.create_namespace("n")
        rows = pa.table({"id": pa.array([1, 2], pa.int64()), "name": ["a", "b"]})
        table = catalog.create_table("n.t", rows.schema)
        table.append(rows)
        table.delete("id = 1")
        path = os.pathsep.join(str(p) for p in (_PROJECT / "src", _DAFT))
        done = subprocess.run(
            [sys.executable, str(_DRIVER), server.url, "n.t"],
            env={**os.environ, "PYTHONPATH": path, "DO_NOT_TRACK": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["before"] == [{"id": 2, "name": "b"}]
        assert found["after"] == [{"id": 2, "name": "b"}, {"id": 7, "name": "by daft"}]

        delta = Table.open(table.location())
        assert sorted(delta.to_arrow().to_pylist(), key=str) == found["after"]
        assert delta.history()[0].operation == "WRITE"
        assert delta.verify_twin(rows=True).agrees
