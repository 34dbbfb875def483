"""Ids that follow from the table and the version, and lead back to the version."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twinlake.iceberg.derive.snapshot_id import snapshot_id, version_of

VERSIONS = st.integers(min_value=0, max_value=2**40 - 1)


@given(table=st.text(), version=VERSIONS)
def test_the_version_can_be_told_from_the_id(table: str, version: int) -> None:
    found = snapshot_id(table, version)

    assert 0 < found < 2**63
    assert version_of(table, found) == version


@given(table=st.text(), versions=st.sets(VERSIONS, min_size=2))
def test_versions_of_a_table_never_share_an_id(table: str, versions: set[int]) -> None:
    assert len({snapshot_id(table, version) for version in versions}) == len(versions)


def test_ids_of_other_tables_are_not_taken_for_versions() -> None:
    foreign = [version_of("one", snapshot_id("other", version)) for version in range(1000)]

    assert foreign == [None] * 1000
    assert version_of("one", 7) is None
