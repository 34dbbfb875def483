"""What a table needs of its clients: features, protocol, metadata, gates, properties."""

from twinlake.protocol import features, keys
from twinlake.protocol.domains import (
    CLUSTERING_DOMAIN,
    NO_MARK,
    ROW_TRACKING_DOMAIN,
    Clustering,
    RowTracking,
)
from twinlake.protocol.feature import Feature, FeatureKind, FeatureTrace, PreDowngrade, Removal
from twinlake.protocol.feature_lookup import (
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
from twinlake.protocol.feature_predicates import constraint_names
from twinlake.protocol.gates import (
    CLIENT_FEATURES,
    Client,
    ClientLike,
    read_blockers,
    write_blockers,
)
from twinlake.protocol.iceberg_annotations import (
    ICEBERG_DOMAIN,
    NO_ANNOTATIONS,
    IcebergAnnotations,
    SnapshotTag,
)
from twinlake.protocol.integers import Int, Long
from twinlake.protocol.metadata import Metadata
from twinlake.protocol.policies import BUNDLED, MINIMAL, POLICIES, Policy, find_policy
from twinlake.protocol.properties.checks import (
    check_iceberg_properties,
    parse_properties,
    refuse_kept_properties,
)
from twinlake.protocol.properties.iceberg import (
    COPY_ON_WRITE,
    HISTORY_AGE,
    ICEBERG_PREFIX,
    SERIALIZABLE,
    is_reserved_for_iceberg,
    requested_iceberg_properties,
)
from twinlake.protocol.properties.protocol_keys import (
    ProtocolRequest,
    is_protocol_key,
    strip_protocol_keys,
)
from twinlake.protocol.properties.registry import (
    PROPERTIES,
    Property,
    canonical_key,
    is_secret,
    partition_zone,
    property_value,
    render_property_table,
    snapshot_age_ms,
)
from twinlake.protocol.protocol import Protocol
from twinlake.protocol.removal import DropPlan, plan_drop
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

__all__ = [
    "APPEND_ONLY_WRITER_VERSION_1X",
    "BUNDLED",
    "CLIENT_FEATURES",
    "CLUSTERING_DOMAIN",
    "COPY_ON_WRITE",
    "FEATURES",
    "HISTORY_AGE",
    "ICEBERG_DOMAIN",
    "ICEBERG_PREFIX",
    "LEGACY_FEATURES",
    "MINIMAL",
    "NO_ANNOTATIONS",
    "NO_MARK",
    "POLICIES",
    "PROPERTIES",
    "ROW_TRACKING_DOMAIN",
    "SERIALIZABLE",
    "Client",
    "ClientLike",
    "Clustering",
    "DropPlan",
    "Feature",
    "FeatureKind",
    "FeatureTrace",
    "IcebergAnnotations",
    "Int",
    "Long",
    "Metadata",
    "Policy",
    "PreDowngrade",
    "Property",
    "Protocol",
    "ProtocolInMetadata",
    "ProtocolRequest",
    "Removal",
    "RowTracking",
    "SnapshotTag",
    "active_features",
    "auto_enabled_features",
    "canonical_key",
    "check_iceberg_properties",
    "check_protocol_requirements",
    "constraint_names",
    "dependency_closure",
    "extract_automatically_enabled_features",
    "features",
    "find_feature",
    "find_policy",
    "implied_features",
    "is_protocol_key",
    "is_reserved_for_iceberg",
    "is_secret",
    "keys",
    "min_protocol_components_from_automatically_enabled_features",
    "min_protocol_components_from_metadata",
    "minimum_versions",
    "parse_properties",
    "partition_zone",
    "plan_drop",
    "property_value",
    "read_blockers",
    "refuse_kept_properties",
    "render_feature_table",
    "render_property_table",
    "requested_iceberg_properties",
    "required_minimum_protocol",
    "snapshot_age_ms",
    "strip_protocol_keys",
    "upgrade_protocol_from_metadata_for_existing_table",
    "write_blockers",
]
