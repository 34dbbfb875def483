from __future__ import annotations

import pytest

from twinlake.actions import AddFile, DeletionVectorDescriptor, RemoveFile
from twinlake.commit.plans import VacuumMode, VacuumPlan, VacuumRules, plan_vacuum
from twinlake.errors import Code, UserError
from twinlake.storage.interface import ObjectMeta

NOW, RETENTION = 1_000, 100


def add(path: str, vector: DeletionVectorDescriptor | None = None) -> AddFile:
    return AddFile(
        path=path,
        partition_values={},
        size=1,
        modification_time=0,
        data_change=True,
        deletion_vector=vector,
    )


def removed(path: str, at: int | None, vector: str | None = None) -> RemoveFile:
    return RemoveFile(
        path=path,
        data_change=True,
        deletion_timestamp=at,
        size=7,
        deletion_vector=dv(vector) if vector else None,
    )


def dv(name: str, kind: str = "u") -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor(kind, name, 3, 1, None if kind == "i" else 1)


def vector_path(vector: DeletionVectorDescriptor) -> str | None:
    return None if vector.storage_type == "i" else f"dv_{vector.path_or_inline_dv}.bin"


def plan(
    *keys: str,
    live: tuple[AddFile, ...] = (),
    tombstones: tuple[RemoveFile, ...] = (),
    modified: int = 0,
    rules: VacuumRules | None = None,
) -> VacuumPlan:
    return plan_vacuum(
        live=live,
        tombstones=tombstones,
        listing=[ObjectMeta(key, 2, modified) for key in keys],
        vector_path=vector_path,
        rules=rules or VacuumRules(retention_ms=RETENTION, tombstone_retention_ms=RETENTION),
        now=NOW,
    )


@pytest.mark.parametrize(
    ("key", "goes"),
    [
        ("_twinlake_staging-1/part-0.parquet", True),
        ("_twinlake_staging-1/_temporary/0/.part-0.parquet.crc", True),
        ("_twinlake_staging-1", False),
        ("a/_twinlake_staging-1/part-0.parquet", False),
        (".15223faf2fdf2e79.tmp", True),
        ("p=1/.15223faf2fdf2e79.tmp", True),
        ("_delta_log/.15223faf2fdf2e79.tmp", False),
        (".mine.tmp", False),
        ("a.parquet", True),
        ("p=1/a.parquet", True),
        ("_change_data/cdc.parquet", True),
        ("_change_data/_p=1/cdc.parquet", True),
        ("_delta_index/x", True),
        ("_p=1/a.parquet", True),
        ("_q=1/a.parquet", False),
        ("_delta_log/00.json", False),
        ("_iceberg/metadata/v1.metadata.json", False),
        ("metadata/v1.metadata.json", False),
        ("data/metadata/a.parquet", True),
        ("_a.parquet", False),
        (".a.parquet.crc", False),
        ("p=1/.hidden/a", False),
        ("keep/a", False),
        ("../other/a", False),
        ("a/../../b", False),
        ("/abs/a", False),
        ("a//b", False),
        ("inner/_delta_log/0.json", False),
        ("inner/part", False),
        ("inner/deep/part", False),
        ("innermost/part", True),
    ],
)
def test_which_places_belong_to_data(key: str, goes: bool) -> None:
    rules = VacuumRules(
        retention_ms=RETENTION,
        tombstone_retention_ms=RETENTION,
        partition_columns=("p", "_p"),
        protected=frozenset({"keep"}),
    )
    assert (key in plan(key, "inner/_delta_log/0.json", rules=rules).delete) is goes


@pytest.mark.parametrize(
    ("modified", "goes"), [(899, True), (900, False), (2_000, False)], ids=["old", "edge", "young"]
)
def test_age_of_orphans(modified: int, goes: bool) -> None:
    assert bool(plan("a", modified=modified).delete) is goes


@pytest.mark.parametrize(
    ("at", "goes"),
    [(899, True), (900, False), (None, True)],
    ids=["expired", "edge", "no-timestamp"],
)
def test_age_of_tombstones(at: int | None, goes: bool) -> None:
    found = plan("a", "dv_x.bin", tombstones=(removed("a", at, "x"),))
    assert found.delete == (("a", "dv_x.bin") if goes else ())
    assert found.metrics == {
        "numFilesToDelete": "2" if goes else "0",
        "sizeOfDataToDelete": "4" if goes else "0",
    }


def test_a_path_live_under_any_vector_stays_and_old_vectors_go() -> None:
    found = plan(
        "a",
        "dv_1.bin",
        "dv_2.bin",
        "dv_3.bin",
        live=(add("a", dv("3")),),
        tombstones=(removed("a", 1), removed("a", 2, "1"), removed("a", 950, "2")),
    )
    assert found.delete == ("dv_1.bin",)


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("p=a%20b/f", "p=a b/f"),
        ("p=a%2520b/f", "p=a%20b/f"),
        ("p=a%20b/f", "p=a%20b/f"),
        ("./a", "a"),
        ("file:/tables/t/a", "a"),
        ("s3a://bucket/tables/t/p=1/a", "p=1/a"),
        ("/tables/t/a%20b", "a b"),
    ],
)
def test_every_spelling_of_a_live_path_protects(path: str, key: str) -> None:
    assert plan(key, live=(add(path),)).delete == ()
    assert plan(key, tombstones=(removed(path, 950),)).delete == ()


def test_inline_vectors_name_no_file() -> None:
    assert plan("dv_x.bin", live=(add("a", dv("x", "i")),)).delete == ("dv_x.bin",)


def test_lite_looks_at_the_log_alone() -> None:
    rules = VacuumRules(
        retention_ms=RETENTION, tombstone_retention_ms=RETENTION, mode=VacuumMode.LITE
    )
    found = plan(
        "orphan",
        live=(add("back"),),
        tombstones=(
            removed("a%20b", 1, "x"),
            removed("young", 950),
            removed("back", 1, "old"),
            removed("s3://elsewhere/c", 1),
            removed("../c", 1),
            removed("/c", 1),
            removed("_delta_log/0.json", 1),
        ),
        rules=rules,
    )
    assert found.delete == ("a b", "dv_old.bin", "dv_x.bin")
    assert found.delete_bytes == 7 + 3 + 3


def test_short_retention_is_refused_unless_forced() -> None:
    short = VacuumRules(retention_ms=1, tombstone_retention_ms=RETENTION)
    with pytest.raises(UserError) as caught:
        plan("a", rules=short)
    assert caught.value.code is Code.INVALID_ARGUMENT
    assert caught.value.fields["tombstone_retention_ms"] == RETENTION
    forced = VacuumRules(retention_ms=1, tombstone_retention_ms=RETENTION, force=True)
    assert plan("a", rules=forced).delete == ("a",)
    with pytest.raises(UserError, match="negative"):
        plan("a", rules=VacuumRules(retention_ms=-1, tombstone_retention_ms=0, force=True))
