"""Checks of protocol and properties: table features in use, kept, and complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.commit.checks.check import CheckFailure
from twinlake.commit.conflict.rule import named
from twinlake.compat import enabled_compats
from twinlake.errors import (
    Code,
    how_to_add_feature,
    how_to_drop_feature,
    how_to_set,
    how_to_unset,
    how_to_upgrade,
)
from twinlake.protocol import features, is_protocol_key, keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.actions import Metadata
    from twinlake.commit.checks.check import Draft

__all__ = ["features_in_use", "features_kept", "row_tracking", "stored_properties", "sync_property"]


def features_in_use(draft: Draft) -> Iterator[CheckFailure]:
    """Deletion vectors and domains need their features."""
    change, summary = draft.change, draft.change.summary
    protocol = change.protocol
    vectors = [add.path for add in summary.adds if add.deletion_vector is not None]
    if vectors and not protocol.is_supported(features.DELETION_VECTORS):
        yield CheckFailure(
            message=f"deletionVectors is not supported, but {named(vectors, 'file')} has one",
            code=Code.FEATURE_MISMATCH,
            fix=f"Run {how_to_set(keys.ENABLE_DELETION_VECTORS, 'true')} first.",
        )
    # Tombstones may go with the feature itself: dropping it has to take the domains along.
    names = [d.domain for d in summary.domains if not (d.removed and summary.protocol)]
    if names and not protocol.is_supported(features.DOMAIN_METADATA):
        yield CheckFailure(
            message=f"domainMetadata is not supported, but there is {named(names, 'domain')}",
            code=Code.FEATURE_MISMATCH,
            fix=f"Run {how_to_add_feature(features.DOMAIN_METADATA)} first.",
        )


def features_kept(draft: Draft) -> Iterator[CheckFailure]:
    """Only DROP FEATURE takes a feature away, one at a time."""
    change = draft.change
    if change.version == 0 or not change.summary.protocols:
        return
    gone = change.base.protocol.feature_names - change.protocol.feature_names
    if len(gone) > 1:
        yield CheckFailure(
            message=f"{named(gone, 'feature')} would go; a commit drops at most one",
            code=Code.FEATURE_DROP,
            delta_class="DELTA_PROTOCOL_CHANGED",
            fix=f"Drop the features one at a time, each with {how_to_drop_feature('NAME')}.",
        )
    elif gone and not change.operation.is_feature_drop:
        yield CheckFailure(
            message=f"{change.operation.name} would drop {named(gone, 'feature')}",
            code=Code.FEATURE_DROP,
            fix=f"Run {how_to_drop_feature('NAME')} for the feature.",
        )


def stored_properties(draft: Draft) -> Iterator[CheckFailure]:
    """Properties that only steer the protocol are never stored."""
    metadata = draft.change.summary.metadata
    if metadata is None:
        return
    if steering := [key for key in metadata.configuration if is_protocol_key(key)]:
        yield CheckFailure(
            message=f"{named(steering)} steer the protocol and are never stored",
            code=Code.PROPERTY_INVALID,
        )


def row_tracking(draft: Draft) -> Iterator[CheckFailure]:
    """Row tracking needs row ids on all files, and is not suspended at once."""
    metadata = draft.change.summary.metadata
    if metadata is None or not metadata.flag(keys.ENABLE_ROW_TRACKING):
        return
    if metadata.flag(keys.ROW_TRACKING_SUSPENDED):
        yield CheckFailure(
            message="row tracking is enabled and suspended at once",
            code=Code.PROPERTY_INVALID,
            delta_class="DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
            fix=f"Run {how_to_unset(keys.ROW_TRACKING_SUSPENDED)}.",
        )
    if draft.untracked_files:
        yield CheckFailure(
            message=f"row tracking is enabled, but {draft.untracked_files} files have no row ids",
            code=Code.FEATURE_ENABLE,
            fix=f"Run {how_to_set(keys.ENABLE_ROW_TRACKING, 'true')}: it gives row ids to "
            "the existing files.",
        )


def sync_property(draft: Draft) -> Iterator[CheckFailure]:
    """Making Iceberg metadata with every commit takes a table that has an Iceberg side."""
    change = draft.change
    if not _asks_for_sync(change.summary.metadata) or enabled_compats(change.metadata):
        return
    old = change.base.metadata if change.version > 0 else None
    if not _asks_for_sync(old):
        yield CheckFailure(
            message=f"{keys.ICEBERG_SYNC} does nothing without an Iceberg compat feature",
            code=Code.PROPERTY_INVALID,
            fix=f"Run {how_to_upgrade(features.ICEBERG_COMPAT_V2)} first.",
        )
    elif old is not None and enabled_compats(old):
        yield CheckFailure(
            message="the table would have no Iceberg compat feature, and "
            f"{keys.ICEBERG_SYNC} is commit",
            code=Code.PROPERTY_INVALID,
            fix=f"Run {how_to_unset(keys.ICEBERG_SYNC)} first.",
        )


def _asks_for_sync(metadata: Metadata | None) -> bool:
    return metadata is not None and metadata.get(keys.ICEBERG_SYNC).strip().lower() == "commit"
