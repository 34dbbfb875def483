"""CMT-15: what is judged at which commit, what is read for it, and how often."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import pytest

from tests.support.data_files import write_file
from tests.unit.commit.making import add, base, change, metadata
from twinlake import Table
from twinlake.commit import CommitOptions, Operation, Transaction
from twinlake.commit.checks.check import CompatFiles
from twinlake.commit.checks.compat import CompatChange, compat_refusal
from twinlake.commit.plans import Mode, TableRules
from twinlake.compat import COMPATS, VERSION_TAG
from twinlake.errors import CompatViolation, ConflictError
from twinlake.protocol import Metadata, Protocol
from twinlake.runtime import Runtime

if TYPE_CHECKING:
    from pathlib import Path

    from twinlake.actions import AddFile

T = TypeVar("T")
R = TypeVar("R")

V1, V2, V3, W1, W3 = (row.key for row in COMPATS.values())
MODE = "delta.columnMapping.mode"
ROWS = [{"id": 1, "name": "a"}]


@dataclass
class Counting:
    """Runs everything here and counts the files it was asked about."""

    files: list[str] = field(default_factory=list)

    def map(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        for item in items:
            batch: Any = item
            self.files += [path for path, _ in batch]
            yield fn(item)


def with_flags(*keys: str) -> Metadata:
    return metadata(dict.fromkeys(keys, "true"))


COMPAT_CHANGES: list[tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, str, str]]] = [
    ("none", (), (), ("", "", "")),
    ("made", (), (V2,), ("icebergCompatV2", "", "")),
    ("kept", (V2,), (V2,), ("", "icebergCompatV2", "")),
    ("taken-back", (V2,), (), ("", "", "icebergCompatV2")),
    ("exchanged", (V1,), (V2,), ("icebergCompatV2", "", "icebergCompatV1")),
    ("base-goes-with-the-writers", (), (W1, V2), ("icebergWriterCompatV1", "", "")),
    ("writers-on-top", (V2,), (W1, V2), ("icebergWriterCompatV1", "", "")),
    ("writers-off", (W1, V2), (V2,), ("", "icebergCompatV2", "icebergWriterCompatV1")),
    ("base-off", (W1, V2), (W1,), ("", "icebergWriterCompatV1", "icebergCompatV2")),
    ("two-bases", (V2,), (V2, V3), ("icebergCompatV3", "icebergCompatV2", "")),
]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [row[1:] for row in COMPAT_CHANGES],
    ids=[row[0] for row in COMPAT_CHANGES],
)
def test_what_happens_to_compat_features(
    before: tuple[str, ...], after: tuple[str, ...], expected: tuple[str, str, str]
) -> None:
    found = CompatChange.of(change(with_flags(*after), on=base(meta=with_flags(*before))))
    names = [
        ",".join(c.feature for c in part) for part in (found.enabled, found.kept, found.disabled)
    ]
    assert tuple(names) == expected
    assert bool(found) == any(expected)


def test_first_version_enables_its_features() -> None:
    new = replace(base(meta=Metadata()), version=-1)
    assert [c.feature for c in CompatChange.of(change(with_flags(V2), on=new)).enabled] == [
        "icebergCompatV2"
    ]


def test_table_in_the_place_of_another_makes_them_anew() -> None:
    on = base(meta=with_flags(V2))
    draft = change(with_flags(V2), on=on, operation="REPLACE TABLE")
    assert [c.feature for c in CompatChange.of(draft).enabled] == ["icebergCompatV2"]


def test_tables_without_compat_features_have_no_rules() -> None:
    draft = change(add("f", rows=None), metadata(), Protocol(1, 2))
    assert compat_refusal(draft, CompatFiles(adds=(add("f", rows=None),), vectors=9)) is None


@pytest.mark.parametrize(
    ("key", "mode"),
    [
        ("delta.appendOnly", Mode.DELETION_VECTORS),
        (V1, Mode.COPY_ON_WRITE),
        (V2, Mode.COPY_ON_WRITE),
        (V3, Mode.DELETION_VECTORS),
        (W1, Mode.COPY_ON_WRITE),
        (W3, Mode.DELETION_VECTORS),
    ],
)
def test_rows_leave_without_vectors_where_these_are_forbidden(key: str, mode: Mode) -> None:
    assert TableRules.of(with_flags(key, "delta.enableDeletionVectors")).mode is mode


# What is read


def compat_table(folder: Path, key: str = W1, **more: str) -> Table:
    return Table.create(folder, "id INT, name STRING", (), {key: True, **more}, durable=False)


def committed(
    table: Table, *actions: Any, trusted: bool = False, operation: str = "WRITE"
) -> tuple[Table, list[str]]:
    """The table after a commit, and the files that were looked into for it."""
    executor = Counting()
    transaction = Transaction(
        table.snapshot,
        Operation(name=operation),
        Runtime(executor=executor),
        options=CommitOptions(trusted_files=trusted),
    )
    transaction.add(*actions).commit()
    return table.refresh(), executor.files


def test_footers_of_strange_files_are_read(tmp_path: Path) -> None:
    table = compat_table(tmp_path)
    one, other = (write_file(table, tmp_path, ROWS) for _ in range(2))
    table, seen = committed(table, one)
    assert seen == [one.path]
    assert committed(table, other, trusted=True)[1] == []


def test_files_of_the_table_are_not_read_again(tmp_path: Path) -> None:
    table = compat_table(tmp_path)
    old = write_file(table, tmp_path, ROWS)
    table, _ = committed(table, old)
    tagged = msgspec.structs.replace(old, data_change=False, tags={VERSION_TAG: "2"})
    table, seen = committed(table, tagged, operation="MANUAL UPDATE")
    assert seen == []
    assert [a.tags for a in table.snapshot.adds()] == [{VERSION_TAG: "2"}]


def test_table_without_compat_feature_reads_nothing(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id INT, name STRING", durable=False)
    nowhere = msgspec.structs.replace(write_file(table, tmp_path, ROWS), path="nowhere")
    assert committed(table, nowhere)[1] == []


def test_enabling_reads_every_live_file_once(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id INT, name STRING", (), {MODE: "name"}, durable=False)
    files = [write_file(table, tmp_path, ROWS) for _ in range(3)]
    table, _ = committed(table, *files)
    gone = files[0].remove(deletion_timestamp=1)
    flag = table.metadata.with_configuration({V1: "true"})
    new = write_file(table, tmp_path, ROWS)
    _, seen = committed(table, flag, gone, new, trusted=True)
    assert sorted(seen) == sorted(file.path for file in files[1:])


def test_files_are_not_read_again_after_a_lost_version(tmp_path: Path) -> None:
    table = compat_table(tmp_path)
    mine, theirs = (write_file(table, tmp_path, ROWS) for _ in range(2))
    committed(table, theirs)
    after, seen = committed(table, mine)
    assert (after.version, seen) == (2, [mine.path])


def test_stale_enabling_meets_a_removal(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id INT, name STRING", (), {MODE: "name"}, durable=False)
    file = write_file(table, tmp_path, ROWS)
    table, _ = committed(table, file)
    committed(table, file.remove(deletion_timestamp=1), operation="DELETE")
    with pytest.raises(ConflictError) as caught:
        table.set_properties({V1: True})
    assert caught.value.rule == "OCC-08"


# What is judged


def test_new_violations_only(tmp_path: Path) -> None:
    """A table that broke a rule before takes everything that breaks none anew."""
    table = compat_table(tmp_path)
    broken = table.metadata.with_configuration({"delta.enableChangeDataFeed": "true"})
    options = CommitOptions(checks=())
    Transaction(table.snapshot, Operation(name="OTHER"), options=options).add(broken).commit()
    table = table.refresh()
    assert [v.rule for v in table.check("icebergWriterCompatV1").violations] == ["IWC1-12"]
    table = table.set_properties({"team": "orders"})
    with pytest.raises(CompatViolation) as caught:
        table.add_column("b TINYINT")
    assert {v["rule"] for v in caught.value.report["violations"]} == {"IWC1-07"}
    # Made again, everything counts.
    table = table.set_properties({W1: False})
    with pytest.raises(CompatViolation) as caught:
        table.set_properties({W1: True})
    assert {v["rule"] for v in caught.value.report["violations"]} == {"IWC1-12"}


def test_profile_of_the_table_counts(tmp_path: Path) -> None:
    strict, lenient = (
        compat_table(tmp_path / name, **{"twinlake.compat.profile": name})
        for name in ("spec", "kernel")
    )
    with pytest.raises(CompatViolation):
        strict.add_feature("typeWidening-preview")
    assert lenient.add_feature("typeWidening-preview").version == 1


def test_the_kernel_enables_and_disables_only_new_tables(tmp_path: Path) -> None:
    table = compat_table(tmp_path, **{"twinlake.compat.profile": "kernel"})
    with pytest.raises(CompatViolation) as caught:
        table.set_properties({W1: False})
    assert {v["rule"] for v in caught.value.report["violations"]} == {"IWC1-19"}
    # By the protocol alone it may.
    assert table.set_properties({"twinlake.compat.profile": "spec", W1: False}).version == 1


def test_report_names_table_operation_and_rule(tmp_path: Path) -> None:
    table = compat_table(tmp_path)
    with pytest.raises(CompatViolation) as caught:
        table.add_column("b TINYINT")
    error = caught.value
    assert error.what.startswith("ADD COLUMNS would break")
    assert error.rule == "IWC1-07"
    assert error.fix
    assert error.report["compat"] == "icebergWriterCompatV1"
    assert error.report["violations"][0]["path"] == "b"
    assert {"IWC1-07", "IWC1-09", "ICV2-14"} <= set(error.report["rules"])


def test_rehearsal_commits_nothing(tmp_path: Path) -> None:
    table = compat_table(tmp_path)
    file: AddFile = write_file(table, tmp_path, ROWS)
    bare = msgspec.structs.replace(file, stats=None)
    transaction = Transaction(table.snapshot, Operation(name="WRITE")).add(bare)
    with pytest.raises(CompatViolation):
        transaction.check_compat()
    Transaction(table.snapshot, Operation(name="WRITE")).add(file).check_compat()
    assert table.refresh().version == 0
