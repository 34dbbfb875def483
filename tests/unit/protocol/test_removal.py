"""Dropping features: refusals in Delta's order, plans as data."""

from __future__ import annotations

import pytest

from twinlake.errors import Code, UserError
from twinlake.protocol import FEATURES, Metadata, PreDowngrade, Protocol, plan_drop
from twinlake.schema import INTEGER, Geometry, Struct, StructField

VECTORS = Protocol(3, 7, {"deletionVectors"}, {"deletionVectors", "appendOnly", "invariants"})
TRACKED = Protocol(1, 7, None, {"rowTracking", "domainMetadata"})
SHAPES = Metadata().with_schema(Struct((StructField("place", Geometry()),)))


@pytest.mark.parametrize(
    ("protocol", "metadata", "name", "truncate", "delta_class"),
    [
        (
            VECTORS,
            Metadata(),
            "delta.enableDeletionVectors",
            False,
            "DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY",
        ),
        (
            VECTORS,
            Metadata(),
            "delta.whatever",
            False,
            "DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY",
        ),
        (VECTORS, Metadata(), "rowTracking", False, "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"),
        # Absent goes before not removable.
        (VECTORS, Metadata(), "timestampNtz", False, "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"),
        (VECTORS, Metadata(), "appendOnly", True, "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"),
        (VECTORS, Metadata(), "warp", True, "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE"),
        (
            TRACKED,
            Metadata(),
            "domainMetadata",
            True,
            "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED",
        ),
        (TRACKED, Metadata(), "domainMetadata", False, "DELTA_FEATURE_DROP_DEPENDENT_FEATURE"),
        (
            Protocol(1, 3),
            Metadata(configuration={"delta.constraints.c1": "a > 0"}),
            "checkConstraints",
            False,
            "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE",
        ),
        (
            Protocol(3, 7, {"geospatial"}, {"geospatial"}),
            SHAPES,
            "geospatial",
            False,
            "DELTA_CANNOT_DROP_GEOSPATIAL_FEATURE",
        ),
        (
            Protocol(1, 7, None, {"checkpointProtection"}),
            Metadata(),
            "checkpointProtection",
            False,
            "DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION",
        ),
        (
            Protocol(3, 7, (), ()).with_feature("catalogManaged"),
            Metadata(),
            "catalogManaged",
            False,
            None,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refusals(
    protocol: Protocol, metadata: Metadata, name: str, truncate: bool, delta_class: str | None
) -> None:
    with pytest.raises(UserError) as caught:
        plan_drop(protocol, metadata, name, truncate_history=truncate)
    assert caught.value.code is Code.FEATURE_DROP
    assert caught.value.delta_class == delta_class


def test_refusals_name_what_is_in_the_way() -> None:
    metadata = Metadata(configuration={"delta.constraints.b": "x", "delta.constraints.a": "y"})
    with pytest.raises(UserError) as constraints:
        plan_drop(Protocol(1, 3), metadata, "checkConstraints")
    assert constraints.value.fields["offenders"] == ["a", "b"]
    with pytest.raises(UserError) as dependents:
        plan_drop(TRACKED, Metadata(), "domainMetadata")
    assert dependents.value.fields["dependents"] == ["rowTracking"]


def test_fast_drop_protects_history() -> None:
    metadata = Metadata(configuration={"delta.enableDeletionVectors": "true"})
    plan = plan_drop(VECTORS, metadata, "deletionvectors")
    assert plan.feature == "deletionVectors"
    assert plan.protocol == Protocol(
        1, 7, None, {"appendOnly", "invariants", "checkpointProtection"}
    )
    assert VECTORS.can_downgrade_to(plan.protocol, [plan.feature])
    assert plan.pre_downgrade is PreDowngrade.PURGE_DELETION_VECTORS
    assert plan.needs_rewrite
    assert plan.barriers == 3
    prepared = plan.prepare(metadata)
    assert prepared.configuration == {}
    assert plan.downgrade(prepared, version=9).configuration == {
        "delta.requireCheckpointProtectionBeforeVersion": "9"
    }


def test_drop_with_truncation_lowers_all_the_way() -> None:
    plan = plan_drop(VECTORS, Metadata(), "deletionVectors", truncate_history=True)
    assert plan.protocol == Protocol(1, 2)
    assert plan.barriers == 1
    assert not plan.protects_history


def test_row_tracking_leaves_properties_and_domain_behind() -> None:
    metadata = Metadata(
        configuration={
            "delta.enableRowTracking": "true",
            "delta.rowTracking.materializedRowIdColumnName": "_row-id",
            "owner": "me",
        }
    )
    plan = plan_drop(TRACKED, metadata, "rowTracking")
    assert plan.prepare(metadata).configuration["delta.rowTrackingSuspended"] == "true"
    assert plan.prepare(metadata).configuration["delta.enableRowTracking"] == "false"
    assert plan.pre_downgrade is PreDowngrade.RECOMMIT_WITHOUT_ROW_IDS
    assert not plan.needs_rewrite
    assert plan.domains == ("delta.rowTracking",)
    assert plan.downgrade(plan.prepare(metadata), version=3).configuration == {"owner": "me"}
    assert plan.protocol == Protocol(1, 7, None, {"domainMetadata"})
    assert plan.barriers == 0


def test_in_commit_timestamps() -> None:
    timed = Protocol(1, 7, None, {"inCommitTimestamp"})
    metadata = Metadata(
        configuration={
            "delta.enableInCommitTimestamps": "true",
            "delta.inCommitTimestampEnablementVersion": "1",
            "delta.inCommitTimestampEnablementTimestamp": "2",
        }
    )
    plan = plan_drop(timed, metadata, "inCommitTimestamp")
    assert plan.prepare(metadata).configuration == {"delta.enableInCommitTimestamps": "false"}
    # The property stays, as in Delta Spark: it says that timestamps are off, not that they are.
    assert plan.downgrade(plan.prepare(metadata), version=3) == plan.prepare(metadata)
    assert plan.protocol == Protocol(1, 1)


def test_column_mapping_strips_the_schema() -> None:
    ids = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "c", "comment": "x"}
    metadata = Metadata(
        configuration={"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
    ).with_schema(Struct((StructField("a", INTEGER, metadata=ids),)))
    plan = plan_drop(Protocol(2, 5), metadata, "columnMapping", truncate_history=True)
    assert plan.atomic
    prepared = plan.prepare(metadata)
    assert prepared.configuration["delta.columnMapping.mode"] == "none"
    assert dict(prepared.schema.fields[0].metadata) == {"comment": "x"}
    done = plan.downgrade(prepared, version=2)
    assert done.configuration == {}
    assert dict(done.schema.fields[0].metadata) == {"comment": "x"}
    assert plan.protocol == Protocol(1, 4)


def test_checkpoint_protection_goes_with_history() -> None:
    protected = Protocol(1, 7, None, {"checkpointProtection", "appendOnly", "invariants"})
    metadata = Metadata(configuration={"delta.requireCheckpointProtectionBeforeVersion": "7"})
    plan = plan_drop(protected, metadata, "checkpointProtection", truncate_history=True)
    assert plan.pre_downgrade is PreDowngrade.TRUNCATE_HISTORY
    assert plan.protocol == Protocol(1, 2)
    assert plan.downgrade(metadata, version=9).configuration == {}


def test_nothing_to_prepare_where_the_switch_was_never_on() -> None:
    plan = plan_drop(Protocol(3, 7, {"v2Checkpoint"}, {"v2Checkpoint"}), Metadata(), "v2Checkpoint")
    assert not plan.first_set
    assert not plan.first_unset


@pytest.mark.parametrize(
    "name", [name for name, row in FEATURES.items() if row.removal and not row.removal.never]
)
def test_every_removable_feature_can_go(name: str) -> None:
    row = FEATURES[name]
    protocol = Protocol(3, 7, (), ()).with_feature(name)
    truncate = row.removal is not None and row.removal.only_with_truncation
    plan = plan_drop(protocol, Metadata(), name, truncate_history=truncate)
    assert not plan.protocol.is_supported(name)
    assert protocol.can_downgrade_to(plan.protocol, [name])
    assert plan.protects_history is (row.history_protected and not truncate)
