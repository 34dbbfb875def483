"""Tables that promise something to Iceberg: made, altered, broken and refused through ``Table``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.data_files import append, write_file
from twinlake import Table
from twinlake.actions import AddFile, DeletionVectorDescriptor
from twinlake.commit import CommitOptions, Operation, Transaction
from twinlake.compat import COMPATS
from twinlake.errors import CompatViolation, ConflictError, TwinlakeError, UserError
from twinlake.runtime import Runtime
from twinlake.schema import (
    Struct,
    StructField,
    field_id,
    nested_ids,
    parse_type,
    physical_name,
    walk_fields,
)
from twinlake.table.operations.create import new_metadata

if TYPE_CHECKING:
    from pathlib import Path

    from twinlake.protocol import Metadata

V1, V2, V3, W1, W3 = (row.key for row in COMPATS.values())
MODE = "delta.columnMapping.mode"
SCHEMA = (
    "id INT, name STRING NOT NULL, at TIMESTAMP, "
    "m MAP<STRUCT<k: INT, j: STRING>, STRUCT<v: INT, w: ARRAY<STRING>>>"
)
FLAT = "id INT, name STRING, at TIMESTAMP"
ROWS = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]


def create(
    folder: Path, schema: str = FLAT, properties: Mapping[str, object] | None = None
) -> Table:
    return Table.create(folder, schema, properties=properties, durable=False)


def promising(
    folder: Path,
    schema: str = SCHEMA,
    key: str = W1,
    more: Mapping[str, object] | None = None,
) -> Table:
    return create(folder, schema, {key: True, **(more or {})})


def rules_in(error: CompatViolation) -> set[str]:
    assert error.report["ok"] is False
    return {violation["rule"] for violation in error.report["violations"]}


def refused(table: Table, act: Callable[[], object]) -> CompatViolation:
    """The refusal; nothing was committed."""
    with pytest.raises(CompatViolation) as caught:
        act()
    assert table.refresh().version == table.version
    assert table.refresh().metadata == table.metadata
    return caught.value


# New tables


@pytest.mark.parametrize(("key", "base"), [(W1, V2), (W3, V3)])
def test_flag_alone_makes_a_table(tmp_path: Path, key: str, base: str) -> None:
    table = promising(tmp_path, key=key)
    assert table.properties[MODE] == "id"
    assert table.properties[base] == "true"
    fields = [field for _, field in walk_fields(table.schema)]
    assert all(physical_name(field) == f"col-{field_id(field)}" for field in fields)
    assert nested_ids(table.schema.fields[3]) == {"col-4.key": 9, "col-4.value": 10}
    assert table.properties["delta.columnMapping.maxColumnId"] == "11"
    assert {"columnMapping", "icebergCompatV2" if key == W1 else "icebergCompatV3"} <= (
        table.protocol.feature_names
    )
    assert table.check(COMPATS[key[len("delta.enableI") - 1 :].replace("I", "i", 1)].feature).ok


@pytest.mark.parametrize("key", [V1, V2, V3])
def test_plain_promise_takes_the_mode_by_name(tmp_path: Path, key: str) -> None:
    table = promising(tmp_path, FLAT, key)
    assert table.properties[MODE] == "name"
    assert physical_name(table.schema.fields[0]) != "col-1"
    assert table.properties.get("delta.enableRowTracking") == ("true" if key == V3 else None)


def test_contradictions_of_a_new_table_are_all_reported(tmp_path: Path) -> None:
    with pytest.raises(CompatViolation) as caught:
        create(
            tmp_path,
            "b TINYINT, s STRUCT<x: SMALLINT>, v VARIANT",
            {W1: True, MODE: "name", V2: False, "delta.enableChangeDataFeed": True},
        )
    expected = {"IWC1-04", "IWC1-05", "IWC1-07", "IWC1-08", "IWC1-12", "IWC1-17"}
    assert expected <= rules_in(caught.value)
    assert "b" in caught.value.why
    assert not Table.exists(tmp_path)


def test_iceberg_format_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CompatViolation) as caught:
        create(tmp_path, properties={"delta.universalFormat.enabledFormats": "iceberg"})
    assert str(caught.value.delta_class).endswith("ICEBERG_COMPAT_REQUIRED")
    assert not Table.exists(tmp_path)


# Columns that come later


def test_new_columns_have_names_from_their_ids(tmp_path: Path) -> None:
    table = promising(tmp_path).add_column("tags ARRAY<STRING>").add_column("m.value.z LONG")
    tags = table.schema.get("tags")
    assert tags is not None
    assert (field_id(tags), physical_name(tags)) == (12, "col-12")
    assert nested_ids(tags) == {"col-12.element": 13}
    assert table.properties["delta.columnMapping.maxColumnId"] == "14"
    table = table.rename_column("tags", "labels").drop_column("name").add_column("name STRING")
    again = table.schema.get("name")
    assert again is not None
    assert physical_name(again) == "col-15"
    assert table.check("icebergWriterCompatV1").ok


def replaced(old: Table, schema: str, **properties: object) -> Metadata:
    return new_metadata(
        schema,
        partition_by=(),
        cluster_by=(),
        properties=properties,
        name=None,
        description=None,
        runtime=Runtime(),
        replaces=old.metadata,
    )


def test_replacing_table_keeps_the_ids_of_what_stays(tmp_path: Path) -> None:
    old = promising(tmp_path)
    new = replaced(
        old, "m MAP<STRUCT<k: INT, j: STRING>, INT>, at TIMESTAMP, id LONG", **{W1: True}
    )
    found = {".".join(path): physical_name(field) for path, field in walk_fields(new.schema)}
    # The struct below the key stays; the map around it is another, and so is the number.
    assert found == {"m": "col-12", "m.key.k": "col-5", "m.key.j": "col-6", "at": "col-3",
                     "id": "col-13"}  # fmt: skip
    assert new.get("delta.columnMapping.maxColumnId") == "15"
    assert nested_ids(new.schema.fields[0]) == {"col-12.key": 14, "col-12.value": 15}


def test_replacing_table_takes_over_no_names_that_writers_cannot_have(tmp_path: Path) -> None:
    old = create(tmp_path, properties={MODE: "name"})
    new = replaced(old, FLAT, **{W1: True})
    assert [physical_name(field) for field in new.schema] == ["col-4", "col-5", "col-6"]
    same = replaced(old, FLAT, **{MODE: "name"})
    assert same.schema == old.schema


# Every way to break a promise


def changed(
    table: Table, change: Callable[[Metadata], Metadata], *more: Any, operation: str = "CHANGE"
) -> Table:
    """A commit of metadata as it is, round everything that ``Table`` would see to."""
    return table.commit(operation, [change(table.metadata), *more])


def marked(name: str, **metadata: Any) -> Callable[[Metadata], Metadata]:
    def change(old: Metadata) -> Metadata:
        fields = tuple(
            field.with_metadata(**metadata) if field.name == name else field for field in old.schema
        )
        return old.with_schema(Struct(fields))

    return change


_FEED = "delta.enableChangeDataFeed"


def _gains_constraint(table: Table) -> Table:
    return table.add_constraint("positive", "id > 0")


@dataclass(frozen=True)
class Break:
    id: str
    rule: str
    act: Callable[[Table], object]


BREAKS = [
    Break("byte-column", "IWC1-07", lambda t: t.add_column("b TINYINT")),
    Break("short-in-value", "IWC1-07", lambda t: t.add_column("m.value.s SMALLINT")),
    Break("variant", "IWC1-08", lambda t: t.add_column("v VARIANT")),
    Break("add-in-key", "IWC1-09", lambda t: t.add_column("m.key.x INT")),
    Break("drop-in-key", "IWC1-09", lambda t: t.drop_column("m.key.k")),
    Break("rename-in-key", "IWC1-09", lambda t: t.rename_column("m.key.k", "kk")),
    Break("move-in-key", "IWC1-09", lambda t: t.alter_column("m.key.j", first=True)),
    Break("constraint", "IWC1-13", _gains_constraint),
    Break("change-feed", "IWC1-12", lambda t: t.set_properties({_FEED: True})),
    Break("row-tracking", "IWC1-16", lambda t: t.set_properties({"delta.enableRowTracking": True})),
    Break("vectors", "IWC1-10", lambda t: t.set_properties({"delta.enableDeletionVectors": True})),
    Break("vectors-feature", "IWC1-10", lambda t: t.add_feature("deletionVectors")),
    Break("defaults-feature", "IWC1-17", lambda t: t.add_feature("allowColumnDefaults")),
    Break("base-off", "IWC1-04", lambda t: t.set_properties({V2: False})),
    Break("base-unset", "IWC1-04", lambda t: t.unset_properties([V2])),
    Break("two-bases", "ICV2-04", lambda t: t.set_properties({V1: True})),
    Break(
        "mode",
        "IWC1-05",
        lambda t: changed(t, lambda m: m.with_configuration({MODE: "name"})),
    ),
    Break("invariant", "IWC1-11", lambda t: changed(t, marked("id", **{"delta.invariants": "{}"}))),
    Break(
        "identity",
        "IWC1-14",
        lambda t: changed(t, marked("id", **{"delta.identity.highWaterMark": 4})),
    ),
    Break(
        "generated",
        "IWC1-15",
        lambda t: changed(t, marked("id", **{"delta.generationExpression": "1"})),
    ),
    Break(
        "physical-name",
        "IWC1-06",
        lambda t: changed(t, marked("id", **{"delta.columnMapping.physicalName": "id"})),
    ),
    Break(
        "nested-ids",
        "ICV2-13",
        lambda t: changed(t, marked("m", **{"delta.columnMapping.nested.ids": None})),
    ),
    Break(
        "iceberg-type-change",
        "ICV2-15",
        lambda t: t.widen_column("id", "DOUBLE"),
    ),
]


@pytest.mark.parametrize("case", BREAKS, ids=lambda case: case.id)
def test_promise_cannot_be_broken(tmp_path: Path, case: Break) -> None:
    table = promising(tmp_path, more={"delta.enableTypeWidening": True})
    assert case.rule in rules_in(refused(table, lambda: case.act(table)))


def test_row_tracking_is_refused_before_ids_are_handed_out(tmp_path: Path) -> None:
    table = append(promising(tmp_path, FLAT), tmp_path, ROWS)
    error = refused(table, lambda: table.set_properties({"delta.enableRowTracking": True}))
    assert rules_in(error) == {"IWC1-16"}


def test_partition_columns_stay(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "p INT, q INT, x INT", ["p"], {V2: True}, durable=False)
    error = refused(
        table, lambda: changed(table, lambda m: replace(m, partition_columns=("p", "q")))
    )
    assert rules_in(error) == {"ICV2-09"}


def test_what_iceberg_follows_is_allowed(tmp_path: Path) -> None:
    table = promising(tmp_path, more={"delta.enableTypeWidening": True})
    table = table.widen_column("id", "BIGINT").widen_column("m.value.v", "BIGINT")
    table = table.drop_column("m").alter_column("id", comment="the key", after="name")
    table = table.set_properties({"delta.appendOnly": True, "team": "orders"})
    assert table.check("icebergWriterCompatV1").ok


# Files that come past our own writers


def test_conforming_file_is_taken(tmp_path: Path) -> None:
    table = append(promising(tmp_path, FLAT), tmp_path, ROWS)
    assert table.check("icebergWriterCompatV1", files=True).ok


def _without_ids(table: Table, folder: Path) -> AddFile:
    add = write_file(table, folder, ROWS)
    data = pq.read_table(folder / add.path)
    plain = pa.schema([field.remove_metadata() for field in data.schema])
    pq.write_table(data.cast(plain), folder / add.path)
    return _resized(add, folder)


def _with_old_timestamps(table: Table, folder: Path) -> AddFile:
    add = write_file(table, folder, ROWS)
    data = pq.read_table(folder / add.path)
    pq.write_table(data, folder / add.path, use_deprecated_int96_timestamps=True)
    return _resized(add, folder)


def _without_counts(table: Table, folder: Path) -> AddFile:
    add = write_file(table, folder, ROWS)
    return msgspec.structs.replace(add, stats=json.dumps({"nullCount": {"col-1": 0}}))


def _not_parquet(table: Table, folder: Path) -> AddFile:
    add = write_file(table, folder, ROWS)
    (folder / add.path).write_bytes(b"PAR1 nothing else")
    return _resized(add, folder)


def _resized(add: AddFile, folder: Path) -> AddFile:
    return msgspec.structs.replace(add, size=(folder / add.path).stat().st_size)


@pytest.mark.parametrize("key", [V2, W1])
@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (_without_ids, "ICV2-14"),
        (_with_old_timestamps, "ICV2-12"),
        (_without_counts, "ICV2-10"),
        (_not_parquet, "ICV2-25"),
    ],
)
def test_file_that_breaks_a_rule_is_refused(
    tmp_path: Path, key: str, make: Callable[[Table, Path], AddFile], rule: str
) -> None:
    table = promising(tmp_path, FLAT, key)
    add = make(table, tmp_path)
    error = refused(table, lambda: table.commit("WRITE", [add]))
    assert rule in rules_in(error)
    assert add.path in error.why


def test_file_without_partition_column_is_refused(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "p INT, x INT", ["p"], {V2: True}, durable=False)
    add = write_file(table, tmp_path, [{"p": 1, "x": 2}])
    table = table.commit("WRITE", [add])
    bare = pq.ParquetFile(tmp_path / add.path).read([physical_name(table.schema.fields[1])])
    pq.write_table(bare, tmp_path / "bare.parquet")
    add = _resized(msgspec.structs.replace(add, path="bare.parquet"), tmp_path)
    assert "ICV2-11" in rules_in(refused(table, lambda: table.commit("WRITE", [add])))


def test_vectors_cannot_come_in(tmp_path: Path) -> None:
    table = promising(tmp_path, FLAT, V2, {"delta.feature.deletionVectors": "supported"})
    add = write_file(table, tmp_path, ROWS)
    table = table.commit("WRITE", [add])
    vector = DeletionVectorDescriptor("i", "d", 40, 1)
    hidden = msgspec.structs.replace(add, deletion_vector=vector)
    gone = add.remove(deletion_timestamp=1)
    error = refused(table, lambda: table.commit("DELETE", [gone, hidden]))
    assert "ICV2-06" in rules_in(error)


def test_other_faults_are_told_with_the_promise(tmp_path: Path) -> None:
    table = promising(tmp_path, FLAT)
    add = _without_counts(table, tmp_path)
    with pytest.raises(UserError) as caught:
        table.commit("WRITE", [add, add])
    found = {violation["check"] for violation in caught.value.fields["violations"]}
    assert found == {"CMT-03", "CMT-15"}
    assert caught.value.fields["report"]["ok"] is False


# Tables that exist


def test_promise_on_a_table_with_fitting_files(tmp_path: Path) -> None:
    table = append(create(tmp_path, properties={MODE: "name"}), tmp_path, ROWS)
    table = table.set_properties({V2: True})
    assert table.check("icebergCompatV2", files=True).ok
    table = table.set_properties({V2: False, V1: True}).set_properties({V1: False})
    assert table.unset_properties([V1]).version == 6 - 1


def test_promise_over_files_without_ids_is_refused(tmp_path: Path) -> None:
    table = append(create(tmp_path), tmp_path, ROWS)
    error = refused(table, lambda: table.set_properties({V2: True, MODE: "name"}))
    assert rules_in(error) == {"ICV2-14"}
    error = refused(table, lambda: table.set_properties({V2: True}))
    assert {"ICV2-03", "ICV2-14"} <= rules_in(error)


def test_writer_promise_on_an_existing_table_is_refused_with_everything(tmp_path: Path) -> None:
    table = append(create(tmp_path, "id INT, b TINYINT"), tmp_path, [{"id": 1, "b": 1}])
    error = refused(table, lambda: table.set_properties({W1: True}))
    assert {"IWC1-04", "IWC1-05", "IWC1-06", "IWC1-07", "ICV2-14"} <= rules_in(error)


def test_promise_is_taken_back_and_made_again(tmp_path: Path) -> None:
    table = append(promising(tmp_path, FLAT), tmp_path, ROWS)
    table = table.set_properties({W1: False})
    table = append(table.add_column("b TINYINT"), tmp_path, ROWS)
    error = refused(table, lambda: table.set_properties({W1: True}))
    assert "IWC1-07" in rules_in(error)
    table = table.drop_column("b").set_properties({W1: True})
    assert table.check("icebergWriterCompatV1").ok


def test_third_version_tracks_rows_and_stays(tmp_path: Path) -> None:
    table = append(create(tmp_path, properties={MODE: "name"}), tmp_path, ROWS)
    table = table.set_properties({V3: True})
    assert table.properties["delta.enableRowTracking"] == "true"
    # Others may not take the commit for one that only switches row tracking on.
    assert "rowTrackingEnablementOnly" not in (table.history(1)[0].tags or {})
    assert table.check("icebergCompatV3", files=True).ok
    for act in (
        lambda: table.set_properties({V3: False}),
        lambda: table.unset_properties([V3]),
        lambda: table.restore(0),
    ):
        assert "ICV3-20" in rules_in(refused(table, act))
    assert "ICV3-18" in rules_in(
        refused(table, lambda: table.set_properties({"delta.enableRowTracking": False}))
    )


def test_row_tracking_alone_says_so(tmp_path: Path) -> None:
    table = append(create(tmp_path), tmp_path, ROWS)
    table = table.set_properties({"delta.enableRowTracking": True})
    assert (table.history(1)[0].tags or {})["rowTrackingEnablementOnly"] == "true"


def test_third_version_is_refused_before_ids_are_handed_out(tmp_path: Path) -> None:
    table = append(create(tmp_path), tmp_path, ROWS)
    error = refused(table, lambda: table.set_properties({V3: True}))
    assert {"ICV3-03", "ICV3-14"} <= rules_in(error)


def test_live_vectors_stand_against_the_second_version(tmp_path: Path) -> None:
    table = create(tmp_path, properties={MODE: "name", "delta.enableDeletionVectors": True})
    add = write_file(table, tmp_path, ROWS)
    vector = DeletionVectorDescriptor("i", "d", 40, 1)
    table = table.commit("WRITE", [msgspec.structs.replace(add, deletion_vector=vector)])
    error = refused(table, lambda: table.set_properties({V2: True}))
    assert rules_in(error) == {"ICV2-05", "ICV2-06"}
    off = {V2: True, "delta.enableDeletionVectors": False}
    assert rules_in(refused(table, lambda: table.set_properties(off))) == {"ICV2-06"}


def test_formats_go_with_the_promise(tmp_path: Path) -> None:
    formats = "delta.universalFormat.enabledFormats"
    table = promising(tmp_path, FLAT, V2, {formats: "iceberg"})
    assert formats not in table.unset_properties([V2]).properties
    table = promising(tmp_path / "raw", FLAT, V2, {formats: "iceberg"})
    off = table.metadata.with_configuration({V2: "false"})
    with pytest.raises(CompatViolation) as caught:
        table.commit("CHANGE", [off])
    assert str(caught.value.delta_class).endswith("ICEBERG_COMPAT_REQUIRED")


# Versions of old


def test_restore_is_judged_by_the_rules(tmp_path: Path) -> None:
    table = append(create(tmp_path, properties={MODE: "name"}), tmp_path, ROWS)
    bare = table.commit("WRITE", [_without_ids(table, tmp_path)])
    table = bare.restore(1).set_properties({V2: True}).add_column("tags ARRAY<INT>")
    highest = int(table.properties["delta.columnMapping.maxColumnId"])
    # A version from before the promise takes it back, with the files that would break it.
    back = table.restore(2)
    assert V2 not in back.properties
    assert int(back.properties["delta.columnMapping.maxColumnId"]) == highest
    # A version that makes it is judged as if it were made now.
    kept = back.restore(table.version)
    assert kept.check("icebergCompatV2", files=True).ok


def test_files_of_old_are_looked_at_when_restored(tmp_path: Path) -> None:
    table = create(tmp_path, properties={MODE: "name", V2: True})
    _forced(table, _without_ids(table, tmp_path))
    table = table.refresh()
    emptied = table.commit(
        "DELETE", [add.remove(deletion_timestamp=1) for add in table.snapshot.adds()]
    )
    assert "ICV2-14" in rules_in(refused(emptied, lambda: emptied.restore(table.version)))


# Tables that somebody else broke


def _forced(table: Table, *actions: Any) -> Table:
    """What an engine commits that does not know the rules."""
    options = CommitOptions(checks=())
    transaction = Transaction(table.snapshot, Operation(name="OTHER"), options=options)
    transaction.add(*actions).commit()
    return table.refresh()


def test_broken_table_is_not_locked(tmp_path: Path) -> None:
    table = promising(tmp_path, FLAT, more={"delta.enableTypeWidening": True})
    byte = StructField("b", parse_type("tinyint"))
    wide = Struct((*table.schema.fields, byte.with_metadata(**_mapping(9))))
    broken = table.metadata.with_schema(wide).with_configuration(
        {"delta.columnMapping.maxColumnId": "9"}
    )
    table = _forced(table, broken, _without_ids(table, tmp_path))
    report = table.check("icebergWriterCompatV1", files=True)
    assert {violation.rule for violation in report.violations} >= {"IWC1-07", "ICV2-14"}
    table = append(table, tmp_path, [{"id": 3, "name": "c", "b": 1}])
    table = table.rename_column("name", "title").set_properties({"team": "orders"})
    error = refused(table, lambda: table.add_column("c TINYINT"))
    assert [v["path"] for v in error.report["violations"] if v["rule"] == "IWC1-07"] == ["c"]
    table = table.widen_column("b", "INT")
    assert table.check("icebergWriterCompatV1").ok


def _mapping(number: int) -> dict[str, Any]:
    return {
        "delta.columnMapping.id": number,
        "delta.columnMapping.physicalName": f"col-{number}",
    }


# Others at the same time


def test_append_between_is_a_conflict(tmp_path: Path) -> None:
    table = append(create(tmp_path, properties={MODE: "name"}), tmp_path, ROWS)
    append(table, tmp_path, ROWS)
    with pytest.raises(ConflictError) as caught:
        table.set_properties({V2: True})
    assert caught.value.rule == "OCC-07"
    assert V2 not in table.refresh().properties


def test_append_after_a_promise_was_made_is_a_conflict(tmp_path: Path) -> None:
    table = append(create(tmp_path, properties={MODE: "name"}), tmp_path, ROWS)
    promised = table.set_properties({V2: True})
    with pytest.raises(ConflictError):
        table.commit("WRITE", [_without_ids(table, tmp_path)])
    assert table.refresh().version == promised.version


def test_append_is_judged_by_the_promise_it_lands_on(tmp_path: Path) -> None:
    table = promising(tmp_path, FLAT)
    append(table, tmp_path, ROWS)
    stale = write_file(table, tmp_path, ROWS)
    moved = table.commit("WRITE", [stale])
    assert moved.version == 2
    with pytest.raises(TwinlakeError):
        table.commit("WRITE", [_without_ids(table, tmp_path)])
    assert table.refresh().version == 2
