"""Partition timestamps without a zone: one setting for all readers, and a warning without it."""

from __future__ import annotations

import datetime as dt
import logging
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.support.data_files import write_file
from tests.support.iceberg.both_sides import V2, as_text, iceberg_rows, twin
from twinlake.commit.read_set import partition_matches
from twinlake.errors import Code, UserError
from twinlake.iceberg import sync_table
from twinlake.iceberg.derive.assumed_zone import AssumedZones
from twinlake.iceberg.derive.table_layout import layout_of
from twinlake.schema import physical_name
from twinlake.schema.predicates import parse_predicate
from twinlake.table.twin.verify_twin import verify_twin

if TYPE_CHECKING:
    from pathlib import Path

    from twinlake.actions import AddFile
    from twinlake.table import Table

ZONE = "twinlake.partitionTimeZone"
# Noon in New York.
MOMENT = dt.datetime(2024, 1, 31, 17, tzinfo=dt.UTC)
TEXT = "2024-01-31 12:00:00"


def spelt(table: Table, folder: Path, *texts: str | None, kind: str = "p") -> list[AddFile]:
    """Files whose partition is spelt as told; to their writer each is the moment."""
    files = []
    for number, text in enumerate(texts):
        value = None if text is None else MOMENT if kind == "p" else MOMENT.replace(tzinfo=None)
        file = write_file(table, folder, [{"id": number, kind: value}])
        column = table.schema.get(kind)
        assert column is not None
        values = {**file.partition_values, physical_name(column): text}
        files.append(msgspec.structs.replace(file, partition_values=values))
    return files


def test_every_reader_takes_the_zone_that_the_table_names(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT, p TIMESTAMP", "p", properties={**V2, ZONE: "America/New_York"})
    table = table.commit("WRITE", spelt(table, tmp_path, TEXT, "2024-01-31T17:00:00Z", None))
    sync_table(table.snapshot)

    expected = [MOMENT, MOMENT, None]
    snapshot, where = table.snapshot, "p = TIMESTAMP'2024-01-31 17:00:00Z'"
    values = snapshot.files()["partition_values"].to_pylist()
    assert sorted((v["p"] for v in values), key=str) == expected
    assert len(snapshot.files(where)) == 2
    adds = list(snapshot.adds())
    matches = partition_matches(parse_predicate(where, table.schema), adds, table.metadata)
    assert sorted(matches) == [False, True, True]
    ours = as_text(table.to_arrow().to_pylist())
    assert ours == as_text({"id": at, "p": value} for at, value in enumerate(expected))
    assert as_text(iceberg_rows(tmp_path)) == ours
    assert as_text(iceberg_rows(tmp_path, where="p = '2024-01-31T17:00:00+00:00'")) == ours[:2]
    assert verify_twin(table, rows=True).findings == ()


def test_a_zone_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Europe/Berlin") as caught:
        twin(tmp_path, "id INT, p TIMESTAMP", "p", properties={**V2, ZONE: "Atlantis"})
    assert caught.value.code is Code.PROPERTY_INVALID
    assert caught.value.fields["properties"] == [ZONE]


def looked_at(table: Table, files: list[AddFile], caplog: Any) -> list[logging.LogRecord]:
    """What one look at files, twice over, says."""
    layout, zones = layout_of(table.metadata, "file:///t"), AssumedZones()
    with caplog.at_level(logging.WARNING, "twinlake.iceberg"):
        assert list(zones.watched(files, layout)) == files
        zones.look(files, layout)
        assert list(zones.watched(files, layout)) == files
    return list(caplog.records)


def test_a_guess_is_told_once_with_its_parts(tmp_path: Path, caplog: Any) -> None:
    table = twin(tmp_path, "id INT, p TIMESTAMP", "p")
    files = spelt(table, tmp_path, None, "2024-01-31T17:00:00Z", TEXT, "2024-02-01 00:00:00")

    (record,) = looked_at(table, files, caplog)

    assert record.levelno == logging.WARNING
    found = {key: value for key, value in vars(record).items() if key.startswith("twinlake_")}
    assert found == {
        "twinlake_table": "file:///t",
        "twinlake_column": "p",
        "twinlake_value": TEXT,
        "twinlake_path": files[2].path,
        "twinlake_zone": "UTC",
        "twinlake_property": ZONE,
    }
    assert TEXT in record.getMessage()


def test_every_conversion_tells_of_its_guesses_once(tmp_path: Path, caplog: Any) -> None:
    table = twin(tmp_path, "id INT, p TIMESTAMP", "p")
    for _ in range(2):
        table = table.commit("WRITE", spelt(table, tmp_path, TEXT, TEXT))
    told = []
    for _ in range(2):
        with caplog.at_level(logging.WARNING, "twinlake.iceberg"):
            sync_table(table.snapshot)
        told.append([vars(record)["twinlake_value"] for record in caplog.records])
        caplog.clear()
        later = TEXT.replace("12:", "13:")
        table = table.commit("WRITE", spelt(table, tmp_path, later, later))

    assert told == [[TEXT], [later]]


@pytest.mark.parametrize(
    ("columns", "properties", "texts"),
    [
        ("p TIMESTAMP", {ZONE: "+02:00"}, [TEXT]),
        ("p TIMESTAMP", {}, ["2024-01-31T17:00:00.000000Z", "2024-01-31 19:00:00+02:00", None]),
        ("ntz TIMESTAMP_NTZ", {}, [TEXT]),
    ],
    ids=["named", "zoned", "no instant"],
)
def test_nothing_is_told_where_nothing_is_guessed(
    tmp_path: Path, caplog: Any, columns: str, properties: dict[str, str], texts: list[str | None]
) -> None:
    name = columns.split()[0]
    table = twin(tmp_path, f"id INT, {columns}", name, properties={**V2, **properties})

    assert looked_at(table, spelt(table, tmp_path, *texts, kind=name), caplog) == []
