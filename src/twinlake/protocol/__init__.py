"""What a table needs of its clients: features, protocol, metadata, gates, properties."""

from twinlake.protocol.feature import Feature, Kind, Removal, Work
from twinlake.protocol.gates import (
    CLIENT_FEATURES,
    Client,
    ClientLike,
    read_blockers,
    write_blockers,
)
from twinlake.protocol.iceberg_properties import (
    COPY_ON_WRITE,
    HISTORY_AGE,
    ICEBERG_PREFIX,
    iceberg_wishes,
    is_kept_for_iceberg,
)
from twinlake.protocol.metadata import Metadata
from twinlake.protocol.policies import BUNDLED, MINIMAL, POLICIES, Policy, find_policy
from twinlake.protocol.properties import (
    PARTITION_TIME_ZONE,
    PROPERTIES,
    Property,
    canonical_key,
    is_secret,
    parse_properties,
    partition_zone,
    property_value,
    refuse_iceberg_wishes,
    render_property_table,
    snapshot_age_ms,
)
from twinlake.protocol.protocol import Protocol
from twinlake.protocol.registry import (
    FEATURES,
    LEGACY_FEATURES,
    active_features,
    auto_enabled_features,
    dependency_closure,
    find_feature,
    implied_features,
    minimum_versions,
    render_feature_table,
)
from twinlake.protocol.removal import PROTECTION_PROPERTY, DropPlan, plan_drop
from twinlake.protocol.requirements import (
    APPEND_ONLY_WRITER_VERSION_1X,
    ProtocolInMetadata,
    check_protocol_requirements,
    extract_automatically_enabled_features,
    min_protocol_components_from_automatically_enabled_features,
    min_protocol_components_from_metadata,
    required_minimum_protocol,
    upgrade_protocol_from_metadata_for_existing_table,
)
from twinlake.protocol.steering import Steering, is_steering_key, strip_steering
from twinlake.protocol.triggers import constraint_names
from twinlake.protocol.wire import Int, Long

__all__ = [
    "APPEND_ONLY_WRITER_VERSION_1X",
    "BUNDLED",
    "CLIENT_FEATURES",
    "COPY_ON_WRITE",
    "FEATURES",
    "HISTORY_AGE",
    "ICEBERG_PREFIX",
    "LEGACY_FEATURES",
    "MINIMAL",
    "PARTITION_TIME_ZONE",
    "POLICIES",
    "PROPERTIES",
    "PROTECTION_PROPERTY",
    "Client",
    "ClientLike",
    "DropPlan",
    "Feature",
    "Int",
    "Kind",
    "Long",
    "Metadata",
    "Policy",
    "Property",
    "Protocol",
    "ProtocolInMetadata",
    "Removal",
    "Steering",
    "Work",
    "active_features",
    "auto_enabled_features",
    "canonical_key",
    "check_protocol_requirements",
    "constraint_names",
    "dependency_closure",
    "extract_automatically_enabled_features",
    "find_feature",
    "find_policy",
    "iceberg_wishes",
    "implied_features",
    "is_kept_for_iceberg",
    "is_secret",
    "is_steering_key",
    "min_protocol_components_from_automatically_enabled_features",
    "min_protocol_components_from_metadata",
    "minimum_versions",
    "parse_properties",
    "partition_zone",
    "plan_drop",
    "property_value",
    "read_blockers",
    "refuse_iceberg_wishes",
    "render_feature_table",
    "render_property_table",
    "required_minimum_protocol",
    "snapshot_age_ms",
    "strip_steering",
    "upgrade_protocol_from_metadata_for_existing_table",
    "write_blockers",
]
