"""The id that an Iceberg client gave to its commit is the id of the snapshot it made."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from tests.support.data_files import write_file
from tests.support.iceberg.both_sides import V2, V3, agree, opened, replace_table, twin
from twinlake import import_iceberg
from twinlake.actions import CommitInfo
from twinlake.errors import Code, UserError
from twinlake.iceberg import sync_table
from twinlake.iceberg.derive.snapshot_id import SNAPSHOT_TAG, recorded_id, snapshot_id, snapshot_tag
from twinlake.table.twin.report import DifferenceKind
from twinlake.table.twin.verify_twin import verify_twin

if TYPE_CHECKING:
    from twinlake.table import Table

OWN = 3055729675574597004
LEAST, MOST = 1, 2**63 - 1


def commit(table: Table, folder: Path, tags: dict[str, str] | None = None) -> Table:
    """Append one row; ``tags`` go into the commit."""
    add = write_file(table, folder, [{"id": table.version}])
    return table.commit("WRITE", [add], parameters={"mode": "Append"}, tags=tags)


def recording(table: Table, number: int) -> dict[str, str]:
    return snapshot_tag(table.metadata.id, number)


def ids(folder: Path) -> dict[int, int]:
    """The ids of the snapshots by the versions they state, as PyIceberg reads them."""
    found = {}
    for snapshot in opened(folder).metadata.snapshots:
        assert snapshot.summary is not None
        version = int(snapshot.summary.additional_properties["delta-version"])
        found[version] = snapshot.snapshot_id
    return found


def ids_from_scratch(table: Table, folder: Path) -> dict[int, int]:
    shutil.rmtree(folder / "_iceberg")
    sync_table(table.snapshot)
    return ids(folder)


@pytest.mark.parametrize("properties", [V2, V3], ids=["v2", "v3"])
def test_the_id_is_kept(tmp_path: Path, properties: dict[str, Any]) -> None:
    table = twin(tmp_path, "id INT", properties=properties)
    for number in (None, OWN, None, LEAST, MOST):
        tags = None if number is None else recording(table, number)
        table = commit(table, tmp_path, tags)
        agree(table, tmp_path)
    computed = {version: snapshot_id(table.metadata.id, version) for version in (1, 3)}
    expected = {1: computed[1], 2: OWN, 3: computed[3], 4: LEAST, 5: MOST}
    assert ids(tmp_path) == expected
    assert ids_from_scratch(table, tmp_path) == expected
    assert verify_twin(table, rows=True).findings == ()
    assert opened(tmp_path).metadata.current_snapshot_id == MOST


def test_ids_and_versions_lead_to_each_other(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT")
    table = commit(commit(table, tmp_path), tmp_path, recording(table, OWN))
    table = table.set_properties({"note": "no snapshot"})
    view = table.iceberg
    assert view.snapshot_id() is None
    assert view.version_of(OWN) is None
    view.sync()
    first = snapshot_id(table.metadata.id, 1)
    assert [view.snapshot_id(version) for version in (0, 1, 2, 3)] == [None, first, OWN, OWN]
    assert view.snapshot_id() == OWN
    assert [view.version_of(one) for one in (first, OWN, 7)] == [1, 2, None]
    assert table.at(2).iceberg.snapshot_id() == OWN
    assert view.snapshot_id(4) is None


def test_a_first_conversion_keeps_the_id_of_the_version_it_begins_with(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT")
    table = commit(commit(table, tmp_path), tmp_path, recording(table, OWN)).checkpoint()
    table = commit(table, tmp_path)
    for version in (0, 1):
        (tmp_path / "_delta_log" / f"{version:020}.json").unlink()
    assert agree(table, tmp_path).converted == 2
    assert ids(tmp_path) == {2: OWN, 3: snapshot_id(table.metadata.id, 3)}


def test_the_second_of_two_does_without(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT")
    for _ in range(2):
        table = commit(table, tmp_path, recording(table, OWN))
        agree(table, tmp_path)
    expected = {1: OWN, 2: snapshot_id(table.metadata.id, 2)}
    assert ids(tmp_path) == expected
    assert verify_twin(table).findings == ()
    assert ids_from_scratch(table, tmp_path) == expected


def test_a_commit_without_files_makes_no_snapshot(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT")
    table = commit(table, tmp_path)
    table = table.commit("SET TBLPROPERTIES", [], tags=recording(table, OWN))
    agree(table, tmp_path)
    assert ids(tmp_path) == {1: snapshot_id(table.metadata.id, 1)}
    # So the id is still free.
    table = commit(table, tmp_path, recording(table, OWN))
    agree(table, tmp_path)
    assert ids(tmp_path)[3] == OWN


def test_a_replaced_table_keeps_its_ids(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT")
    table = commit(table, tmp_path, recording(table, OWN))
    agree(table, tmp_path)
    table = replace_table(table, "id INT, more STRING")
    table = commit(table, tmp_path, recording(table, OWN + 1))
    agree(table, tmp_path)
    assert ids(tmp_path)[1] == OWN
    assert ids(tmp_path)[3] == OWN + 1


def test_an_imported_table_keeps_the_ids_of_its_snapshots(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2, 3]})
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("d")
    source = catalog.create_table("d.t", schema=data.schema)
    for _ in range(3):
        source.append(data)
    catalog.engine.dispose()
    wanted = [snapshot.snapshot_id for snapshot in source.snapshots()]
    table = import_iceberg(source.metadata_location).table
    folder = Path(source.location().removeprefix("file://"))
    assert list(ids(folder).values()) == wanted
    assert list(ids_from_scratch(table, folder).values()) == wanted
    by_id = opened(folder).scan(snapshot_id=wanted[1]).to_arrow()
    assert by_id.num_rows == 6


@pytest.mark.parametrize(
    "text",
    ["", "0", "-5", str(2**63), "07", " 7", "7.0", "+7", "seven", "٧", 7, None, ["7"]],
    ids=repr,
)
def test_what_is_no_id_is_passed_over(text: object) -> None:
    assert recorded_id("t", CommitInfo(tags={SNAPSHOT_TAG: text})) is None


def test_ids_that_are_computed_are_nobody_s_own() -> None:
    for version in (0, 7, 2**40 - 1):
        text = str(snapshot_id("t", version))
        assert recorded_id("t", CommitInfo(tags={SNAPSHOT_TAG: text})) is None
        assert recorded_id("other", CommitInfo(tags={SNAPSHOT_TAG: text})) == int(text)


def test_no_tag_no_id() -> None:
    assert recorded_id("t", None) is None
    assert recorded_id("t", CommitInfo()) is None
    assert recorded_id("t", CommitInfo(tags={"other": "7"})) is None


def test_an_id_that_was_passed_over_does_not_harm(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT")
    later = snapshot_id(table.metadata.id, 2)
    table = commit(table, tmp_path, {SNAPSHOT_TAG: str(later)})
    table = commit(table, tmp_path, {SNAPSHOT_TAG: "no number"})
    agree(table, tmp_path)
    assert ids(tmp_path) == {v: snapshot_id(table.metadata.id, v) for v in (1, 2)}
    assert verify_twin(table).findings == ()


@pytest.mark.parametrize("number", [0, -1, 2**63, snapshot_id("t", 3)])
def test_an_id_that_would_not_be_kept_is_refused_before_the_commit(number: int) -> None:
    with pytest.raises(UserError) as caught:
        snapshot_tag("t", number)
    assert caught.value.code is Code.INVALID_ARGUMENT
    assert caught.value.fields == {"snapshot_id": number}


def test_another_id_than_the_recorded_one_is_found(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT")
    table = commit(table, tmp_path, recording(table, OWN))
    agree(table, tmp_path)
    path = tmp_path / "_iceberg" / "metadata" / f"v{table.version}.metadata.json"
    path.write_text(path.read_text().replace(str(OWN), str(OWN + 1)))
    findings = verify_twin(table).findings
    assert [(f.what, f.version) for f in findings] == [(DifferenceKind.SNAPSHOT, 1)]
    assert str(OWN) in findings[0].delta
