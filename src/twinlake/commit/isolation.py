"""Isolation levels, and which one a commit is checked under (``delta.isolationLevel``)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from twinlake.commit.row_tracking import ROW_TRACKING_DOMAIN
from twinlake.errors import Code, UserError, how_to_set, how_to_unset
from twinlake.protocol import keys

if TYPE_CHECKING:
    from twinlake.actions import Metadata
    from twinlake.commit.operation import Operation
    from twinlake.commit.summary import CommitSummary

__all__ = ["IsolationLevel", "effective_level", "table_level"]


class IsolationLevel(StrEnum):
    """How much a transaction wants to be alone, strongest first."""

    SERIALIZABLE = "Serializable"
    """Reads and writes fit one serial order."""
    WRITE_SERIALIZABLE = "WriteSerializable"
    """Writes fit one serial order; a reader may be placed before a concurrent blind append."""
    SNAPSHOT = "SnapshotIsolation"
    """Only lost updates are prevented. Chosen here, never by a table."""


_SELECTABLE: Final = {
    level.value.lower(): level
    for level in (IsolationLevel.SERIALIZABLE, IsolationLevel.WRITE_SERIALIZABLE)
}


def table_level(metadata: Metadata) -> IsolationLevel:
    """The level the table asks for; ``WriteSerializable`` unless it says otherwise."""
    text = metadata.configuration.get(keys.ISOLATION_LEVEL)
    if text is None:
        return IsolationLevel.WRITE_SERIALIZABLE
    level = _SELECTABLE.get(text.lower())
    if level is None:
        raise UserError(
            Code.PROPERTY_INVALID,
            f"{keys.ISOLATION_LEVEL} has the value {text!r}.",
            why="Only Serializable and WriteSerializable can be chosen for a table.",
            fix=f"Run {how_to_set(keys.ISOLATION_LEVEL, 'WriteSerializable')}, or "
            f"{how_to_unset(keys.ISOLATION_LEVEL)}.",
            fields={"property": keys.ISOLATION_LEVEL, "value": text},
        )
    return level


def effective_level(
    asked: IsolationLevel, summary: CommitSummary, operation: Operation
) -> IsolationLevel:
    """The level to check under: commits that only rearrange rows need less than the table asks.

    Under ``WriteSerializable`` the operation must also be declared to rearrange only, because a
    writer may have marked real changes as ``dataChange=false``.
    """
    if summary.metadatas or summary.protocols or summary.transactions or summary.others:
        return asked
    if any(domain.domain != ROW_TRACKING_DOMAIN for domain in summary.domains):
        return asked
    if summary.changes_data:
        return asked
    if asked is IsolationLevel.SERIALIZABLE or not operation.changes_data:
        return IsolationLevel.SNAPSHOT
    return asked
