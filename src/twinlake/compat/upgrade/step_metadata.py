"""The metadata before and after each step of an upgrade. Pure.

The planner tries these on values, and whoever does the upgrade commits the very same ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.compat.compat_feature import COMPATS
from twinlake.compat.enablement import UNIFORM_KEY, is_uniform
from twinlake.compat.rule import PROFILE_KEY, Profile
from twinlake.compat.upgrade.target_metadata import (
    mapped_by_id,
    mapped_by_name,
    unburdened,
    with_integers,
    with_varchar,
    with_wider_types,
    without_existence_defaults,
    without_foreign_changes,
)
from twinlake.protocol import strip_steering

if TYPE_CHECKING:
    from twinlake.compat.upgrade.step import Goal
    from twinlake.protocol import Metadata

__all__ = [
    "as_written",
    "converted",
    "promised",
    "stripped",
    "switched",
    "with_uniform",
]

_VECTORS: Final = "delta.enableDeletionVectors"
_FEED: Final = "delta.enableChangeDataFeed"
_ROW_TRACKING: Final = "delta.enableRowTracking"
_SUSPENDED: Final = "delta.rowTrackingSuspended"
_READERS: Final = tuple(row for row in COMPATS.values() if not row.is_writer)


def switched(metadata: Metadata, goal: Goal) -> Metadata:
    """What must not be in use any more is off, so that nobody brings in more of it."""
    config = metadata.configuration
    changes: dict[str, str] = {}
    gone: list[str] = []
    if not goal.hides_rows:
        if goal.sets_writer_flag or goal.base.version == 1:
            # The feature goes as a whole, and its property with it.
            gone += [_VECTORS] if _VECTORS in config else []
        elif metadata.flag(_VECTORS):
            changes[_VECTORS] = "false"
    if goal.sets_writer_flag:
        if metadata.flag(_FEED):
            changes[_FEED] = "false"
        if goal.base.version < 3 and metadata.flag(_ROW_TRACKING):
            changes[_ROW_TRACKING] = "false"
    stored = config.get(PROFILE_KEY)
    if goal.profile is not Profile.SPEC and stored != goal.profile:
        changes[PROFILE_KEY] = str(goal.profile)
    elif goal.profile is Profile.SPEC and stored is not None and stored != goal.profile:
        gone.append(PROFILE_KEY)
    lighter = unburdened(metadata, goal.give_up)
    return lighter.with_configuration(changes, remove=gone) if changes or gone else lighter


def converted(metadata: Metadata, goal: Goal) -> Metadata:
    """Names, ids and types as the promise wants them, and the promise about readers made.

    A promise of version 3 stands on row ids, which files get afterwards: it is left for later.
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


def as_written(metadata: Metadata, goal: Goal) -> Metadata:
    """The metadata that new files are to fit: as if every promise had been made already."""
    flags = {goal.base.key: "true", goal.compat.key: "true"}
    others = {row.key: "false" for row in _READERS if row.is_enabled(metadata)}
    return metadata.with_configuration({**others, **flags})


def _with_base(metadata: Metadata, goal: Goal) -> Metadata:
    others = {row.key: "false" for row in _READERS if row.is_enabled(metadata)}
    return metadata.with_configuration({**others, goal.base.key: "true"})


def promised(metadata: Metadata, goal: Goal) -> Metadata:
    """With the flags, and the features asked for by name: metadata alone does not add them all."""
    changed = _with_base(metadata, goal)
    features = [goal.base.feature]
    if goal.base.version >= 3:
        changed = changed.with_configuration({_ROW_TRACKING: "true"}, remove=[_SUSPENDED])
    if goal.sets_writer_flag:
        changed = changed.with_configuration({goal.compat.key: "true"})
        features.append(goal.compat.feature)
    return changed.with_configuration({f"delta.feature.{name}": "supported" for name in features})


def stripped(metadata: Metadata) -> Metadata:
    """As it is stored: without the properties that only steer the protocol."""
    kept = strip_steering(metadata.configuration)
    gone = metadata.configuration.keys() - kept.keys()
    return metadata.with_configuration({}, remove=gone) if gone else metadata


def with_uniform(metadata: Metadata) -> Metadata:
    """Iceberg metadata is to be kept, next to whatever else is."""
    if is_uniform(metadata):
        return metadata
    others = [name.strip() for name in metadata.get(UNIFORM_KEY).split(",") if name.strip()]
    return metadata.with_configuration({UNIFORM_KEY: ",".join([*others, "iceberg"])})
