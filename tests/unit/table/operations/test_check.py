"""``Table.check``: any table, every rule, every file, and nothing it cannot know."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.table.making import data_file
from twinlake import Table
from twinlake.actions import DeletionVectorDescriptor
from twinlake.compat import COMPATS
from twinlake.errors import Code, UserError
from twinlake.runtime import Runtime
from twinlake.schema import physical_schema, to_arrow
from twinlake.table.operations import check as checking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from twinlake.compat import Report

WRITER = "icebergWriterCompatV1"
SCHEMA = "id INT, at TIMESTAMP, tags ARRAY<STRING>, props MAP<STRING, STRUCT<n: INT>>, day DATE"
VECTOR = DeletionVectorDescriptor("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 40, 6)


def arrow_schema(table: Table) -> pa.Schema:
    """What a file of the table has to look like."""
    metadata = table.metadata
    return to_arrow(physical_schema(metadata.schema, metadata.column_mapping_mode), field_ids=True)


def write(path: Path, schema: pa.Schema, rows: int = 3, **options: Any) -> int:
    """A data file; its size."""
    pq.write_table(schema.empty_table().take(pa.nulls(rows, pa.int64())), path, **options)
    return path.stat().st_size


def somebody_adds(folder: Path, *adds: dict[str, Any]) -> None:
    """A commit by an engine that does not know the rules."""
    log = folder / "_delta_log"
    version = len(list(log.glob("*.json")))
    lines = [{"commitInfo": {"timestamp": 1_700_000_000_000, "operation": "WRITE"}}]
    lines += [{"add": add} for add in adds]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (log / f"{version:020d}.json").write_text(text)


def add(name: str, size: int, rows: int | None = 3, **more: Any) -> dict[str, Any]:
    stats = {} if rows is None else {"stats": json.dumps({"numRecords": rows})}
    return {
        "path": name,
        "partitionValues": {},
        "size": size,
        "modificationTime": 1_700_000_000_000,
        "dataChange": True,
        **stats,
        **more,
    }


def made(folder: Path, **rest: Any) -> Table:
    properties = {"delta.enableIcebergWriterCompatV1": "true"}
    return Table.create(folder, SCHEMA, properties=properties, durable=False, **rest)


def broken(report: Report) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for violation in report.violations:
        found.setdefault(violation.rule, []).append(violation.path)
    return found


def test_a_table_that_keeps_its_promise(tmp_path: Path) -> None:
    table = made(tmp_path)
    sizes = {
        f"f{n}.parquet": write(tmp_path / f"f{n}.parquet", arrow_schema(table)) for n in (1, 2)
    }
    somebody_adds(tmp_path, *(add(name, size) for name, size in sizes.items()))
    table = table.refresh()
    short, full = table.check(WRITER), table.check(WRITER, files=True)
    assert (short.ok, short.files, short.enabled) == (True, 0, True)
    assert (full.ok, full.files) == (True, 2), str(full)
    assert set(short.rules) < set(full.rules)
    assert {"IWC1-05", "ICV2-10"} <= set(short.rules)
    assert {"ICV2-12", "ICV2-14"} <= set(full.rules) - set(short.rules)
    # Rules about changes have nothing to look at.
    assert "IWC1-09" not in full.rules
    assert full.table == table.snapshot.label


def test_a_plain_table_is_judged_as_if(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id INT, s STRUCT<small: SMALLINT>, v VOID", durable=False)
    report = table.check(WRITER)
    assert (report.ok, report.enabled) == (False, False)
    found = broken(report)
    assert found["IWC1-07"] == ["s.small"]
    assert "v" in found["IWC1-08"]
    assert {"IWC1-02", "IWC1-03", "IWC1-04", "IWC1-05", "IWC1-06"} <= set(found)
    assert table.version == table.refresh().version == 0


@pytest.mark.parametrize("name", COMPATS)
def test_every_promise_can_be_asked_for(tmp_path: Path, name: str) -> None:
    table = Table.create(tmp_path, "id INT", durable=False)
    by_key = table.check(COMPATS[name].key)
    assert by_key == table.check(name.upper())
    assert by_key.compat == name
    assert not by_key.ok


def test_tables_of_other_engines(tmp_path: Path) -> None:
    from deltalake import write_deltalake

    data = pa.table({"id": [1, 2], "at": pa.array([0, 1], pa.timestamp("us", "UTC"))})
    write_deltalake(str(tmp_path), data)
    report = Table.open(tmp_path).check("icebergCompatV2", files=True)
    assert report.files == 1
    found = broken(report)
    assert {"ICV2-01", "ICV2-02", "ICV2-03", "ICV2-14"} <= set(found)
    assert "ICV2-12" not in found
    assert "ICV2-10" not in found


def test_files_that_break_rules_are_named(tmp_path: Path) -> None:
    table = made(tmp_path)
    good = arrow_schema(table)
    bare = pa.schema([pa.field(f.name, f.type) for f in good.remove_metadata()])
    id_field, at_field = good.field(0), good.field(1)
    sizes = {
        "good": write(tmp_path / "good", good),
        "no-ids": write(tmp_path / "no-ids", pa.schema([bare.field(0)])),
        "int96": write(
            tmp_path / "int96",
            pa.schema([id_field, at_field]),
            use_deprecated_int96_timestamps=True,
        ),
        "miscounted": write(tmp_path / "miscounted", good, rows=5),
        "gone": 77,
    }
    (tmp_path / "torn").write_bytes(b"PAR1 and then nothing")
    sizes["torn"] = (tmp_path / "torn").stat().st_size
    somebody_adds(tmp_path, *(add(name, size) for name, size in sizes.items()))
    report = table.refresh().check(WRITER, files=True)
    assert report.files == 6
    named = {
        name: {v.rule for v in report.violations if name in f"{v.path} {v.message}"}
        for name in sizes
    }
    assert named["good"] == set()
    assert named["no-ids"] == {"ICV2-14"}
    assert named["int96"] == {"ICV2-12"}
    assert named["miscounted"] == {"ICV2-24"}
    assert named["gone"] == named["torn"] == {"ICV2-25"}
    messages = " ".join(violation.message for violation in report.violations)
    assert "the file is not there" in messages
    assert "it has no Parquet footer" in messages


def test_partition_columns_have_to_be_in_the_files(tmp_path: Path) -> None:
    table = made(tmp_path, partition_by=["day"])
    whole = arrow_schema(table)
    day = next(f for f in table.schema if f.name == "day").metadata[
        "delta.columnMapping.physicalName"
    ]
    without = whole.remove(whole.get_field_index(str(day)))
    # The rows are nulls throughout.
    values: dict[str, Any] = {"partitionValues": {str(day): None}}
    somebody_adds(
        tmp_path,
        add("with", write(tmp_path / "with", whole), **values),
        add("without", write(tmp_path / "without", without), **values),
    )
    report = table.refresh().check(WRITER, files=True)
    assert list(broken(report)) == ["ICV2-11"]
    (violation,) = report.violations
    assert "without" in f"{violation.path} {violation.message}"


def test_what_the_log_says_of_files(tmp_path: Path) -> None:
    table = Table.create(
        tmp_path, "id INT", properties={"delta.enableDeletionVectors": "true"}, durable=False
    )
    table = table.commit("WRITE", [data_file(f"f{n}", vector=VECTOR) for n in range(3)])
    somebody_adds(tmp_path, add("uncounted", 10, rows=None), add("counted", 10))
    report = table.refresh().check("icebergCompatV2")
    found = broken(report)
    assert sorted(found["ICV2-06"]) == ["f0", "f1", "f2"]
    assert found["ICV2-10"] == ["uncounted"]
    assert report.files == 0


def test_other_versions_can_be_checked(tmp_path: Path) -> None:
    table = Table.create(
        tmp_path, "id INT, c INT", properties={"delta.columnMapping.mode": "name"}, durable=False
    )
    table = table.add_column("tiny TINYINT")
    assert broken(table.check(WRITER))["IWC1-07"] == ["tiny"]
    assert "IWC1-07" not in broken(Table.open(tmp_path, version=0).check(WRITER))


class Elsewhere:
    """An executor that counts what it is given, and sends it as bytes."""

    def __init__(self) -> None:
        self.items = 0

    def map(self, fn: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            self.items += 1
            yield pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(fn))(item)))


def test_footers_are_read_by_the_executor_in_batches(tmp_path: Path) -> None:
    table = made(tmp_path)
    size = write(tmp_path / "f", arrow_schema(table))
    for n in range(600):
        (tmp_path / f"f{n}").hardlink_to(tmp_path / "f")
    somebody_adds(tmp_path, *(add(f"f{n}", size) for n in range(600)))
    executor = Elsewhere()
    steps: list[tuple[str, int, int]] = []
    runtime = Runtime(executor=executor, progress=lambda *step: steps.append(step))
    report = Table.open(tmp_path, runtime=runtime).check(WRITER, files=True)
    assert (report.ok, report.files) == (True, 600)
    assert executor.items == 3
    assert steps[-1] == ("check", 600, 600)


def test_violations_without_number_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "_KEPT", 5)
    monkeypatch.setattr(checking, "_BATCH", 2)
    table = made(tmp_path)
    somebody_adds(tmp_path, *(add(f"gone{n}", 10, rows=None) for n in range(8)))
    report = table.refresh().check(WRITER, files=True)
    found = broken(report)
    assert found["ICV2-10"][0] == "gone0"
    assert all(len(paths) <= 5 for paths in found.values())
    assert report.omitted["ICV2-10"] >= 3
    assert report.files == 8
    assert "more" in str(report)


def test_the_profile_is_the_one_given_else_the_tables_own(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id INT", durable=False)
    assert str(table.check(WRITER).profile) == "spec"
    table = table.set_properties({"twinlake.compat.profile": "kernel"})
    assert str(table.check(WRITER).profile) == "kernel"
    assert str(table.check(WRITER, profile="Spark").profile) == "spark"
    with pytest.raises(UserError) as caught:
        table.check(WRITER, profile="lax")
    assert caught.value.code == Code.INVALID_ARGUMENT
    assert caught.value.fields["known"] == ["spec", "spark", "kernel"]


def test_an_unknown_promise_is_refused(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id INT", durable=False)
    with pytest.raises(UserError) as caught:
        table.check("icebergCompatV9")
    assert caught.value.code == Code.FEATURE_UNKNOWN
