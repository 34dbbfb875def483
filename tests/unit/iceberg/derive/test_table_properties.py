"""The properties of the Iceberg side, and what a table cannot make it say or delete."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tests.support.data_files import append
from tests.support.iceberg.both_sides import V2, V3, agree, opened, twin
from tests.support.log_tables import commit
from twinlake.errors import UserError
from twinlake.iceberg import sync_table
from twinlake.iceberg.format.table_metadata import MetadataLogEntry, TableMetadata
from twinlake.iceberg.sync.cleanup import LEFTOVERS, clean_up, with_log
from twinlake.iceberg.sync.metadata_files import MetadataFiles
from twinlake.protocol import ICEBERG_PREFIX
from twinlake.table import Table

WEEK = 7 * 24 * 60 * 60 * 1000
FEW = "write.metadata.previous-versions-max"
AGE = "history.expire.max-snapshot-age-ms"


def foreign(table: Table, **properties: str) -> Table:
    """Properties as another engine sets them, without a look."""
    wanted = {f"{ICEBERG_PREFIX}{key}": value for key, value in properties.items()}
    changed = {**table.metadata.configuration, **wanted}
    commit(table.snapshot.store, table.version + 1, replace(table.metadata, configuration=changed))
    return table.refresh()


def shown(folder: Path) -> dict[str, str]:
    return dict(opened(folder).metadata.properties)


def with_properties(metadata: TableMetadata, properties: dict[str, str]) -> TableMetadata:
    return msgspec.structs.replace(metadata, properties={**metadata.properties, **properties})


def test_what_a_face_says(tmp_path: Path) -> None:
    table = append(twin(tmp_path, "id INT"), tmp_path, [{"id": 1}])
    agree(table, tmp_path)

    found = shown(tmp_path)
    assert found["write.data.path"] == opened(tmp_path).location()
    assert found["write.metadata.path"] == f"{opened(tmp_path).location()}/_iceberg/metadata"
    assert found["write.format.default"] == "parquet"
    assert found["gc.enabled"] == "false"
    assert found["write.parquet.compression-codec"] == "snappy"
    # DuckDB refuses DELETE where the mode is said, and copy-on-write is the default anyway.
    assert not any(key.endswith(".mode") for key in found if key.startswith("write."))
    assert found["write.merge.isolation-level"] == "serializable"
    assert found[AGE] == str(WEEK)
    assert (found["delta-version"], found["base-delta-version"]) == ("1", "0")
    assert {key for key in found if key.startswith("commit.retry.")} == {
        "commit.retry.num-retries",
        "commit.retry.min-wait-ms",
        "commit.retry.max-wait-ms",
        "commit.retry.total-timeout-ms",
    }
    assert not any(key.startswith("delta.") for key in found)


def test_wishes_come_true(tmp_path: Path) -> None:
    wishes = {
        "commit.retry.num-retries": "3",
        "write.parquet.compression-codec": "zstd",
        "history.expire.max-snapshot-age-ms": "1000",
        "owner": "me",
    }
    properties = {f"{ICEBERG_PREFIX}{key}": value for key, value in wishes.items()}
    table = twin(tmp_path, "id INT", properties={**V2, **properties})
    sync_table(table.snapshot)
    assert shown(tmp_path).items() >= wishes.items()

    table = table.set_properties({f"{ICEBERG_PREFIX}owner": "you"})
    table = table.unset_properties([f"{ICEBERG_PREFIX}commit.retry.num-retries"])
    sync_table(table.snapshot)
    assert shown(tmp_path)["owner"] == "you"
    assert shown(tmp_path)["commit.retry.num-retries"] == "10"


@pytest.mark.parametrize(
    ("codec", "expected"), [("zstd", "zstd"), ("NONE", "uncompressed"), ("lzo", "snappy")]
)
def test_the_codec_is_that_of_the_table(tmp_path: Path, codec: str, expected: str) -> None:
    table = twin(tmp_path, "id INT", properties={**V2, "delta.parquet.compression.codec": codec})
    sync_table(table.snapshot)
    assert shown(tmp_path)["write.parquet.compression-codec"] == expected


def test_what_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    too_long = {f"{ICEBERG_PREFIX}{AGE}": str(WEEK + 1)}
    with pytest.raises(UserError, match="at most"):
        twin(tmp_path / "new", "id INT", properties={**V2, **too_long})
    table = twin(tmp_path, "id INT")
    with pytest.raises(UserError, match="at most"):
        table.set_properties(too_long)
    with pytest.raises(UserError, match="copy-on-write"):
        table.set_properties({f"{ICEBERG_PREFIX}write.update.mode": "merge-on-read"})
    with pytest.raises(UserError) as caught:
        table.set_properties(
            {f"{ICEBERG_PREFIX}{key}": "x" for key in (LEFTOVERS, "write.metadata.path", FEW)}
        )
    assert len(caught.value.fields["properties"]) == 3
    assert table.refresh().version == 0


def test_what_another_engine_set_is_left_out(tmp_path: Path) -> None:
    table = append(twin(tmp_path, "id INT"), tmp_path, [{"id": 1}])
    sync_table(table.snapshot)
    before = shown(tmp_path)
    rubbish = {
        LEFTOVERS: "x",
        "delta-version": "9",
        "write.metadata.path": "file:///elsewhere",
        "write.data.path": "file:///elsewhere",
        "schema.name-mapping.default": "[]",
        "format-version": "1",
        "write.delete.mode": "merge-on-read",
        FEW: "-1",
        AGE: str(WEEK * 9),
        "read.split.target-size": "big",
    }
    table = foreign(table, **rubbish)
    agree(table, tmp_path)

    varying = {"delta-version", "delta-timestamp", "delta-commit", "base-delta-version"}
    after = shown(tmp_path)
    assert {k: v for k, v in after.items() if k not in varying} == {
        k: v for k, v in before.items() if k not in varying
    }
    assert after["delta-version"] == str(table.version)


def test_format_3_may_merge_on_read(tmp_path: Path) -> None:
    wish = {f"{ICEBERG_PREFIX}write.delete.mode": "merge-on-read"}
    sync_table(twin(tmp_path, "id INT", properties={**V3, **wish}).snapshot)
    assert shown(tmp_path)["write.delete.mode"] == "merge-on-read"


def test_no_property_deletes_data(tmp_path: Path) -> None:
    table = append(twin(tmp_path, "id INT"), tmp_path, [{"id": 1}])
    (live,) = table.snapshot.adds()
    sync_table(table.snapshot)
    location = opened(tmp_path).location()
    table = foreign(table, **{FEW: "1", LEFTOVERS: f"{location}/{live.path}"})
    sync_table(table.snapshot)
    for at in range(4):
        table = append(table, tmp_path, [{"id": at}])
        sync_table(table.snapshot)
        if at == 1:
            table.vacuum(retention_hours=0, enforce_retention=False)
            table = table.refresh()

    assert (tmp_path / live.path).exists()
    agree(table, tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        "{location}/part.parquet",
        "{location}/_delta_log/00000000000000000000.json",
        "{location}/_iceberg/metadata/../../part.parquet",
        "{location}/_iceberg/metadata/../../part.avro",
        "{location}/_iceberg/metadata/..%2F..%2Fpart.avro",
        "{location}/_iceberg/metadata/sub/part.avro",
        "{location}/_iceberg/metadata/version-hint.text",
        "{location}/_iceberg/part.avro",
        "_iceberg/metadata/../../part.avro",
        "part.avro",
        "/etc/part.avro",
    ],
)
def test_only_files_of_the_face_are_deleted(tmp_path: Path, name: str) -> None:
    """Metadata that lies, as that of an earlier release or of somebody else may."""
    table = append(twin(tmp_path, "id INT"), tmp_path, [{"id": 1}])
    sync_table(table.snapshot)
    files = MetadataFiles(table.snapshot.store)
    deleted: list[str] = []

    class Watching(MetadataFiles):
        def delete(self, locations: object) -> None:
            deleted.extend(locations)  # type: ignore[arg-type]

        def read_metadata(self, location: str) -> TableMetadata | None:
            found = files.load(table.version)
            assert found is not None
            said = name.format(location=self.location)
            own = f"{self.folder}/m-1-abc.avro"
            return with_properties(found.metadata, {LEFTOVERS: f"{said}\n{own}"})

    state = files.load(table.version)
    assert state is not None
    expired = state.metadata.without_first(1)
    entry = MetadataLogEntry(timestamp_ms=0, metadata_file=name.format(location=files.location))
    logged = msgspec.structs.replace(expired, metadata_log=(entry,))
    clean_up(logged, [entry], Watching(table.snapshot.store))

    assert deleted == ["_iceberg/metadata/m-1-abc.avro"]


@pytest.mark.parametrize("wish", ["", "many", "-5", "0", "²", "1.5"])
def test_a_log_of_rubbish_length_has_the_usual_one(tmp_path: Path, wish: str) -> None:
    table = twin(tmp_path, "id INT")
    sync_table(table.snapshot)
    state = MetadataFiles(table.snapshot.store).load(0)
    assert state is not None
    entries = tuple(MetadataLogEntry(timestamp_ms=at, metadata_file=f"{at}") for at in range(120))
    before = with_properties(state.metadata, {FEW: wish})
    long = msgspec.structs.replace(before, metadata_log=entries)
    logged, fallen = with_log(before, long, "last")

    assert (len(logged.metadata_log), len(fallen)) == (100, 21)
