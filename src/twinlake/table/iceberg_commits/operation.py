"""The Delta operation that an Iceberg snapshot is recorded as."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from twinlake.commit import Operation, OperationName

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["delta_operation"]

_NAMES: Final[Mapping[str, str]] = {
    "append": OperationName.WRITE,
    "delete": OperationName.DELETE,
    "overwrite": OperationName.WRITE,
    "replace": OperationName.OPTIMIZE,
}
_MODES: Final[Mapping[str, str]] = {"append": "Append", "overwrite": "Overwrite"}


def delta_operation(operation: str, snapshot_id: int) -> Operation:
    """The operation of a commit that was a client's snapshot.

    >>> delta_operation("append", 7).to_dict()
    {'icebergSnapshotId': '7', 'mode': 'Append'}
    """
    parameters: dict[str, Any] = {"icebergSnapshotId": str(snapshot_id)}
    if operation in _MODES:
        parameters["mode"] = _MODES[operation]
    return Operation(name=_NAMES.get(operation, OperationName.WRITE), parameters=parameters)
