"""Laws of the protocol's arithmetic."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from twinlake.protocol import (
    FEATURES,
    POLICIES,
    Metadata,
    Policy,
    Protocol,
    auto_enabled_features,
    dependency_closure,
    read_blockers,
    write_blockers,
)

LAWS = settings(max_examples=80, deadline=None)
UNKNOWN = ("mystery", "quantum-preview", "Zeta_2")

known = st.frozensets(st.sampled_from(sorted(FEATURES)), max_size=8)
strangers = st.frozensets(st.sampled_from(UNKNOWN), max_size=2)
legacy = st.builds(Protocol, st.integers(1, 2), st.integers(1, 6))


@st.composite
def listed(draw: st.DrawFn) -> Protocol:
    names = draw(known) | draw(strangers)
    reader = draw(st.sampled_from([1, 2, 3]))
    if reader < 3:
        # A native reader feature has no place below reader version 3.
        names -= {n for n, row in FEATURES.items() if row.is_reader and not row.legacy}
        if reader < 2:
            names -= {"columnMapping"}
        return Protocol(reader, 7, None, names)
    unknown_readers = draw(strangers)
    readers = {n for n in names if n in FEATURES and FEATURES[n].is_reader} | unknown_readers
    return Protocol(3, 7, readers, names | unknown_readers)


protocols = st.one_of(legacy, listed())
switches = st.dictionaries(
    st.sampled_from(
        [
            "delta.appendOnly",
            "delta.enableChangeDataFeed",
            "delta.enableDeletionVectors",
            "delta.enableRowTracking",
            "delta.enableIcebergCompatV2",
            "delta.enableTypeWidening",
            "delta.enableInCommitTimestamps",
        ]
    ),
    st.sampled_from(["true", "false"]),
)
metadatas = st.builds(lambda configuration: Metadata(configuration=configuration), switches)
policies = st.sampled_from(list(POLICIES.values()))


@LAWS
@given(protocols)
def test_normal_forms_are_idempotent(p: Protocol) -> None:
    assert p.normalized().normalized() == p.normalized()
    once = p.denormalized().normalized()
    assert once.denormalized().normalized() == once


@LAWS
@given(protocols)
def test_normal_forms_keep_what_is_supported(p: Protocol) -> None:
    for form in (p.normalized(), p.denormalized(), p.denormalized().normalized()):
        assert form.feature_names == p.feature_names
        assert form.supported_features == p.supported_features


@LAWS
@given(protocols)
def test_normal_forms_ask_the_same_of_clients(p: Protocol) -> None:
    form = p.denormalized().normalized()
    assert form.writer_requirements == p.writer_requirements
    assert form.reader_requirements == p.reader_requirements


@LAWS
@given(protocols, protocols, protocols)
def test_merge_is_a_semilattice(a: Protocol, b: Protocol, c: Protocol) -> None:
    assert a.merge(b) == b.merge(a)
    assert a.merge(b).merge(c) == a.merge(b.merge(c)) == a.merge(b, c)
    assert a.merge(a).feature_names == a.feature_names


@LAWS
@given(protocols, protocols)
def test_merge_supports_both_and_no_more(a: Protocol, b: Protocol) -> None:
    merged = a.merge(b)
    assert merged.feature_names == a.feature_names | b.feature_names
    assert a.can_upgrade_to(merged)
    assert b.can_upgrade_to(merged)
    merged.check_storable()


@LAWS
@given(known, st.frozensets(st.sampled_from(sorted(FEATURES)), max_size=3))
def test_closure_is_a_closure(names: frozenset[str], more: frozenset[str]) -> None:
    closed = dependency_closure(names)
    assert names <= closed
    assert dependency_closure(closed) == closed
    assert closed <= dependency_closure(names | more)


@LAWS
@given(protocols)
def test_text_round_trip(p: Protocol) -> None:
    assert Protocol.from_dict(p.to_dict()) == p


@LAWS
@given(protocols, st.sampled_from(sorted(FEATURES)))
def test_adding_then_removing(p: Protocol, name: str) -> None:
    added = p.with_added([name], policy="minimal")
    assert dependency_closure([name]) <= added.feature_names
    removed = added.remove_feature(name)
    assert removed.feature_names == added.feature_names - {name}
    assert added.can_downgrade_to(removed, [name])


@LAWS
@given(protocols, metadatas, policies)
def test_upgrades_suffice_and_settle(p: Protocol, metadata: Metadata, policy: Policy) -> None:
    upgraded = p.upgraded_for(metadata, policy=policy)
    assert p.can_upgrade_to(upgraded)
    assert auto_enabled_features(metadata, upgraded.feature_names) <= upgraded.feature_names
    assert upgraded.upgraded_for(metadata, policy=policy) == upgraded
    upgraded.check_storable()
    upgraded.check_metadata(metadata)


@LAWS
@given(metadatas, policies)
def test_new_tables_are_storable_and_complete(metadata: Metadata, policy: Policy) -> None:
    fresh = Protocol.for_new_table(metadata, policy=policy)
    fresh.check_storable()
    assert fresh.upgraded_for(metadata, policy=policy) == fresh
    assert auto_enabled_features(metadata) <= fresh.feature_names


@LAWS
@given(metadatas)
def test_minimal_never_supports_more_than_bundled(metadata: Metadata) -> None:
    minimal = Protocol.for_new_table(metadata, policy="minimal")
    assert minimal.can_upgrade_to(Protocol.for_new_table(metadata, policy="bundled"))


@LAWS
@given(protocols, known)
def test_gates_name_exactly_what_is_lacking(p: Protocol, client: frozenset[str]) -> None:
    assert set(read_blockers(p, client)) == p.reader_requirements - client
    assert set(write_blockers(p, client)) == p.writer_requirements - client
    assert not write_blockers(p, client | p.feature_names)
