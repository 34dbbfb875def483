"""The metadata before and after each step of an upgrade. Pure.

The planner applies these to values; the upgrade commits the same ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.compat.column_mapping import mapped_by_id, mapped_by_name
from twinlake.compat.compat_feature import COMPATS
from twinlake.compat.enablement import is_uniform
from twinlake.compat.rule import PROFILE_KEY, Profile
from twinlake.compat.upgrade.target_metadata import (
    with_integers,
    with_varchar,
    with_wider_types,
    without_existence_defaults,
    without_foreign_changes,
    without_given_up,
)
from twinlake.protocol import keys, strip_protocol_keys

if TYPE_CHECKING:
    from twinlake.compat.upgrade.step import Goal
    from twinlake.protocol import Metadata

__all__ = [
    "converted",
    "metadata_for_files",
    "stripped",
    "switched",
    "with_compat_enabled",
    "with_uniform",
]

_READERS: Final = tuple(row for row in COMPATS.values() if not row.is_writer)


def switched(metadata: Metadata, goal: Goal) -> Metadata:
    """With the properties off that the goal does not allow, so that no writer adds more."""
    config = metadata.configuration
    changes: dict[str, str] = {}
    gone: list[str] = []
    if not goal.hides_rows:
        if goal.sets_writer_flag or goal.base.version == 1:
            # The feature goes as a whole, and its property with it.
            gone += [keys.ENABLE_DELETION_VECTORS] if keys.ENABLE_DELETION_VECTORS in config else []
        elif metadata.flag(keys.ENABLE_DELETION_VECTORS):
            changes[keys.ENABLE_DELETION_VECTORS] = "false"
    if goal.sets_writer_flag:
        if metadata.flag(keys.ENABLE_CHANGE_DATA_FEED):
            changes[keys.ENABLE_CHANGE_DATA_FEED] = "false"
        if goal.base.version < 3 and metadata.flag(keys.ENABLE_ROW_TRACKING):
            changes[keys.ENABLE_ROW_TRACKING] = "false"
    stored = config.get(PROFILE_KEY)
    if goal.profile is not Profile.SPEC and stored != goal.profile:
        changes[PROFILE_KEY] = str(goal.profile)
    elif goal.profile is Profile.SPEC and stored is not None and stored != goal.profile:
        gone.append(PROFILE_KEY)
    lighter = without_given_up(metadata, goal.give_up)
    return lighter.with_configuration(changes, remove=gone) if changes or gone else lighter


def converted(metadata: Metadata, goal: Goal) -> Metadata:
    """Names, ids and types as the compat feature requires them, with the base enabled.

    icebergCompatV3 requires row ids, which files get afterwards: a later step enables it.
    """
    changed = metadata
    if goal.sets_writer_flag:
        changed = with_wider_types(changed) if goal.in_place else with_integers(changed)
    if not goal.in_place:
        changed = without_existence_defaults(without_foreign_changes(changed))
        if "char" in goal.give_up:
            changed = with_varchar(changed)
    if goal.compat.is_writer:
        changed = mapped_by_id(changed)
    else:
        changed = mapped_by_name(changed, nested=goal.base.version >= 2)
    return changed if goal.base.version >= 3 else _with_base(changed, goal)


def metadata_for_files(metadata: Metadata, goal: Goal) -> Metadata:
    """The metadata that new files are written for: with the compat features enabled already."""
    flags = {goal.base.key: "true", goal.compat.key: "true"}
    others = {row.key: "false" for row in _READERS if row.is_enabled(metadata)}
    return metadata.with_configuration({**others, **flags})


def _with_base(metadata: Metadata, goal: Goal) -> Metadata:
    others = {row.key: "false" for row in _READERS if row.is_enabled(metadata)}
    return metadata.with_configuration({**others, goal.base.key: "true"})


def with_compat_enabled(metadata: Metadata, goal: Goal) -> Metadata:
    """With the features enabled and asked for by name: metadata alone does not add them all."""
    changed = _with_base(metadata, goal)
    features = [goal.base.feature]
    if goal.base.version >= 3:
        changed = changed.with_configuration(
            {keys.ENABLE_ROW_TRACKING: "true"}, remove=[keys.ROW_TRACKING_SUSPENDED]
        )
    if goal.sets_writer_flag:
        changed = changed.with_configuration({goal.compat.key: "true"})
        features.append(goal.compat.feature)
    return changed.with_configuration(keys.support(*features))


def stripped(metadata: Metadata) -> Metadata:
    """As it is stored: without the properties that only steer the protocol."""
    kept = strip_protocol_keys(metadata.configuration)
    gone = metadata.configuration.keys() - kept.keys()
    return metadata.with_configuration({}, remove=gone) if gone else metadata


def with_uniform(metadata: Metadata) -> Metadata:
    """Iceberg metadata is to be kept, next to whatever else is."""
    if is_uniform(metadata):
        return metadata
    others = [
        name.strip() for name in metadata.get(keys.ENABLED_FORMATS).split(",") if name.strip()
    ]
    return metadata.with_configuration({keys.ENABLED_FORMATS: ",".join([*others, "iceberg"])})
