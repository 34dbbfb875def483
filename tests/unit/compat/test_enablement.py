"""What a writer sets by itself for a table that has compat features, and what it leaves alone."""

from __future__ import annotations

import pytest

from twinlake.compat import (
    COMPATS,
    Profile,
    has_compat_keys,
    is_uniform,
    profile_of,
    require_compat_for_uniform,
    with_compat_properties,
)
from twinlake.compat.column_mapping import needs_id_names, needs_nested_ids
from twinlake.errors import CompatViolation, UserError
from twinlake.protocol import Metadata

V1, V2, V3, W1, W3 = (row.key for row in COMPATS.values())
MODE = "delta.columnMapping.mode"
TRACKING = "delta.enableRowTracking"
FORMATS = "delta.universalFormat.enabledFormats"
ATOMIC = "delta.universalFormat.iceberg.atomicConversion.supported"


def table(configuration: dict[str, str]) -> Metadata:
    return Metadata(configuration=configuration)


NEW: list[tuple[str, dict[str, str], dict[str, str]]] = [
    ("nothing", {"delta.appendOnly": "true"}, {}),
    ("off", {W1: "false", V2: "false"}, {}),
    ("nonsense-is-off", {W1: "yes"}, {}),
    ("v1", {V1: "true"}, {MODE: "name"}),
    ("v2", {V2: "true"}, {MODE: "name"}),
    ("v2-in-id-mode", {V2: "true", MODE: "id"}, {}),
    ("v3", {V3: "true"}, {MODE: "name", TRACKING: "true"}),
    ("w1", {W1: "true"}, {MODE: "id", V2: "true"}),
    ("w1-any-case", {W1: "TRUE"}, {MODE: "id", V2: "true"}),
    ("w1-with-its-base", {W1: "true", V2: "true"}, {MODE: "id"}),
    ("w3", {W3: "true"}, {MODE: "id", V3: "true", TRACKING: "true"}),
    ("w1-in-name-mode", {W1: "true", MODE: "name"}, {V2: "true"}),
    ("w1-without-its-base", {W1: "true", V2: "false"}, {MODE: "id"}),
    ("v3-without-row-tracking", {V3: "true", TRACKING: "false"}, {MODE: "name"}),
    ("uniform", {V2: "true", FORMATS: "iceberg"}, {MODE: "name", ATOMIC: "true"}),
    ("uniform-not-atomic", {V2: "true", FORMATS: "iceberg", ATOMIC: "false"}, {MODE: "name"}),
    ("hudi-only", {V2: "true", FORMATS: "hudi"}, {MODE: "name"}),
]


@pytest.mark.parametrize(("asked", "added"), [row[1:] for row in NEW], ids=[row[0] for row in NEW])
def test_new_table(asked: dict[str, str], added: dict[str, str]) -> None:
    metadata = with_compat_properties(None, table(asked))
    assert metadata.configuration == {**asked, **added}
    assert with_compat_properties(None, metadata) == metadata


EXISTING: list[tuple[str, dict[str, str], dict[str, str], dict[str, str]]] = [
    ("v2-leaves-the-mode", {}, {V2: "true"}, {V2: "true"}),
    ("w1-leaves-mode-and-base", {}, {W1: "true"}, {W1: "true"}),
    ("v3-tracks-rows", {MODE: "name"}, {V3: "true"}, {V3: "true", TRACKING: "true", MODE: "name"}),
    (
        "v3-tracks-rows-that-it-did-not",
        {MODE: "name", TRACKING: "false"},
        {V3: "true"},
        {V3: "true", TRACKING: "true", MODE: "name"},
    ),
    (
        "v3-is-told-not-to",
        {MODE: "name"},
        {V3: "true", TRACKING: "false"},
        {V3: "true", TRACKING: "false", MODE: "name"},
    ),
    (
        "off-takes-iceberg-along",
        {V2: "true", MODE: "name", FORMATS: "iceberg"},
        {V2: "false"},
        {V2: "false", MODE: "name"},
    ),
    (
        "off-leaves-other-formats",
        {V2: "true", MODE: "name", FORMATS: "hudi, Iceberg"},
        {V2: "false"},
        {V2: "false", MODE: "name", FORMATS: "hudi"},
    ),
    (
        "another-version-keeps-iceberg",
        {V1: "true", MODE: "name", FORMATS: "iceberg"},
        {V1: "false", V2: "true"},
        {V1: "false", V2: "true", MODE: "name", FORMATS: "iceberg"},
    ),
    (
        "uniform-later-is-not-said-to-be-atomic",
        {V2: "true", MODE: "name"},
        {FORMATS: "iceberg"},
        {V2: "true", MODE: "name", FORMATS: "iceberg"},
    ),
]


@pytest.mark.parametrize(
    ("before", "said", "after"), [row[1:] for row in EXISTING], ids=[row[0] for row in EXISTING]
)
def test_existing_table(
    before: dict[str, str], said: dict[str, str], after: dict[str, str]
) -> None:
    old = table(before)
    assert (
        with_compat_properties(old, old.with_configuration(said), given=said).configuration == after
    )


def test_what_was_said_again_counts_as_said() -> None:
    old = table({MODE: "name", TRACKING: "false"})
    said = {V3: "true", TRACKING: "false"}
    assert not with_compat_properties(old, old.with_configuration(said), given=said).flag(TRACKING)


@pytest.mark.parametrize("before", [None, table({}), table({FORMATS: "hudi"})])
def test_iceberg_needs_a_compat_feature(before: Metadata | None) -> None:
    with pytest.raises(CompatViolation) as caught:
        with_compat_properties(before, table({FORMATS: "iceberg"}))
    expected = "DELTA_UNIVERSAL_FORMAT_VIOLATION.ICEBERG_COMPAT_REQUIRED"
    assert caught.value.delta_class == expected
    assert V2 in caught.value.fix


def test_a_table_that_was_like_that_is_not_locked() -> None:
    bare = table({FORMATS: "iceberg"})
    changed = bare.with_configuration({"team": "orders"})
    require_compat_for_uniform(bare, changed)
    assert with_compat_properties(bare, changed) == changed
    # Whoever disables the feature without its format is refused where nobody mends it.
    with pytest.raises(CompatViolation):
        require_compat_for_uniform(table({V2: "true", FORMATS: "iceberg"}), bare)


@pytest.mark.parametrize(
    ("key", "nested", "by_id"),
    [(V1, False, False), (V2, True, False), (V3, True, False), (W1, True, True), (W3, True, True)],
)
def test_what_columns_need(key: str, nested: bool, by_id: bool) -> None:
    on, off = table({key: "true"}), table({key: "false"})
    assert (needs_nested_ids(on), needs_id_names(on)) == (nested, by_id)
    assert (needs_nested_ids(off), needs_id_names(off)) == (False, False)
    assert has_compat_keys(on)
    assert not has_compat_keys(table({"delta.appendOnly": "true"}))


@pytest.mark.parametrize(
    ("text", "profile"),
    [
        (None, Profile.SPEC),
        ("kernel", Profile.KERNEL),
        (" Spark ", Profile.SPARK),
        ("whatever", Profile.SPEC),
    ],
)
def test_profile_of_a_table(text: str | None, profile: Profile) -> None:
    assert profile_of(table({} if text is None else {"twinlake.compat.profile": text})) is profile


def test_unknown_profile_cannot_be_chosen() -> None:
    unknown = table({"twinlake.compat.profile": "whatever"})
    with pytest.raises(UserError, match="cannot be 'whatever'"):
        with_compat_properties(None, unknown)
    # A table that has it from elsewhere is judged by the strictest and not locked.
    assert with_compat_properties(unknown, unknown.with_configuration({"team": "orders"}))


def test_formats_are_read_as_delta_reads_them() -> None:
    assert is_uniform(table({FORMATS: " ICEBERG ,hudi"}))
    assert not is_uniform(table({FORMATS: "icebergish"}))
