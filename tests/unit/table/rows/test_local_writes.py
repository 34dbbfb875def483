"""Rows written without Spark: what becomes of them, and what is refused before anything changes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinlake import ConflictError, Table, UserError
from twinlake.actions import AddCDCFile, AddFile
from twinlake.errors import Code
from twinlake.log import read_commit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FEATURES: dict[str, dict[str, str]] = {
    "plain": {},
    "vectors": {"delta.enableDeletionVectors": "true"},
    "feed": {"delta.enableChangeDataFeed": "true"},
    "tracking": {"delta.enableRowTracking": "true"},
    "by id": {"delta.columnMapping.mode": "id"},
    "all": {
        "delta.enableDeletionVectors": "true",
        "delta.enableChangeDataFeed": "true",
        "delta.enableRowTracking": "true",
        "delta.columnMapping.mode": "name",
    },
    "twin": {"delta.enableIcebergWriterCompatV1": "true", "twinlake.iceberg.sync": "commit"},
}


def rows(table: Table) -> list[dict[str, Any]]:
    return sorted(table.to_arrow().to_pylist(), key=str)


@pytest.mark.parametrize("properties", FEATURES.values(), ids=FEATURES)
@pytest.mark.parametrize("partitioned", [False, True], ids=["whole", "partitioned"])
def test_every_operation_leaves_the_rows_it_says(
    tmp_path: Path, properties: dict[str, str], partitioned: bool
) -> None:
    t = Table.create(
        tmp_path,
        "id BIGINT, s STRING, st STRUCT<a: INT>, p INT",
        partition_by=["p"] if partitioned else (),
        properties=properties,
    )
    t = t.append(
        {
            "id": [1, 2, 3, 4],
            "s": ["a", "b", None, "d"],
            "st": [{"a": 1}, None, {"a": None}, {"a": 4}],
            "p": [1, 1, 2, 2],
        }
    )
    t = t.append([{"id": 5, "p": 1}])
    t = t.delete("id = 2")
    t = t.update({"s": "concat(s, '!')", "p": "p + 1"}, where="id IN (1, 4)")
    t = t.merge({"id": [3, 9], "s": ["three", "nine"], "p": [2, 7]}, on="id")
    t = t.overwrite({"id": [5], "s": ["five"], "p": [1]}, where="id = 5")
    expected = [
        {"id": 1, "s": "a!", "st": {"a": 1}, "p": 2},
        {"id": 3, "s": "three", "st": {"a": None}, "p": 2},
        {"id": 4, "s": "d!", "st": {"a": 4}, "p": 3},
        {"id": 5, "s": "five", "st": None, "p": 1},
        {"id": 9, "s": "nine", "st": None, "p": 7},
    ]
    assert rows(t) == sorted(expected, key=str)
    before = rows(t)
    t = t.optimize()
    assert rows(t) == before
    assert (t.count(), t.count("p = 2"), t.count("id > 3")) == (5, 2, 3)
    assert rows(Table.open(tmp_path, version=2)) != rows(t)
    assert t.delete().count() == 0
    if "twinlake.iceberg.sync" in properties:
        assert Table.open(tmp_path).verify_twin(rows=True).agrees


def test_row_ids_stay_with_their_rows(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "id INT", properties={"delta.enableRowTracking": "true"})
    t = t.append({"id": [1, 2, 3]})
    before = {r["id"]: r["_row_id"] for r in t.to_arrow(row_ids=True).to_pylist()}
    t = t.update({"id": "id + 10"}, where="id = 2").delete("id = 1").optimize()
    after = {r["id"]: r for r in t.to_arrow(row_ids=True).to_pylist()}
    assert after[12]["_row_id"] == before[2]
    assert after[3] == {"id": 3, "_row_id": before[3], "_row_commit_version": 1}
    assert after[12]["_row_commit_version"] == 2


def test_changes_are_recorded_for_the_feed(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "id INT, n INT", properties={"delta.enableChangeDataFeed": "true"})
    t = t.append({"id": [1, 2, 3], "n": [0, 0, 0]}).update({"n": "7"}, where="id = 1")
    t = t.merge({"id": [2, 4], "n": [5, 6]}, on="id").delete("id = 3")
    found = []
    for version in range(2, t.version + 1):
        for action in read_commit(t.snapshot.store, version):
            if isinstance(action, AddCDCFile):
                data = pq.read_table(tmp_path / action.path).to_pylist()
                found += [(version, r["id"], r["n"], r["_change_type"]) for r in data]
    assert sorted(found) == [
        (2, 1, 0, "update_preimage"),
        (2, 1, 7, "update_postimage"),
        (3, 2, 0, "update_preimage"),
        (3, 2, 5, "update_postimage"),
        (3, 4, 6, "insert"),
        (4, 3, 0, "delete"),
    ]


# What data may be


def test_data_of_every_kind(tmp_path: Path) -> None:
    import pandas

    t = Table.create(tmp_path, "id INT, s STRING")
    arrow = pa.table({"id": pa.array([1], pa.int64()), "s": pa.array(["a"], pa.string_view())})
    given = [
        arrow,
        arrow.to_batches()[0],
        arrow.to_reader(),
        pandas.DataFrame({"id": [1], "s": ["a"]}, index=[7]),
        {"s": ["a"], "ID": [1]},
        [{"id": 1, "s": "a"}],
        pa.table({"id": pa.array([1], pa.uint8()), "s": pa.array(["a"]).dictionary_encode()}),
        t.append(arrow),
    ]
    for data in given:
        t = t.append(data)
    assert rows(t) == [{"id": 1, "s": "a"}] * (len(given) + 1)


@pytest.mark.parametrize(
    ("column", "data"),
    [
        ("id", pa.array([2**31], pa.int64())),
        ("id", pa.array([1.5])),
        ("id", pa.array(["1"])),
        ("at", pa.array([dt.datetime(2024, 1, 1)], pa.timestamp("us"))),
        ("at", pa.array([1], pa.timestamp("ns", "UTC"))),
        ("d", pa.array([Decimal("1234.5")])),
        ("st", pa.array([{"a": 2**40}])),
    ],
    ids=["too large", "a fraction", "a text", "no instant", "nanoseconds", "digits", "nested"],
)
def test_a_value_that_does_not_fit_is_an_error(tmp_path: Path, column: str, data: Any) -> None:
    t = Table.create(tmp_path, "id INT, at TIMESTAMP, d DECIMAL(4,1), st STRUCT<a: INT>")
    with pytest.raises(UserError) as caught:
        t.append({column: data})
    assert caught.value.code in (Code.SCHEMA_EVOLUTION, Code.SCHEMA_INVALID)
    assert column in str(caught.value)
    assert Table.open(tmp_path).version == 0
    assert [p.name for p in tmp_path.iterdir()] == ["_delta_log"]


def test_new_columns_come_with_merge_schema_only(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "id INT").append({"id": [1]})
    with pytest.raises(UserError, match="merge_schema"):
        t.append({"id": [2], "x": ["new"]})
    t = t.append({"id": [2], "x": ["new"]}, merge_schema=True)
    assert rows(t) == [{"id": 1, "x": None}, {"id": 2, "x": "new"}]
    t = t.overwrite(pa.table({"y": ["other"]}), overwrite_schema=True)
    assert rows(t) == [{"y": "other"}]


# Rules


RULED = (
    "id INT NOT NULL, at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)), "
    "n INT DEFAULT 7, v VARCHAR(3)"
)
MORNING = dt.datetime(2024, 2, 29, 1, 2, 3, tzinfo=dt.UTC)


def ruled(path: Path) -> Table:
    table = Table.create(path, RULED, properties={"delta.feature.allowColumnDefaults": "enabled"})
    return table.add_constraint("positive", "n > 0")


def test_what_data_lacks_is_computed(tmp_path: Path) -> None:
    t = ruled(tmp_path).append({"id": [1], "at": [MORNING]})
    expected = {"id": 1, "at": MORNING, "day": MORNING.date(), "n": 7, "v": None}
    assert rows(t) == [expected]
    t = t.update({"at": "CAST(NULL AS TIMESTAMP)"})
    assert rows(t)[0]["day"] is None


@pytest.mark.parametrize(
    ("data", "delta_class"),
    [
        ({"id": [None]}, "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"),
        ({"n": [1]}, "DELTA_MISSING_NOT_NULL_COLUMN_VALUE"),
        ({"id": [1], "n": [0]}, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"),
        ({"id": [1], "n": pa.array([None], pa.int32())}, "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"),
        (
            {"id": [1], "at": [MORNING], "day": [dt.date(2024, 3, 1)]},
            "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        ),
        ({"id": [1], "v": ["four"]}, "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"),
    ],
    ids=["null", "missing", "check", "check of null", "generated", "length"],
)
def test_a_row_that_breaks_a_rule_is_refused(
    tmp_path: Path, data: dict[str, Any], delta_class: str
) -> None:
    t = ruled(tmp_path)
    if "id" in data:
        data = {**data, "id": pa.array(data["id"], pa.int32())}
    with pytest.raises(UserError) as caught:
        t.append(data)
    assert caught.value.delta_class == delta_class
    assert Table.open(tmp_path).version == t.version


def test_an_update_is_held_to_the_rules(tmp_path: Path) -> None:
    t = ruled(tmp_path).append({"id": [1, 2]})
    with pytest.raises(UserError, match="positive"):
        t.update({"n": "n - 7"}, where="id = 2")
    with pytest.raises(UserError, match="NOT NULL"):
        t.update({"id": None})
    assert Table.open(tmp_path).version == t.version


@pytest.mark.parametrize(
    ("make", "call"),
    [
        ("id INT, n INT DEFAULT rand()", {"id": [1]}),
        ("id INT, u STRING GENERATED ALWAYS AS (upper(CAST(id AS STRING)))", {"id": [1]}),
        ("k BIGINT GENERATED ALWAYS AS IDENTITY, id INT", {"id": [1]}),
    ],
    ids=["default", "generated", "identity"],
)
def test_what_takes_spark_is_refused_with_the_reason(
    tmp_path: Path, make: str, call: dict[str, Any]
) -> None:
    properties = {"delta.feature.allowColumnDefaults": "enabled"} if "DEFAULT" in make else {}
    t = Table.create(tmp_path, make, properties=properties)
    with pytest.raises(UserError, match="Spark") as caught:
        t.append(call)
    assert caught.value.code is Code.SPARK_REQUIRED
    assert "twinlake.spark" in caught.value.fix
    assert Table.open(tmp_path).version == 0


def test_a_predicate_that_takes_spark_is_never_widened(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "s STRING").append({"s": ["a", "B"]})
    calls = (
        lambda: t.to_arrow(where="upper(s) = 'A'"),
        lambda: t.count("length(s) = 1"),
        lambda: t.delete("upper(s) = 'A'"),
        lambda: t.update({"s": "'x'"}, where="upper(s) = 'A'"),
        lambda: t.overwrite({"s": ["A"]}, where="upper(s) = 'A'"),
        lambda: t.update({"s": "upper(s)"}),
    )
    for call in calls:
        with pytest.raises(UserError, match="Only Spark"):
            call()
    assert Table.open(tmp_path).version == t.version


# Commits


def test_an_append_happens_once_for_an_application(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "id INT")
    for _ in range(3):
        t = t.append({"id": [1]}, txn=("job", 1), user_metadata="nightly")
    assert t.count() == 1
    assert t.history(1)[0].user_metadata == "nightly"
    assert t.append({"id": [2]}, txn=("job", 2)).count() == 2


def test_a_conflict_deletes_what_was_written(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "id INT").append({"id": [1, 2, 3]})
    t.delete("id = 1")
    with pytest.raises(ConflictError):
        t.update({"id": "id + 1"})
    known = {add.path for v in range(3) for add in Table.open(tmp_path, version=v).snapshot.adds()}
    assert {p.name for p in tmp_path.glob("*.parquet")} == known


def test_an_append_does_not_conflict_with_an_append(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "id INT")
    t.append({"id": [1]})
    assert t.append({"id": [2]}).count() == 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, [(1, "new"), (2, "b"), (3, "new")]),
        ({"update": False}, [(1, "a"), (2, "b"), (3, "new")]),
        ({"insert": False}, [(1, "new"), (2, "b")]),
        ({"delete": True, "insert": False}, [(2, "b")]),
        ({"update": ["s"]}, [(1, "new"), (2, "b"), (3, "new")]),
    ],
    ids=["upsert", "insert only", "update only", "delete", "some columns"],
)
def test_merge(tmp_path: Path, arguments: dict[str, Any], expected: list[Any]) -> None:
    t = Table.create(tmp_path, "id INT, s STRING").append({"id": [1, 2], "s": ["a", "b"]})
    t = t.merge({"id": [1, 3], "s": ["new", "new"]}, on="id", **arguments)
    assert [(r["id"], r["s"]) for r in rows(t)] == expected


def test_merge_never_matches_nulls_and_refuses_two_sources_for_a_row(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "a INT, b STRING, n INT")
    t = t.append({"a": [None, 1], "b": ["x", "y"], "n": [0, 0]})
    t = t.merge({"a": pa.array([None, 1], pa.int32()), "b": ["x", "y"], "n": [1, 1]}, on=["a", "b"])
    assert sorted(r["n"] for r in rows(t)) == [0, 1, 1]
    with pytest.raises(UserError, match="more than once"):
        t.merge({"a": [1, 1], "b": ["y", "y"], "n": [2, 3]}, on=["a", "b"])


@pytest.mark.parametrize(
    "arguments",
    [
        {"on": []},
        {"on": "nope"},
        {"on": "l"},
        # Padded texts are equal where their bytes are not.
        {"on": ["id", "c"]},
        {"on": "id", "update": False, "insert": False},
    ],
    ids=str,
)
def test_a_merge_that_cannot_be_done_is_refused(tmp_path: Path, arguments: dict[str, Any]) -> None:
    t = Table.create(tmp_path, "id INT, l ARRAY<INT>, c CHAR(3)")
    t = t.append({"id": [1], "c": ["a"]})
    with pytest.raises(UserError):
        t.merge({"id": [1], "l": [[1]], "c": ["a"]}, **arguments)
    assert Table.open(tmp_path).version == t.version


@pytest.mark.parametrize(
    ("kind", "own", "given", "new"),
    [
        ("DOUBLE", [0.0, float("nan"), 1.5], [-0.0, -float("nan"), 1.5], [2.5]),
        ("FLOAT", [-0.0, float("nan"), 0.1], [0.0, float("nan"), 0.1], [float("inf")]),
        ("DECIMAL(5,2)", [Decimal("1.5"), Decimal(-1), Decimal(0)], [1.5, -1.0, 0.0], [9.25]),
        ("BOOLEAN", [True], [True], [False]),
        ("DATE", [dt.date(1, 1, 1)], [dt.date(1, 1, 1)], [dt.date(9999, 1, 1)]),
    ],
)
def test_keys_match_as_spark_compares_them(
    tmp_path: Path, kind: str, own: list[Any], given: list[Any], new: list[Any]
) -> None:
    t = Table.create(tmp_path, f"k {kind}, n INT")
    t = t.append({"k": [*own, None], "n": [0] * (len(own) + 1)})
    t = t.merge({"k": [*given, *new], "n": [1] * (len(given) + len(new))}, on="k")
    found = t.to_arrow().to_pylist()
    assert len(found) == len(own) + 1 + len(new)
    assert [row for row in found if row["n"] == 0] == [{"k": None, "n": 0}]


def test_a_merge_of_no_rows_changes_nothing(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "id INT").append({"id": [1]})
    nothing: list[Any] = [[], {}, iter(())]
    for data in nothing:
        assert t.merge(data, on="id").version == t.version


def test_append_only_tables_lose_no_row(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "id INT", properties={"delta.appendOnly": "true"})
    t = t.append({"id": [1]})
    calls: tuple[Callable[[], Any], ...] = (
        t.delete,
        lambda: t.update({"id": 2}),
        lambda: t.overwrite({"id": [2]}),
        lambda: t.merge({"id": [1]}, on="id"),
    )
    for call in calls:
        with pytest.raises(UserError, match="append-only"):
            call()
    assert t.optimize().count() == 1


def test_columns_that_only_later_rows_have_are_written(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "id BIGINT, s STRING")
    t = t.append([{"id": 1}, {"id": 2, "s": "b"}, {"s": "c"}])
    assert rows(t) == [{"id": 1, "s": None}, {"id": 2, "s": "b"}, {"id": None, "s": "c"}]


def test_a_column_that_only_a_later_row_has_is_held_against_the_table(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "id BIGINT")
    with pytest.raises(UserError) as caught:
        t.append([{"id": 1}, {"id": 2, "other": "b"}])
    assert caught.value.code == Code.SCHEMA_EVOLUTION
    assert Table.open(tmp_path).version == 0


def test_dictionaries_become_maps_where_the_table_has_maps(tmp_path: Path) -> None:
    t = Table.create(
        tmp_path, "id INT, m MAP<STRING, STRUCT<n: INT>>, a ARRAY<STRUCT<m: MAP<INT, STRING>>>"
    )
    t = t.append([{"id": 1, "m": {"x": {"n": 3}, "y": None}}, {"id": 2, "a": [{"m": {5: "f"}}]}])
    t = t.merge([{"id": 2, "m": {"z": {"N": 4}}, "a": None}], on="id")
    assert rows(t) == [
        {"id": 1, "m": [("x", {"n": 3}), ("y", None)], "a": None},
        {"id": 2, "m": [("z", {"n": 4})], "a": None},
    ]


def test_a_field_that_a_struct_in_a_map_lacks_is_refused(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "m MAP<STRING, STRUCT<n: INT>>")
    with pytest.raises(UserError, match="no field z"):
        t.append([{"m": {"x": {"n": 3, "z": 4}}}])
    assert Table.open(tmp_path).version == 0


@pytest.mark.parametrize("data", [[{1: 2}], {1: [2]}, [{"m": {"x": {1: 2}}}]], ids=str)
def test_a_name_that_is_no_text_is_refused(tmp_path: Path, data: Any) -> None:
    t = Table.create(tmp_path, "m MAP<STRING, STRUCT<n: INT>>")
    with pytest.raises(UserError, match="names of columns and fields are text"):
        t.append(data)
    assert Table.open(tmp_path).version == 0


def test_frames_of_polars_are_merged_as_they_are(tmp_path: Path) -> None:
    import polars

    t = Table.create(tmp_path, "s STRING, c STRING, l ARRAY<STRING>, st STRUCT<a: STRING>")
    t = t.append({"s": ["a"], "c": ["old"]})
    parts = [
        polars.DataFrame(
            {"s": [key], "c": [text], "l": [[text, None]], "st": [{"a": text}]},
            schema_overrides={"c": polars.Categorical},
        )
        for key, text in (("a", "new"), ("b", None))
    ]
    # In chunks of their own, each with its dictionary.
    t = t.merge(polars.concat(parts, rechunk=False), on="s")
    assert rows(t) == [
        {"s": "a", "c": "new", "l": ["new", None], "st": {"a": "new"}},
        {"s": "b", "c": None, "l": [None, None], "st": {"a": None}},
    ]


def test_batches_and_rows_may_come_one_after_the_other(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "id INT")
    t = t.append(pa.record_batch({"id": [n]}) for n in (1, 2))
    t = t.append([pa.record_batch({"id": [3]}), pa.record_batch({"id": [4]})])
    t = t.append({"id": n} for n in (5, 6)).append(t.to_batches(where="id = 2"))
    assert sorted(t.to_arrow()["id"].to_pylist()) == [1, 2, 2, 3, 4, 5, 6]
    assert t.overwrite(iter(())).count() == 0
    other = [pa.record_batch({"id": [1]}), pa.record_batch({"x": [1]})]
    with pytest.raises(UserError, match="different columns"):
        t.append(other)
    assert sorted(p.name for p in tmp_path.glob("*.parquet")) == sorted(
        add.path for version in (1, 2, 3, 4) for add in _added(t, version)
    )


def _added(table: Table, version: int) -> list[AddFile]:
    return [a for a in read_commit(table.snapshot.store, version) if isinstance(a, AddFile)]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"id": "abc"}, "Column id: It is one value, a str"),
        ({"id": 1}, "Column id: It is one value, a int"),
        ({"id": None}, "Column id: It is one value"),
        ({"id": [1, "a"]}, "Column id: Could not convert 'a'"),
        ({"id": [2**70]}, "Column id: .* too large"),
        ([{"id": 1}, (2,)], "Rows are dictionaries or Arrow batches, and one is a tuple"),
        ("table.parquet", "neither Arrow data"),
        (None, "neither Arrow data"),
    ],
    ids=str,
)
def test_what_is_no_data_is_refused(tmp_path: Path, data: Any, why: str) -> None:
    t = Table.create(tmp_path, "id STRING")
    with pytest.raises(UserError, match=why) as caught:
        t.append(data)
    assert caught.value.code is Code.INVALID_ARGUMENT
    assert "a list of dictionaries" in caught.value.fix
    assert Table.open(tmp_path).version == 0


def test_whole_numbers_are_decimals_where_these_have_room(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "d DECIMAL(10,2), f DECIMAL(38,0), e DECIMAL(38,38)")
    t = t.append({"d": [1, -99_999_999, None], "f": [2**63 - 1, -(2**63), 0], "e": [0, None, 0]})
    assert t.to_arrow().to_pydict() == {
        "d": [Decimal(1), Decimal(-99_999_999), None],
        "f": [Decimal(2**63 - 1), Decimal(-(2**63)), Decimal(0)],
        "e": [Decimal(0), None, Decimal(0)],
    }
    assert t.update({"d": 7}).to_arrow()["d"].to_pylist() == [Decimal(7)] * 3
    with pytest.raises(UserError, match="int64 cannot be stored in column d"):
        t.append({"d": [100_000_000]})


@pytest.mark.parametrize(
    ("column", "value", "fix"),
    [
        ("at", dt.datetime(2024, 1, 1), "Give the values a time zone"),
        ("local", dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "Take the time zone from the values"),
    ],
)
def test_times_say_how_they_become_the_other_kind(
    tmp_path: Path, column: str, value: dt.datetime, fix: str
) -> None:
    t = Table.create(tmp_path, "at TIMESTAMP, local TIMESTAMP_NTZ")
    with pytest.raises(UserError, match="an instant") as caught:
        t.append({column: [value]})
    assert fix in caught.value.fix


def test_constants_of_an_update_are_of_every_type(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "id INT, m MAP<STRING, INT>, l ARRAY<INT>, st STRUCT<a: INT>")
    t = t.append({"id": [1, 2]})
    t = t.update({"m": {"a": 1}, "l": [1, None], "st": {"a": 5}}, where="id = 2")
    assert rows(t) == [
        {"id": 1, "m": None, "l": None, "st": None},
        {"id": 2, "m": [("a", 1)], "l": [1, None], "st": {"a": 5}},
    ]
    for value in (2**70, {"a": "x"}):
        with pytest.raises(UserError, match=r"cannot be stored in column"):
            t.update({"m" if isinstance(value, dict) else "id": value})
