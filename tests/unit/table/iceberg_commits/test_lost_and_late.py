"""Requests that come twice, late, or whose answer was lost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from tests.support.iceberg.direct_catalog import DirectCatalog
from tests.support.iceberg.outside_writer import OutsideWriter, column, hold_together
from twinlake import Table
from twinlake.errors import Code, CommitUnknown, ConflictError, StorageError, UserError
from twinlake.storage import LocalStore, Unknown
from twinlake.table.iceberg_commits import IcebergCommits

if TYPE_CHECKING:
    from pathlib import Path

    from twinlake.storage import CreateOutcome

COLUMNS = (column(1, "id", "long", required=True),)
KEY = "01890b5e-0000-7000-8000-000000000001"


def body(updates: list[Any], requirements: list[Any] | None = None) -> bytes:
    return json.dumps({"requirements": requirements or [], "updates": updates}).encode()


def ids(writer: OutsideWriter) -> list[int]:
    return sorted(row["id"] for row in hold_together(writer.folder))


def at_main(writer: OutsideWriter) -> dict[str, Any]:
    return {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": writer.main}


@pytest.fixture
def table(tmp_path: Path) -> OutsideWriter:
    return OutsideWriter(tmp_path / "t").create(*COLUMNS)


def test_a_snapshot_sent_again_is_committed_once(table: OutsideWriter) -> None:
    request = body(table.change(added=[table.write([{"id": 1}])]), [at_main(table)])
    table.send_body(request)
    version = table.append([{"id": 2}]) and table.state.version
    assert table.send_body(request).version == version
    assert ids(table) == [1, 2]


def test_a_key_stands_for_one_request(table: OutsideWriter) -> None:
    request = body([{"action": "set-properties", "updates": {"owner": "ann"}}])
    version = table.send_body(request, KEY).version
    assert table.send_body(request, KEY).version == version
    other = body([{"action": "set-properties", "updates": {"owner": "bob"}}])
    with pytest.raises(UserError) as caught:
        table.send_body(other, KEY)
    assert caught.value.code == Code.KEY_REUSED
    assert table.send_body(other, KEY + "2").version == version + 1


def test_a_key_is_looked_for_after_the_base_only(table: OutsideWriter) -> None:
    """What a request was built on cannot have been made by it."""
    table.append([{"id": 1}])
    owner = {"action": "set-properties", "updates": {"owner": "ann"}}
    table.send_body(body([owner], [at_main(table)]), KEY)
    table.append([{"id": 2}])
    later = body([{**owner, "updates": {"owner": "bob"}}], [at_main(table)])
    table.send_body(later, KEY)
    assert table.metadata["properties"]["owner"] == "bob"


def test_a_creation_sent_again(tmp_path: Path) -> None:
    commits, store = IcebergCommits(), LocalStore(tmp_path / "t")
    schema = {"type": "struct", "fields": list(COLUMNS)}
    request = json.dumps({"name": "t", "schema": schema}).encode()
    made = commits.create(store, request, KEY)
    assert commits.create(store, request, KEY).uuid == made.uuid
    with pytest.raises(ConflictError):
        commits.create(store, request)
    with pytest.raises(UserError) as caught:
        commits.create(store, request + b" ", KEY)
    assert caught.value.code == Code.KEY_REUSED


# Races: the other commit comes between the client's look at the table and its own.


@pytest.fixture
def catalog(tmp_path: Path) -> DirectCatalog:
    made = DirectCatalog(tmp_path)
    made.create_table("n.t", Schema(NestedField(1, "id", LongType())))
    return made


ROWS = pa.table({"id": [1]})


def test_rows_of_a_delta_writer_win(catalog: DirectCatalog, tmp_path: Path) -> None:
    table = catalog.load_table("n.t")

    def other() -> None:
        catalog.transport.before_commit = lambda: None
        Table.open(tmp_path / "t").append(pa.table({"id": [2]}))

    catalog.transport.before_commit = other
    table.append(ROWS)
    # The first request was a conflict, and PyIceberg built the second on the new version.
    first, second = (json.loads(one) for one in catalog.transport.sent)
    assert first["requirements"] != second["requirements"]
    assert sorted(row["id"] for row in hold_together(tmp_path / "t")) == [1, 2]


def test_a_request_on_an_old_version_is_a_conflict(table: OutsideWriter) -> None:
    request = body(table.change(added=[table.write([{"id": 1}])]), [at_main(table)])
    table.append([{"id": 2}])
    with pytest.raises(ConflictError, match="since the request was built"):
        table.send_body(request)
    assert ids(table) == [2]


def test_a_property_of_a_delta_writer_does_not(catalog: DirectCatalog, tmp_path: Path) -> None:
    table = catalog.load_table("n.t")

    def other() -> None:
        catalog.transport.before_commit = lambda: None
        Table.open(tmp_path / "t").set_properties({"owner": "ann"})

    catalog.transport.before_commit = other
    table.append(ROWS)
    assert len(catalog.transport.sent) == 1
    assert [row["id"] for row in hold_together(tmp_path / "t")] == [1]
    assert Table.open(tmp_path / "t").properties["owner"] == "ann"


# Stores whose replies are lost.


class DeafStore(LocalStore):
    """Loses the reply to the next commit; then every read of it fails too, if it is blind."""

    def __init__(self, folder: Path, *, writes: bool = True, is_blind: bool = False) -> None:
        super().__init__(folder)
        self.writes, self.is_blind = writes, is_blind
        self.lost: str | None = None

    def create(self, key: str, data: bytes) -> CreateOutcome:
        if not key.startswith("_delta_log/0") or not key.endswith(".json") or self.lost:
            return super().create(key, data)
        self.lost = key
        if self.writes:
            super().create(key, data)
        return Unknown("the reply was lost")

    def read(self, key: str) -> bytes:
        if self.is_blind and key == self.lost:
            raise StorageError(Code.STORAGE, "The store did not answer.")
        return super().read(key)


@pytest.mark.parametrize("writes", [True, False], ids=["written", "not written"])
def test_a_lost_reply_is_settled_by_a_look(table: OutsideWriter, writes: bool) -> None:
    table.append([{"id": 1}])
    request = body(table.change(added=[table.write([{"id": 2}])]), [at_main(table)])
    table.commits.commit(DeafStore(table.folder, writes=writes), request)
    assert ids(table) == [1, 2]


def test_an_unknown_outcome_is_said_and_keeps_what_it_needs(table: OutsideWriter) -> None:
    """The rewritten file may belong to the table, so it stays; sent again, all is well."""
    file = table.append([{"id": 1}, {"id": 2}])
    deletes = [table.positions([(file, 0)])]
    request = body(table.change(deletes=deletes, operation="delete"), [at_main(table)])
    with pytest.raises(CommitUnknown):
        table.commits.commit(DeafStore(table.folder, is_blind=True), request)
    version = table.state.version
    assert ids(table) == [2]
    assert table.send_body(request).version == version
    assert ids(table) == [2]
