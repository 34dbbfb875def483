"""What a table may ask for on its Iceberg side."""

from __future__ import annotations

import pytest

from twinlake.errors import Code, UserError
from twinlake.protocol import (
    ICEBERG_PREFIX,
    Metadata,
    canonical_key,
    check_iceberg_properties,
    is_reserved_for_iceberg,
    parse_properties,
    requested_iceberg_properties,
)

WEEK = 7 * 24 * 60 * 60 * 1000
KEPT = [
    "twinlake.leftovers",
    "Twinlake.Leftovers",
    " twinlake.leftovers",
    "delta-version",
    "delta-commit",
    "delta.appendOnly",
    "base-delta-version",
    "schema.name-mapping.default",
    "format-version",
    "write.metadata.path",
    "write.data.path",
    "write.format.default",
    "uuid",
    "gc.enabled",
    "encryption.key-id",
]


def test_wishes_are_taken_and_spelt_in_one_way() -> None:
    given = {
        "delta.universalformat.CONFIG.iceberg.write.distribution-mode": "hash",
        f"{ICEBERG_PREFIX}owner.Of.it": "x",
        f"{ICEBERG_PREFIX}commit.retry.num-retries": 3,
    }
    assert parse_properties(given) == {
        f"{ICEBERG_PREFIX}write.distribution-mode": "hash",
        f"{ICEBERG_PREFIX}owner.Of.it": "x",
        f"{ICEBERG_PREFIX}commit.retry.num-retries": "3",
    }
    assert canonical_key(ICEBERG_PREFIX.upper() + "A.b") == f"{ICEBERG_PREFIX}A.b"


@pytest.mark.parametrize("name", KEPT)
def test_what_the_face_says_itself_is_kept(name: str) -> None:
    assert is_reserved_for_iceberg(name)
    assert requested_iceberg_properties({f"{ICEBERG_PREFIX}{name}": "x"}) == {}
    with pytest.raises(UserError) as caught:
        parse_properties({f"{ICEBERG_PREFIX}{name}": "x"})
    assert caught.value.code is Code.PROPERTY_INVALID


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("write.metadata.previous-versions-max", "many"),
        ("write.metadata.previous-versions-max", "-5"),
        ("write.metadata.previous-versions-max", "0"),
        ("write.metadata.previous-versions-max", "²"),
        ("write.metadata.previous-versions-max", "9" * 30),
        ("history.expire.max-snapshot-age-ms", "a week"),
        ("history.expire.min-snapshots-to-keep", "0"),
        ("commit.retry.num-retries", "-1"),
        ("commit.retry.total-timeout-ms", str(2**31)),
        ("read.split.target-size", "128mb"),
        ("write.parquet.compression-codec", "best"),
        ("write.delete.mode", "never"),
        ("write.object-storage.enabled", "perhaps"),
        ("", "x"),
    ],
)
def test_values_that_readers_would_stumble_over(name: str, value: str) -> None:
    assert requested_iceberg_properties({f"{ICEBERG_PREFIX}{name}": value}) == {}
    with pytest.raises(UserError):
        parse_properties({f"{ICEBERG_PREFIX}{name}": value})


def test_all_that_is_wrong_is_told_at_once() -> None:
    wrong = {f"{ICEBERG_PREFIX}{name}": "x" for name in ("uuid", "twinlake.leftovers", "fine")}
    with pytest.raises(UserError) as caught:
        parse_properties({**wrong, "delta.nope": "1"})
    assert caught.value.fields["properties"] == [
        f"{ICEBERG_PREFIX}uuid",
        f"{ICEBERG_PREFIX}twinlake.leftovers",
        "delta.nope",
    ]


def wishing(**more: str) -> Metadata:
    return Metadata(
        configuration={
            f"{ICEBERG_PREFIX}history.expire.max-snapshot-age-ms": str(WEEK + 1),
            f"{ICEBERG_PREFIX}write.merge.mode": "merge-on-read",
            **more,
        }
    )


def test_history_is_no_longer_than_that_of_delta() -> None:
    age = f"{ICEBERG_PREFIX}history.expire.max-snapshot-age-ms"
    with pytest.raises(UserError, match=f"at most {WEEK}") as caught:
        check_iceberg_properties(wishing(), [age])
    assert caught.value.fields["properties"] == [age]

    longer = "interval 8 days"
    check_iceberg_properties(wishing(**{"delta.deletedFileRetentionDuration": longer}), [age])
    # What is there already is not looked at again.
    check_iceberg_properties(wishing(), ["owner"])


def test_format_2_deletes_by_copying() -> None:
    mode = f"{ICEBERG_PREFIX}write.merge.mode"
    with pytest.raises(UserError, match="copy-on-write"):
        check_iceberg_properties(wishing(**{"delta.enableIcebergCompatV2": "true"}), [mode])
    check_iceberg_properties(wishing(**{"delta.enableIcebergCompatV3": "true"}), [mode])
    check_iceberg_properties(wishing(), [mode])
