"""The registry of table features, and the questions it answers."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from twinlake.protocol.feature import Feature, PreDowngrade
from twinlake.protocol.feature_registry import ROWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from twinlake.protocol.metadata import Metadata

__all__ = [
    "FEATURES",
    "LEGACY_FEATURES",
    "NAME_PATTERN",
    "active_features",
    "auto_enabled_features",
    "dependency_closure",
    "find_feature",
    "implied_features",
    "minimum_versions",
    "render_feature_table",
]

NAME_PATTERN: Final = re.compile(r"[A-Za-z0-9_-]+")

FEATURES: Final[Mapping[str, Feature]] = MappingProxyType({row.name: row for row in ROWS})
"""Every known feature by its name."""

LEGACY_FEATURES: Final = tuple(row for row in ROWS if row.legacy)
_FOLDED: Final = {name.casefold(): row for name, row in FEATURES.items()}


def find_feature(name: str) -> Feature | None:
    """The feature of that name, ignoring case; None where there is none.

    >>> find_feature("deletionvectors").name
    'deletionVectors'
    """
    return FEATURES.get(name) or _FOLDED.get(name.casefold())


def implied_features(reader: int, writer: int) -> frozenset[str]:
    """The features that a pair of legacy versions stands for."""
    return _IMPLIED.get((min(reader, 2), writer), frozenset()) if writer < 7 else frozenset()


_IMPLIED: Final = {
    (reader, writer): frozenset(
        row.name for row in LEGACY_FEATURES if row.min_reader <= reader and row.min_writer <= writer
    )
    for reader in range(3)
    for writer in range(7)
}


def minimum_versions(names: Iterable[str], *, floor: tuple[int, int] = (1, 1)) -> tuple[int, int]:
    """The lowest reader and writer versions that can express the features."""
    rows = [FEATURES[name] for name in names if name in FEATURES]
    return (
        max([floor[0], *(row.min_reader for row in rows)]),
        max([floor[1], *(row.min_writer for row in rows)]),
    )


def dependency_closure(names: Iterable[str]) -> frozenset[str]:
    """The features with all they require, and what that requires.

    >>> sorted(dependency_closure({"icebergWriterCompatV1"}))
    ['columnMapping', 'icebergCompatV2', 'icebergWriterCompatV1']
    """
    found: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending.extend(FEATURES[name].requires if name in FEATURES else ())
    return frozenset(found)


def auto_enabled_features(
    metadata: Metadata, supported: frozenset[str] = frozenset()
) -> frozenset[str]:
    """The features that the metadata switches on, without what they require."""
    return frozenset([r.name for r in ROWS if r.auto and r.auto(metadata, supported)])


def active_features(metadata: Metadata, supported: frozenset[str]) -> frozenset[str]:
    """The features that the metadata puts to use, supported or not.

    Features without any switch in metadata count as in use wherever they are supported.
    """
    tests = [(row.name, row.active or row.auto) for row in ROWS]
    return frozenset(
        [name for name, test in tests if (test(metadata, supported) if test else name in supported)]
    )


def render_feature_table() -> str:
    """The registry as a Markdown table, for the documentation."""
    head = (
        "Name", "Kind", "Min", "Requires", "Switched on by", "Existing tables", "Concurrent",
        "Droppable", "History", "Where", "Status", "What it is",
    )  # fmt: skip
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for row in ROWS:
        cells = (
            f"`{row.name}`",
            str(row.kind),
            f"({row.min_reader}, {row.min_writer})",
            ", ".join(f"`{name}`" for name in row.requires) or "-",
            row.auto_text or "explicitly",
            _yes(row.existing) if row.auto else "-",
            _yes(row.concurrent),
            _drop_text(row),
            _yes(row.history_protected) if row.removable else "-",
            row.where,
            row.status,
            row.description,
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _drop_text(row: Feature) -> str:
    removal = row.removal
    if removal is None or removal.never:
        return "no"
    if removal.offenders:
        return f"yes, once there are no {removal.refusal}"
    return "yes" if removal.pre_downgrade is PreDowngrade.NONE else f"yes: {removal.pre_downgrade}"
