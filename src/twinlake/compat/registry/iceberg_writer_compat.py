"""The rules of icebergWriterCompatV1 and V3."""

from __future__ import annotations

from typing import Final

from twinlake.compat.profiles import kernel
from twinlake.compat.registry.rule_group import KERNEL, SPARK, SPEC, rows
from twinlake.compat.rule import Rule, Scope, Trait
from twinlake.compat.rules import change, protocol, schema
from twinlake.compat.rules import property as properties
from twinlake.errors import (
    how_to_add_feature,
    how_to_drop_constraint,
    how_to_drop_feature,
    how_to_give_up,
    how_to_set,
    how_to_upgrade,
)
from twinlake.protocol import features, keys

__all__ = ["WRITER_ROWS"]

_BOTH: Final = "IWC1 IWC3"
_UNSEEN: Final = "An Iceberg writer knows nothing of it and would break it."

_PROTOCOL: Final = (
    *rows(
        "01",
        _BOTH,
        "Readers must support column mapping",
        protocol.reader_knows_column_mapping,
        reason="Iceberg finds columns by id, and column mapping is what gives them ids.",
        fix=f"Run {how_to_add_feature(features.COLUMN_MAPPING)}.",
        subclass="MISSING_REQUIRED_TABLE_FEATURE",
        # The kernel checks the features that both need with the base.
        profiles={KERNEL: None},
        covers="02",
    ),
    *rows(
        "02",
        _BOTH,
        "The protocol is on writer version 7",
        protocol.writer_version_is_seven,
        reason="Only writer version 7 can list features by name.",
        fix="Set the property of the feature to `true`; that raises the protocol.",
        subclass="MISSING_REQUIRED_TABLE_FEATURE",
        profiles={KERNEL: None},
        covers="01",
    ),
    *rows(
        "03",
        _BOTH,
        "The protocol lists the feature and its base",
        protocol.feature_and_base_are_listed,
        reason="The listed feature keeps out writers that would break it unknowingly.",
        fix="Set the property of the feature to `true`; that adds both features to the protocol.",
        subclass="MISSING_REQUIRED_TABLE_FEATURE",
        profiles={KERNEL: protocol.feature_is_listed},
        covers="01",
    ),
    *rows(
        "10",
        _BOTH,
        "Every supported feature is one that the writer feature allows",
        protocol.disallowed_features,
        reason="An Iceberg writer follows none of Delta's features, so each has to be known to be "
        "harmless.",
        fix=f"Run {how_to_drop_feature('FEATURE')}.",
        subclass="INCOMPATIBLE_TABLE_FEATURE",
        profiles={KERNEL: kernel.disallowed_features},
        traits=(Trait.NAMES_FEATURE,),
    ),
    *rows(
        "17",
        _BOTH,
        "None of the features that are ruled out by name is supported or in use",
        protocol.features_named_apart,
        reason="Iceberg writers cannot keep up defaults, collations and variants of this version.",
        fix="Create a new table without the feature; it cannot be dropped.",
        subclass="INCOMPATIBLE_TABLE_FEATURE",
        # The kernel's list of allowed features says it.
        profiles={KERNEL: None},
        traits=(Trait.NAMES_FEATURE,),
    ),
)

_PROPERTIES: Final = (
    *rows(
        "04",
        _BOTH,
        "Its base is enabled",
        properties.base_is_on,
        reason="What Iceberg cannot read it cannot write either.",
        fix="Set the property to `true` in the same call.",
        subclass="WRONG_REQUIRED_TABLE_PROPERTY",
        profiles={KERNEL: kernel.base_is_on},
    ),
    *rows(
        "05",
        _BOTH,
        "Column mapping is in mode id",
        properties.mode_is("id"),
        reason="Iceberg writers write field ids and choose names as they like.",
        fix=f"Run {how_to_upgrade(features.ICEBERG_WRITER_COMPAT_V1)}; a new table is created with "
        "`delta.columnMapping.mode=id`.",
        subclass="WRONG_REQUIRED_TABLE_PROPERTY",
        profiles={KERNEL: kernel.mode_is("id")},
        covers="03",
        traits=(Trait.SHARED_MODE,),
    ),
    *rows(
        "12",
        _BOTH,
        "The change data feed is off",
        properties.change_data_feed_is_off,
        reason=_UNSEEN,
        fix=f"Run {how_to_set(keys.ENABLE_CHANGE_DATA_FEED, 'false')}.",
        subclass="INCOMPATIBLE_TABLE_FEATURE",
    ),
    *rows(
        "13",
        _BOTH,
        "There are no CHECK constraints",
        properties.no_constraints,
        reason=_UNSEEN,
        fix=f"Run {how_to_drop_constraint('NAME')}.",
        subclass="INCOMPATIBLE_TABLE_FEATURE",
        gives_up="constraints",
    ),
    *rows(
        "16",
        "IWC1",
        "Row tracking is off",
        properties.row_tracking_is_off,
        reason="Iceberg v2 writers give rows no ids.",
        fix=f"Run {how_to_set(keys.ENABLE_ROW_TRACKING, 'false')}, or use `icebergWriterCompatV3`.",
        subclass="INCOMPATIBLE_TABLE_FEATURE",
    ),
)

_COLUMNS: Final = (
    *rows(
        "06",
        _BOTH,
        "Physical names are col-<id>",
        schema.physical_names,
        reason="A column that an Iceberg writer adds has an id and nothing else to be named by.",
        fix=f"Run {how_to_upgrade(features.ICEBERG_WRITER_COMPAT_V1)}: it gives the columns their "
        "names and rewrites the files.",
        subclass="WRONG_REQUIRED_TABLE_PROPERTY",
        profiles={KERNEL: kernel.physical_names},
        traits=(Trait.SHARED_MODE,),
    ),
    *rows(
        "07",
        _BOTH,
        "No column is a byte or a short",
        schema.no_small_integers,
        reason="Iceberg has no integers below 32 bits, and its writers would store larger ones.",
        fix=f"Run {how_to_upgrade(features.ICEBERG_WRITER_COMPAT_V1)}: it makes the column INT.",
        subclass="UNSUPPORTED_DATA_TYPE",
    ),
    *rows(
        "08",
        _BOTH,
        "Every type is one that Iceberg writers have",
        {
            "IWC1": schema.allowed_types(2, everything=True),
            "IWC3": schema.allowed_types(3, everything=True),
        },
        reason="An Iceberg writer has no type to write the column with.",
        fix="Drop the column or change its type.",
        subclass="UNSUPPORTED_DATA_TYPE",
        # The kernel checks types with the base.
        profiles={KERNEL: None},
        covers={"IWC1": "07 16 17", "IWC3": "07 17"},
    ),
    *rows(
        "11",
        _BOTH,
        "No column has an invariant",
        schema.no_invariants,
        reason=_UNSEEN,
        fix=f"Run {how_to_give_up(features.INVARIANTS)}; NOT NULL stays.",
        subclass="INCOMPATIBLE_TABLE_FEATURE",
        profiles={KERNEL: kernel.no_invariants},
        gives_up=features.INVARIANTS,
    ),
    *rows(
        "14",
        _BOTH,
        "There are no identity columns",
        schema.no_identity_columns,
        reason="An Iceberg writer would not know the next number.",
        fix=f"Run {how_to_give_up(features.IDENTITY_COLUMNS)}.",
        subclass="INCOMPATIBLE_TABLE_FEATURE",
        profiles={KERNEL: kernel.no_identity_columns},
        gives_up=features.IDENTITY_COLUMNS,
    ),
    *rows(
        "15",
        _BOTH,
        "There are no generated columns",
        schema.no_generated_columns,
        reason=_UNSEEN,
        fix=f"Run {how_to_give_up(features.GENERATED_COLUMNS)}.",
        subclass="INCOMPATIBLE_TABLE_FEATURE",
        profiles={KERNEL: kernel.no_generated_columns},
        gives_up=features.GENERATED_COLUMNS,
    ),
)

_CHANGES: Final = (
    *rows(
        "09",
        _BOTH,
        "Structs that serve as map keys stay as they are",
        change.map_keys_keep_their_structs,
        reason="Iceberg compares keys as they were written and cannot read them in another shape.",
        fix="Leave the key as it is; add a new column, or drop the map.",
        scope=Scope.CHANGE,
        # The kernel asks for it in the first version only.
        own={"IWC1": {KERNEL: kernel.key_structs_stay_equal}, "IWC3": {KERNEL: None}},
    ),
    *rows(
        "19",
        # The kernel has such a check for the third version as well, and never calls it.
        "IWC1",
        "The feature is enabled when the table is created, and stays enabled",
        kernel.enablement_is_fixed,
        reason="The kernel cannot upgrade an existing table; the protocol allows it.",
        fix="Check with the profile `spec`, or create a new table.",
        scope=Scope.CHANGE,
        profiles={SPEC: None, SPARK: None},
        traits=(Trait.AT_CREATION, Trait.ON_DISABLE),
    ),
)

WRITER_ROWS: Final[tuple[Rule, ...]] = (*_PROTOCOL, *_PROPERTIES, *_COLUMNS, *_CHANGES)
