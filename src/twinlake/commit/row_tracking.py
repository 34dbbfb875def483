"""Row ids for new files (Delta protocol, Row Tracking).

Assignment happens when a commit's body is built, from the newest known high-water mark, so that
losing a version and trying the next one reassigns by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from twinlake.actions import AddFile, DomainMetadata, find_row_tracking, row_tracking_action
from twinlake.protocol import (
    NO_MARK,
    ROW_TRACKING_DOMAIN,
    RowTracking,
    features,
    keys,
    strip_protocol_keys,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from twinlake.actions import Action, Metadata, Protocol
    from twinlake.runtime import Ids

__all__ = [
    "NO_MARK",
    "PRESERVED_TAG",
    "ROW_TRACKING_DOMAIN",
    "assign_row_ids",
    "assigns_row_ids",
    "is_fresh",
    "mark_of",
    "stored_metadata",
]

PRESERVED_TAG: Final = "delta.rowTracking.preserved"
_MATERIALIZED_COLUMNS: Final = {
    keys.MATERIALIZED_ROW_ID: "_row-id-col-",
    keys.MATERIALIZED_ROW_COMMIT_VERSION: "_row-commit-version-col-",
}


def assigns_row_ids(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether every added file must get ids: supported and not suspended."""
    return protocol.is_supported(features.ROW_TRACKING) and not metadata.flag(
        keys.ROW_TRACKING_SUSPENDED
    )


def mark_of(domains: Iterable[DomainMetadata]) -> int:
    """The highest id handed out so far, as the domains of a table or a commit state it."""
    found = find_row_tracking(domains)
    return NO_MARK if found is None else found.high_water_mark


def is_fresh(add: AddFile, mark: int) -> bool:
    """Whether the file needs ids; one that had ids before keeps them."""
    return add.base_row_id is None or add.base_row_id > mark


def assign_row_ids(
    actions: Sequence[Action], *, read_mark: int, mark: int, version: int
) -> tuple[list[Action], int]:
    """The actions with ids on every new file, and the new mark.

    ``read_mark`` tells ids of old (kept) from ids of a lost attempt (given out again), ``mark``
    is where new ids start. The domain is written whenever the mark grows.
    """
    out: list[Action] = []
    grown = mark
    for action in actions:
        if isinstance(action, AddFile):
            if is_fresh(action, read_mark):
                # Checked before: a file without a count never gets here.
                action = msgspec.structs.replace(
                    action, base_row_id=grown + 1, default_row_commit_version=version
                )
                grown += action.num_records or 0
            elif action.default_row_commit_version is None:
                action = msgspec.structs.replace(action, default_row_commit_version=version)
        out.append(action)
    given = _given_domain(out)
    if given is not None and given.removed:
        return out, mark
    stated = max(grown, mark_of([given] if given is not None else []))
    if given is not None:
        out.remove(given)
    if stated > mark:
        out.append(row_tracking_action(RowTracking(stated)))
    return out, stated


def _given_domain(actions: Iterable[Action]) -> DomainMetadata | None:
    for action in actions:
        if isinstance(action, DomainMetadata) and action.domain == ROW_TRACKING_DOMAIN:
            return action
    return None


def stored_metadata(metadata: Metadata, before: Metadata, ids: Ids) -> Metadata:
    """The metadata as stored: nothing that only steers the protocol, names for row id columns.

    Names that the table had before are kept, so that older files stay readable.
    """
    stored = strip_protocol_keys(metadata.configuration)
    if metadata.flag(keys.ENABLE_ROW_TRACKING):
        for key, prefix in _MATERIALIZED_COLUMNS.items():
            known = stored.get(key) or before.configuration.get(key)
            stored[key] = known or f"{prefix}{ids.uuid()}"
    if stored == metadata.configuration:
        return metadata
    gone = metadata.configuration.keys() - stored.keys()
    return metadata.with_configuration(stored, remove=gone)
