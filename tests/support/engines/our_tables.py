"""Tables made here, with rows in them, for other engines to open: one builder a kind.

``OUR_TABLES`` maps a name to its builder. A builder gets an empty folder and returns the table with
the rows that any engine must find in it. Nothing here needs a JVM.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from tests.support.data_files import append
from twinlake.actions import DomainMetadata, SetTransaction
from twinlake.log.deletion_vectors import dv_key, inline_descriptor, write_dv_file
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from twinlake.actions import AddFile, DeletionVectorDescriptor

__all__ = ["OUR_TABLES", "OurTable", "busy"]

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class OurTable:
    """A table made here, and the rows that were written to it."""

    path: Path
    table: Table
    rows: Sequence[Row]


#: Every kind of table by name; filled by the ``@_ours`` builders below.
OUR_TABLES: dict[str, Callable[[Path], OurTable]] = {}


def _ours(build: Callable[[Path], OurTable]) -> Callable[[Path], OurTable]:
    OUR_TABLES[build.__name__] = build
    return build


def _create(path: Path, columns: str, *partitions: str, **properties: str) -> Table:
    """A table with properties in the ``delta.`` space; ``__`` in a name stands for a dot."""
    given = {f"delta.{k.replace('__', '.')}": v for k, v in properties.items()}
    return Table.create(path, columns, partitions, given, durable=False)


def _rows(*ids: int) -> list[Row]:
    return [{"id": i, "name": f"n{i}"} for i in ids]


@_ours
def plain(path: Path) -> OurTable:
    """Files that came and went, properties set and unset, an application's version."""
    table = Table.create(
        path,
        "id BIGINT COMMENT 'the key', name STRING",
        name="peer",
        description="a description",
        durable=False,
    )
    table = append(table, path, _rows(1, 2), _rows(3))
    table = table.set_properties({"owner": "ann", "delta.logRetentionDuration": "interval 9 days"})
    gone = next(add for add in table.snapshot.adds() if '"numRecords":1,' in (add.stats or ""))
    table = table.commit("DELETE", [gone.remove(deletion_timestamp=_now_ms())])
    table = table.unset_properties(["owner"])
    table = table.commit("STREAMING UPDATE", [SetTransaction(app_id="loader", version=7)])
    return OurTable(path, table, _rows(1, 2))


@_ours
def upgraded(path: Path) -> OurTable:
    """The protocol raised by hand and by properties, and a user's domain replaced and removed."""
    table = _create(path, "id BIGINT, name STRING").upgrade_protocol(1, 4)
    table = append(table, path, _rows(1))
    table = table.set_properties({"delta.enableChangeDataFeed": "true"})
    table = table.add_feature("domainMetadata")
    for number in (1, 2):
        domains = [
            DomainMetadata(domain="app.kept", configuration=f'{{"n":{number}}}', removed=False),
            DomainMetadata(domain="app.gone", configuration="{}", removed=number == 2),
        ]
        table = table.commit("Manual Update", domains)
    return OurTable(path, append(table, path, _rows(2)), _rows(1, 2))


_ODD_STRINGS = ("plain", "a b", "a/b", "a=b", "100%", "ü☃", "c:d#e?f+g", "'quoted'", "tab\tnl\n")


@_ours
def partitioned(path: Path) -> OurTable:
    """Partition values of many types, with special characters, nulls and old dates."""
    columns = "id BIGINT, s STRING, d DATE, ts TIMESTAMP, n DECIMAL(10,2), b BOOLEAN"
    table = _create(path, columns, "s", "d", "ts", "n", "b")
    moment = dt.datetime(2024, 2, 29, 12, 34, 56, 789000, dt.UTC)
    day, number = dt.date(2024, 2, 29), Decimal("12.50")
    rows: list[Row] = [
        {"id": i, "s": text, "d": day, "ts": moment, "n": number, "b": True}
        for i, text in enumerate(_ODD_STRINGS)
    ]
    rows.append({"id": 90, "s": None, "d": None, "ts": None, "n": None, "b": None})
    old = dt.datetime(1900, 1, 1, tzinfo=dt.UTC)
    rows.append(
        {"id": 91, "s": "z", "d": dt.date(1, 1, 1), "ts": old, "n": Decimal("-0.01"), "b": False}
    )
    return OurTable(path, append(table, path, *([row] for row in rows)), rows)


@_ours
def every_type(path: Path) -> OurTable:
    """One column of every type that needs no table feature of its own but timestamp_ntz."""
    table = _create(
        path,
        "a TINYINT, b SMALLINT, c INT, d BIGINT, e FLOAT, f DOUBLE, g DECIMAL(38,18), h STRING, "
        "i BINARY, j BOOLEAN, k DATE, l TIMESTAMP, m TIMESTAMP_NTZ, n ARRAY<INT>, "
        "o MAP<STRING, BIGINT>, p STRUCT<q: INT, r: STRUCT<s: STRING>>",
    )
    full: Row = {
        "a": -128,
        "b": 32767,
        "c": -(2**31),
        "d": 2**63 - 1,
        "e": 1.5,
        "f": -2.25,
        "g": Decimal("12345678901234567890.123456789012345678"),
        "h": 'ü "quoted" \\ \'',
        "i": b"\x00\xff",
        "j": True,
        "k": dt.date(1970, 1, 1),
        "l": dt.datetime(2024, 5, 6, 7, 8, 9, 123456, dt.UTC),
        "m": dt.datetime(2024, 5, 6, 7, 8, 9, 654321),
        "n": [1, None, 3],
        "o": [("k", 1)],
        "p": {"q": 1, "r": {"s": "deep"}},
    }
    rows = [full, dict.fromkeys(full)]
    return OurTable(path, append(table, path, rows), rows)


@_ours
def mapped_by_name(path: Path) -> OurTable:
    """Column mapping switched on over files, then columns renamed, added and dropped."""
    table = _create(path, "id BIGINT, who STRUCT<first: STRING, age: INT>, day DATE", "day")
    day = dt.date(2024, 1, 1)
    table = append(table, path, [{"id": 1, "who": {"first": "Ann", "age": 41}, "day": day}])
    table = table.set_properties({"delta.columnMapping.mode": "name"})
    table = table.rename_column("who.first", "given").rename_column("day", "on day")
    table = table.add_column("extra STRING").add_column("who.city STRING", first=True)
    table = table.drop_column("who.age")
    second = {"id": 2, "who": {"city": "Rome", "given": "Bo"}, "on day": None, "extra": "x"}
    table = append(table, path, [second])
    first = {"id": 1, "who": {"city": None, "given": "Ann"}, "on day": day, "extra": None}
    return OurTable(path, table, [first, second])


@_ours
def mapped_by_id(path: Path) -> OurTable:
    """Column mapping by id from the start, and a column that went and came back as another."""
    table = _create(path, "id BIGINT, name STRING", columnMapping__mode="id")
    table = append(table, path, _rows(1, 2))
    table = table.drop_column("name").add_column("name INT")
    table = append(table, path, [{"id": 3, "name": 33}])
    rows: list[Row] = [{"id": 1, "name": None}, {"id": 2, "name": None}, {"id": 3, "name": 33}]
    return OurTable(path, table, rows)


@_ours
def constrained(path: Path) -> OurTable:
    """A NOT NULL column, a CHECK kept and a CHECK dropped."""
    table = _create(path, "id BIGINT NOT NULL, name STRING")
    table = table.add_constraint("positive", "id > 0").add_constraint("named", "name <> ''")
    table = append(table.drop_constraint("named"), path, _rows(1, 2))
    return OurTable(path, table, _rows(1, 2))


@_ours
def clustered_and_tracked(path: Path) -> OurTable:
    """Clustering, row tracking and in-commit timestamps from the start."""
    table = Table.create(
        path,
        "id BIGINT, name STRING",
        cluster_by=["name"],
        properties={
            "delta.enableRowTracking": "true",
            "delta.enableInCommitTimestamps": "true",
        },
        durable=False,
    )
    table = append(table, path, _rows(1, 2), _rows(3))
    return OurTable(path, append(table, path, _rows(4)), _rows(1, 2, 3, 4))


@_ours
def timestamps_later(path: Path) -> OurTable:
    """In-commit timestamps switched on over older commits."""
    table = append(_create(path, "id BIGINT, name STRING"), path, _rows(1))
    table = table.set_properties({"delta.enableInCommitTimestamps": "true"})
    return OurTable(path, append(table, path, _rows(2)), _rows(1, 2))


@_ours
def vectors(path: Path) -> OurTable:
    """Deletion vectors: two in one file, one in a file under a prefix, one inline, one large."""
    table = _create(path, "id BIGINT, name STRING", enableDeletionVectors="true")
    starts = (0, 100, 200, 300, 1000)
    sizes = (10, 10, 10, 10, 70_000)
    ids = [range(start, start + size) for start, size in zip(starts, sizes, strict=True)]
    table = append(table, path, *(_rows(*some) for some in ids))
    deleted: list[list[int]] = [[0, 9], [1, 2, 3, 4, 5], [7], [0, 8], list(range(1, 70_000, 2))]
    table = _delete_positions(table, path, {ids[n][0]: deleted[n] for n in range(5)})
    left = [i for some, gone in zip(ids, map(set, deleted), strict=True) for i in _kept(some, gone)]
    return OurTable(path, table, _rows(*left))


def _kept(ids: range, gone: set[int]) -> list[int]:
    return [i for position, i in enumerate(ids) if position not in gone]


def _delete_positions(table: Table, path: Path, wanted: Mapping[int, Sequence[int]]) -> Table:
    """Mark positions as deleted in the files whose least id is given, in every way there is."""
    adds = {add.path: add for add in table.snapshot.adds()}
    found: dict[int, AddFile] = {
        file["stats"]["min_values"]["id"]: adds[file["path"]] for file in table.files().to_pylist()
    }
    chosen = [(found[first], positions) for first, positions in sorted(wanted.items())]
    descriptors: list[DeletionVectorDescriptor] = []
    groups = [(chosen[:2], UUID(int=1), ""), (chosen[3:], UUID(int=2), "ab")]
    for group, uuid, prefix in groups:
        data, some = write_dv_file([positions for _, positions in group], uuid, prefix=prefix)
        target = path / dv_key(uuid, prefix=prefix)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(data)
        descriptors.extend(some)
    descriptors.insert(2, inline_descriptor(chosen[2][1]))
    actions: list[Any] = []
    for (add, _), descriptor in zip(chosen, descriptors, strict=True):
        # The bounds may be those of rows that are gone now.
        stats = {**msgspec.json.decode(add.stats or "{}"), "tightBounds": False}
        actions.append(add.remove(deletion_timestamp=_now_ms()))
        actions.append(
            msgspec.structs.replace(
                add, deletion_vector=descriptor, stats=msgspec.json.encode(stats).decode()
            )
        )
    return table.commit("DELETE", actions, parameters={"predicate": "[]"})


@_ours
def restored(path: Path) -> OurTable:
    """Rows and a column that came later, taken back."""
    table = append(_create(path, "id BIGINT, name STRING"), path, _rows(1, 2))
    before = table.version
    table = append(table.add_column("more INT"), path, [{"id": 3, "name": "n3", "more": 3}])
    gone = next(table.snapshot.adds("id < 3")).remove(deletion_timestamp=_now_ms())
    table = table.commit("DELETE", [gone]).restore(before)
    return OurTable(path, table, _rows(1, 2))


@_ours
def widened(path: Path) -> OurTable:
    """Files of a narrow type under a schema with the wide one."""
    table = _create(path, "id SMALLINT, name STRING", enableTypeWidening="true")
    table = append(table, path, _rows(1)).widen_column("id", "INT")
    table = table.widen_column("id", "BIGINT")
    return OurTable(path, append(table, path, _rows(2**40)), _rows(1, 2**40))


@_ours
def dropped_features(path: Path) -> OurTable:
    """Features dropped the fast way, which leaves checkpoint protection."""
    table = _create(
        path,
        "id BIGINT, name STRING",
        enableDeletionVectors="true",
        enableRowTracking="true",
        checkpointPolicy="v2",
    )
    table = append(table, path, _rows(1, 2)).checkpoint()
    for feature in ("deletionVectors", "rowTracking", "v2Checkpoint"):
        table = table.drop_feature(feature)
    return OurTable(path, append(table, path, _rows(3)), _rows(1, 2, 3))


@_ours
def truncated_features(path: Path) -> OurTable:
    """Features dropped together with the history that shows them."""
    table = _create(
        path,
        "id BIGINT, name STRING",
        enableInCommitTimestamps="true",
        enableDeletionVectors="true",
        checkpointPolicy="v2",
        dropFeatureTruncateHistory__retentionDuration="interval 0 hours",
        logRetentionDuration="interval 0 hours",
    )
    table = append(table, path, _rows(1, 2))
    table = table.drop_feature("inCommitTimestamp")
    for feature in ("deletionVectors", "v2Checkpoint"):
        table = table.drop_feature(feature, truncate_history=True)
    return OurTable(path, append(table, path, _rows(3)), _rows(1, 2, 3))


def busy(path: Path, properties: Mapping[str, str]) -> OurTable:
    """Something of everything a checkpoint can hold, on top of the given properties."""
    table = Table.create(
        path,
        "id BIGINT, part STRING, at TIMESTAMP",
        ["part"],
        {
            "delta.columnMapping.mode": "name",
            "delta.enableDeletionVectors": "true",
            "delta.enableRowTracking": "true",
            "delta.enableInCommitTimestamps": "true",
            **properties,
        },
        durable=False,
    )
    moment = dt.datetime(2024, 5, 6, 7, 8, 9, 123456, dt.UTC)
    files: list[list[Row]] = [
        [{"id": 10 * n + i, "part": f"p {n}" if n else None, "at": moment} for i in range(10)]
        for n in range(6)
    ]
    table = append(table, path, *files)
    deleted = {0: [1], 10: [2, 3], 20: [4], 30: [5]}
    table = _delete_positions(table, path, deleted)
    gone = next(add for add in table.snapshot.adds("id >= 50"))
    table = table.commit("DELETE", [gone.remove(deletion_timestamp=_now_ms())])
    domain = DomainMetadata(domain="app", configuration='{"a":1}', removed=False)
    transaction = SetTransaction(app_id="loader", version=3, last_updated=_now_ms())
    table = table.commit("Manual Update", [domain, transaction])
    dead = {first + position for first, some in deleted.items() for position in some}
    rows = [row for file in files[:5] for row in file if row["id"] not in dead]
    return OurTable(path, table, rows)


def _now_ms() -> int:
    return int(dt.datetime.now(dt.UTC).timestamp() * 1000)
