"""Iceberg metadata with the commit: the hook, its failures, the lag, and VACUUM."""

from __future__ import annotations

import logging
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.data_files import append, write_file
from tests.support.iceberg.both_sides import V2, iceberg_rows, opened, remove_files, twin
from twinlake import Table
from twinlake.errors import Code, TwinlakeError, UserError
from twinlake.iceberg import Lag

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

WITH_COMMIT = {**V2, "twinlake.iceberg.sync": "commit"}


def row(number: int) -> dict[str, Any]:
    return {"id": number}


def ids(folder: Path) -> list[int]:
    return sorted(row["id"] for row in iceberg_rows(folder))


def test_every_commit_is_converted(tmp_path: Path) -> None:
    table = twin(tmp_path, "id LONG", properties=WITH_COMMIT)
    for number in range(3):
        table = append(table, tmp_path, [row(number)])
        assert table.warnings == ()
        assert ids(tmp_path) == list(range(number + 1))
        assert table.iceberg.version == table.version
        assert table.iceberg.lag == Lag(delta_version=table.version, iceberg_version=table.version)
    table = table.add_column("name STRING")
    assert table.iceberg.version == table.version
    assert [field.name for field in opened(tmp_path).schema().fields] == ["id", "name"]
    metadata = table.iceberg.metadata_location
    assert metadata is not None
    assert metadata.endswith(f"/_iceberg/metadata/v{table.version}.metadata.json")


@pytest.mark.parametrize(
    "properties",
    [
        pytest.param({}, id="nothing"),
        pytest.param(V2, id="a compat feature without sync"),
        pytest.param({**V2, "twinlake.iceberg.sync": "none"}, id="sync switched off"),
    ],
)
def test_a_table_that_did_not_ask_pays_nothing(
    tmp_path: Path, properties: dict[str, object]
) -> None:
    table = append(twin(tmp_path, "id LONG", properties=properties), tmp_path, [row(1)])
    assert table.warnings == ()
    assert not (tmp_path / "_iceberg").exists()
    lag = table.iceberg.lag
    assert (lag.iceberg_version, lag.versions) == (None, 2)
    assert ("compat feature" in lag.why) is (properties.keys().isdisjoint(V2))


def test_the_property_is_known(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"twinlake\.iceberg\.sync") as caught:
        twin(tmp_path, "id LONG", properties={**V2, "twinlake.iceberg.sync": "always"})
    assert "commit" in caught.value.why
    table = twin(tmp_path, "id LONG", properties={**V2, "Twinlake.Iceberg.SYNC": "commit"})
    assert table.properties["twinlake.iceberg.sync"] == "commit"
    assert table.iceberg.version == 0


def test_a_failed_conversion_never_fails_the_commit_and_is_repaired(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = append(twin(tmp_path, "id LONG", properties=WITH_COMMIT), tmp_path, [row(1)])
    in_the_way = tmp_path / "_iceberg/metadata/v2.metadata.json"
    (in_the_way / "x").mkdir(parents=True)
    with caplog.at_level(logging.INFO, logger="twinlake.iceberg"):
        table = append(table, tmp_path, [row(2)])
    (warning,) = table.warnings
    assert (warning.hook, warning.version) == ("iceberg", 2)
    lag = table.iceberg.lag
    assert (lag.delta_version, lag.iceberg_version, lag.versions) == (2, 1, 1)
    assert lag.why == warning.error
    record = next(r for r in caplog.records if r.levelno == logging.WARNING).__dict__
    assert record["twinlake_table"] == table.location
    assert (record["twinlake_delta_version"], record["twinlake_iceberg_version"]) == (2, 1)
    assert (record["twinlake_versions"], record["twinlake_why"]) == (1, lag.why)
    assert ids(tmp_path) == [1]

    shutil.rmtree(in_the_way)
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="twinlake.iceberg"):
        table = append(table, tmp_path, [row(3)])
    assert table.warnings == ()
    assert table.iceberg.lag == Lag(delta_version=3, iceberg_version=3)
    (told,) = (r.__dict__ for r in caplog.records if r.name == "twinlake.iceberg")
    assert (told["levelno"], told["twinlake_converted"]) == (logging.INFO, 2)
    assert (told["twinlake_versions"], told["twinlake_why"]) == (0, "")
    assert ids(tmp_path) == [1, 2, 3]


@pytest.mark.parametrize("how", ["create", "set", "raw", "last feature goes"])
def test_sync_without_a_compat_feature_is_refused(tmp_path: Path, how: str) -> None:
    sync = {"twinlake.iceberg.sync": "commit"}
    started = WITH_COMMIT if how == "last feature goes" else {}
    fix = "unset" if how == "last feature goes" else "upgrade"
    if how != "create":
        table = Table.create(tmp_path / "t", "id LONG", properties=started)
    with pytest.raises(TwinlakeError) as caught:
        if how == "create":
            Table.create(tmp_path / "t", "id LONG", properties=sync)
        elif how == "set":
            table.set_properties(sync)
        elif how == "raw":
            table.commit("SET", [table.metadata.with_configuration(sync)])
        else:
            table.set_properties({"delta.enableIcebergCompatV2": "false"})
    assert caught.value.code == Code.PROPERTY_INVALID
    assert fix in caught.value.fix
    assert Table.exists(tmp_path / "t") is (how != "create")


def test_sync_may_be_asked_for_together_with_the_feature(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "id LONG", properties=WITH_COMMIT)
    assert table.iceberg.lag.versions == 0
    # Both can go at once.
    gone = {"delta.enableIcebergCompatV2": "false", "twinlake.iceberg.sync": "none"}
    assert table.set_properties(gone).version == table.version + 1


def test_a_store_that_takes_nothing_is_a_warning_too(tmp_path: Path) -> None:
    table = twin(tmp_path, "id LONG")
    (tmp_path / "_iceberg").write_text("not a folder")
    table = table.set_properties({"twinlake.iceberg.sync": "commit"})
    assert [warning.hook for warning in table.warnings] == ["iceberg"]
    (tmp_path / "_iceberg").unlink()
    assert append(table, tmp_path, [row(1)]).warnings == ()
    assert ids(tmp_path) == [1]


def test_sync_on_demand_says_what_it_did(tmp_path: Path) -> None:
    table = append(twin(tmp_path, "id LONG"), tmp_path, [row(1)])
    done = table.iceberg.sync()
    assert (done.version, done.rebuilt) == (1, "there was none")
    assert table.iceberg.sync().converted == 0
    table = append(table, tmp_path, [row(2)])
    assert table.iceberg.lag.why == "no sync has run for this version"
    assert (table.iceberg.sync().converted, table.iceberg.lag.versions) == (1, 0)


def named_files(folder: Path) -> set[str]:
    """Every data file that a retained snapshot of the Iceberg side names."""
    table = opened(folder)
    return {
        task.file.file_path.removeprefix("file://")
        for snapshot in table.metadata.snapshots
        for task in table.scan(snapshot_id=snapshot.snapshot_id).plan_files()
    }


def rewritten(folder: Path, properties: Mapping[str, object]) -> Table:
    """A table whose first file was replaced by another, and whose Iceberg side shows both."""
    table = append(twin(folder, "id LONG", properties=properties), folder, [row(1)])
    table.iceberg.sync()
    old = list(table.snapshot.adds())
    table = append(remove_files(table, old), folder, [row(2)])
    table.iceberg.sync()
    assert len(opened(folder).metadata.snapshots) > 1
    return table


@pytest.mark.parametrize("properties", [V2, WITH_COMMIT], ids=["on demand", "with the commit"])
@pytest.mark.parametrize("mode", ["full", "lite"])
def test_vacuum_expires_what_it_deletes(
    tmp_path: Path, properties: dict[str, object], mode: Any
) -> None:
    table = rewritten(tmp_path, properties)
    before = set(tmp_path.glob("*.parquet"))
    result = table.vacuum(0, enforce_retention=False, mode=mode)
    assert len(result.files) == 1
    assert len(set(tmp_path.glob("*.parquet"))) == len(before) - 1
    # Between the deletion and the next sync as well as after it.
    for _ in range(2):
        assert named_files(tmp_path) == {str(p) for p in tmp_path.glob("*.parquet")}
        assert ids(tmp_path) == [2]
        table.refresh().iceberg.sync()


def test_vacuum_of_another_engine_is_followed_by_the_next_sync(tmp_path: Path) -> None:
    table = rewritten(tmp_path, V2)
    hidden = tmp_path / "_iceberg"
    hidden.rename(tmp_path / "_elsewhere")  # what another engine does not know of
    table.vacuum(0, enforce_retention=False)
    (tmp_path / "_elsewhere").rename(hidden)
    gone = named_files(tmp_path) - {str(p) for p in tmp_path.glob("*.parquet")}
    assert len(gone) == 1
    table.refresh().iceberg.sync()
    assert named_files(tmp_path) == {str(p) for p in tmp_path.glob("*.parquet")}


def test_vacuum_deletes_nothing_while_snapshots_cannot_be_expired(tmp_path: Path) -> None:
    table = rewritten(tmp_path, V2)
    before = set(tmp_path.glob("*.parquet"))
    in_the_way = tmp_path / f"_iceberg/metadata/v{table.version + 1}.metadata.json"
    (in_the_way / "x").mkdir(parents=True)
    with pytest.raises(TwinlakeError):
        table.vacuum(0, enforce_retention=False)
    assert set(tmp_path.glob("*.parquet")) == before
    assert table.refresh().history(1)[0].operation == "VACUUM END"
    shutil.rmtree(in_the_way)
    assert len(table.vacuum(0, enforce_retention=False).files) == 1
    assert ids(tmp_path) == [2]


def test_vacuum_goes_on_where_the_promise_was_taken_back(tmp_path: Path) -> None:
    table = rewritten(tmp_path, V2).set_properties({"delta.enableIcebergCompatV2": "false"})
    result = table.vacuum(0, enforce_retention=False)
    assert len(result.files) == 1
    assert [warning.hook for warning in result.warnings] == ["iceberg"]


def test_a_vacuum_of_a_table_without_metadata_makes_none(tmp_path: Path) -> None:
    table = twin(tmp_path, "id LONG")
    write_file(table, tmp_path, [row(1)])
    table.vacuum()
    assert not (tmp_path / "_iceberg").exists()
