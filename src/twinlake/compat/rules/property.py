"""Rules about the configuration of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.compat.compat_feature import COMPATS
from twinlake.compat.rule import Finding
from twinlake.errors import how_to_drop_constraint
from twinlake.protocol import constraint_names, features, keys

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from twinlake.compat.rule import Case, Check

__all__ = [
    "base_is_on",
    "change_data_feed_is_off",
    "mode_finding",
    "mode_is",
    "no_constraints",
    "other_versions_are_off",
    "property_finding",
    "row_tracking_is_off",
    "row_tracking_is_on",
    "shown",
]


def shown(case: Case, key: str) -> str:
    """A configuration value for a report."""
    return case.subject.metadata.configuration.get(key, "(not set)")


def mode_finding(case: Case, modes: Collection[str]) -> Finding:
    """What is wrong with the mode of column mapping."""
    found = shown(case, keys.COLUMN_MAPPING_MODE)
    wanted = " or ".join(modes)
    return Finding(
        path=keys.COLUMN_MAPPING_MODE,
        found=found,
        wanted=wanted,
        message=f"the mode of column mapping is {found}, and {case.compat} needs {wanted}",
    )


def mode_is(*modes: str) -> Check:
    """Column mapping is in one of the modes, spelt as the protocol spells it."""

    def check(case: Case) -> Iterator[Finding]:
        if case.subject.metadata.get(keys.COLUMN_MAPPING_MODE) not in modes:
            yield mode_finding(case, modes)

    return check


def property_finding(case: Case, key: str, wanted: str, why: str) -> Finding:
    """What is wrong with a property."""
    found = shown(case, key)
    return Finding(path=key, found=found, wanted=wanted, message=f"{key} is {found}, {why}")


def other_versions_are_off(case: Case) -> Iterator[Finding]:
    """Only one of icebergCompatV1 to V3 can be enabled at a time."""
    metadata = case.subject.metadata
    for other in COMPATS.values():
        if not other.is_writer and other is not case.compat and other.is_enabled(metadata):
            why = f"but only one version can be enabled, and {case.compat} is asked for"
            yield property_finding(case, other.key, "false", why)


def base_is_on(case: Case) -> Iterator[Finding]:
    """A writer feature requires its base."""
    base = COMPATS[case.compat.base or ""]
    if not base.is_enabled(case.subject.metadata):
        yield property_finding(case, base.key, "true", f"and {case.compat} requires {base}")


def row_tracking_is_on(case: Case) -> Iterator[Finding]:
    """Rows have ids, and the protocol says so."""
    if not case.subject.metadata.flag(keys.ENABLE_ROW_TRACKING):
        yield property_finding(
            case, keys.ENABLE_ROW_TRACKING, "true", f"and {case.compat} needs row tracking"
        )
    if not case.subject.protocol.is_supported(features.ROW_TRACKING):
        yield Finding(
            path=features.ROW_TRACKING,
            found="not listed",
            wanted="listed in writerFeatures",
            message=f"feature {features.ROW_TRACKING} is missing, and {case.compat} needs it",
        )


def _off(key: str, what: str) -> Check:
    def check(case: Case) -> Iterator[Finding]:
        if case.subject.metadata.flag(key):
            yield property_finding(case, key, "false", f"and {case.compat} does not allow {what}")

    return check


change_data_feed_is_off: Final = _off(keys.ENABLE_CHANGE_DATA_FEED, "a change data feed")
row_tracking_is_off: Final = _off(keys.ENABLE_ROW_TRACKING, "row tracking")


def no_constraints(case: Case) -> Iterator[Finding]:
    """No CHECK constraint, which an Iceberg writer would not enforce."""
    metadata = case.subject.metadata
    for name in constraint_names(metadata):
        key = keys.CONSTRAINTS_PREFIX + name
        yield Finding(
            path=key,
            found=metadata.get(key),
            wanted="(not set)",
            message=f"the table has the CHECK constraint {name or '(without a name)'}",
            fix=f"Run {how_to_drop_constraint(name)}.",
        )
