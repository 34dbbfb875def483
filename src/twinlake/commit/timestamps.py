"""In-commit timestamps: the value of a commit and the provenance of switching them on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.protocol import keys

if TYPE_CHECKING:
    from twinlake.actions import Metadata

__all__ = [
    "commit_timestamp",
    "with_provenance",
]


def commit_timestamp(now_ms: int, previous_ms: int | None) -> int:
    """Later than the commit before, whatever the clock says.

    >>> commit_timestamp(100, 250), commit_timestamp(300, 250), commit_timestamp(5, None)
    (251, 300, 5)
    """
    return now_ms if previous_ms is None else max(now_ms, previous_ms + 1)


def with_provenance(
    metadata: Metadata, *, before: Metadata | None, version: int, timestamp_ms: int
) -> Metadata:
    """``metadata`` saying when timestamps were switched on, if this commit is what does it.

    A table born with them needs no provenance; one that has them off keeps none.
    """
    provenance = (
        keys.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
        keys.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
    )
    if not metadata.flag(keys.ENABLE_IN_COMMIT_TIMESTAMPS) or before is None:
        stale = [key for key in provenance if key in metadata.configuration]
        return metadata.with_configuration(remove=stale) if stale else metadata
    if before.flag(keys.ENABLE_IN_COMMIT_TIMESTAMPS):
        kept = {key: before.configuration[key] for key in provenance if key in before.configuration}
        if all(metadata.configuration.get(key) == kept.get(key) for key in provenance):
            return metadata
        return metadata.with_configuration(kept, remove=[k for k in provenance if k not in kept])
    return metadata.with_configuration(
        {
            keys.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION: str(version),
            keys.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP: str(timestamp_ms),
        }
    )
