"""What a commit says it does: the operation recorded in ``commitInfo``.

Names are Delta's own, because people and tools filter history by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import msgspec

__all__ = ["Operation", "OperationName", "encode_parameter"]


class OperationName(StrEnum):
    """The operations Delta writes into its history."""

    CREATE_TABLE = "CREATE TABLE"
    CREATE_TABLE_AS_SELECT = "CREATE TABLE AS SELECT"
    REPLACE_TABLE = "REPLACE TABLE"
    REPLACE_TABLE_AS_SELECT = "REPLACE TABLE AS SELECT"
    CREATE_OR_REPLACE_TABLE = "CREATE OR REPLACE TABLE"
    CREATE_OR_REPLACE_TABLE_AS_SELECT = "CREATE OR REPLACE TABLE AS SELECT"
    CONVERT = "CONVERT"
    CLONE = "CLONE"
    WRITE = "WRITE"
    STREAMING_UPDATE = "STREAMING UPDATE"
    DELETE = "DELETE"
    UPDATE = "UPDATE"
    MERGE = "MERGE"
    TRUNCATE = "TRUNCATE"
    OPTIMIZE = "OPTIMIZE"
    REORG = "REORG"
    COMPUTE_STATS = "COMPUTE STATS"
    SET_TBLPROPERTIES = "SET TBLPROPERTIES"
    UNSET_TBLPROPERTIES = "UNSET TBLPROPERTIES"
    ADD_COLUMNS = "ADD COLUMNS"
    CHANGE_COLUMN = "CHANGE COLUMN"
    CHANGE_COLUMNS = "CHANGE COLUMNS"
    RENAME_COLUMN = "RENAME COLUMN"
    DROP_COLUMNS = "DROP COLUMNS"
    REPLACE_COLUMNS = "REPLACE COLUMNS"
    UPDATE_SCHEMA = "UPDATE SCHEMA"
    ADD_CONSTRAINT = "ADD CONSTRAINT"
    DROP_CONSTRAINT = "DROP CONSTRAINT"
    UPGRADE_PROTOCOL = "UPGRADE PROTOCOL"
    ADD_FEATURE = "ADD FEATURE"
    DROP_FEATURE = "DROP FEATURE"
    CLUSTER_BY = "CLUSTER BY"
    RESTORE = "RESTORE"
    VACUUM_START = "VACUUM START"
    VACUUM_END = "VACUUM END"
    ROW_TRACKING_BACKFILL = "ROW TRACKING BACKFILL"
    ROW_TRACKING_UNBACKFILL = "ROW TRACKING UNBACKFILL"
    DOMAIN_METADATA_CLEANUP = "DOMAIN METADATA CLEANUP"
    MANUAL_UPDATE = "Manual Update"
    DELETION_VECTOR_TOMBSTONES = "Deletion Vector Tombstones"
    EMPTY_COMMIT = "Empty Commit"


_REARRANGES: Final = frozenset(
    {
        OperationName.OPTIMIZE,
        OperationName.REORG,
        OperationName.COMPUTE_STATS,
        OperationName.ROW_TRACKING_BACKFILL,
        OperationName.ROW_TRACKING_UNBACKFILL,
        OperationName.VACUUM_START,
        OperationName.VACUUM_END,
        OperationName.DELETION_VECTOR_TOMBSTONES,
        OperationName.EMPTY_COMMIT,
    }
)
_REPLACES: Final = frozenset(
    {
        OperationName.REPLACE_TABLE,
        OperationName.REPLACE_TABLE_AS_SELECT,
        OperationName.CREATE_OR_REPLACE_TABLE,
        OperationName.CREATE_OR_REPLACE_TABLE_AS_SELECT,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation with its parameters and, once it has run, its metrics.

    >>> Operation(name="WRITE", parameters={"mode": "Append", "partitionBy": ["d"]}).to_dict()
    {'mode': 'Append', 'partitionBy': '["d"]'}
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    is_data_change: bool | None = None
    """Whether rows may change; by default what the name says."""

    @property
    def changes_data(self) -> bool:
        """False for operations declared to move rows without changing them."""
        return self.name not in _REARRANGES if self.is_data_change is None else self.is_data_change

    @property
    def is_backfill(self) -> bool:
        """Whether it only hands out row ids to files that have none."""
        return self.name == OperationName.ROW_TRACKING_BACKFILL

    @property
    def is_feature_drop(self) -> bool:
        """Whether it lowers the protocol."""
        return self.name == OperationName.DROP_FEATURE

    @property
    def is_replace(self) -> bool:
        """Whether it puts another table in the place of this one."""
        return self.name in _REPLACES

    def to_dict(self) -> dict[str, Any]:
        """The parameters as ``commitInfo.operationParameters`` holds them."""
        return {key: encode_parameter(value) for key, value in self.parameters.items()}

    def metrics_to_dict(self) -> dict[str, str]:
        """The metrics as strings, as ``commitInfo.operationMetrics`` holds them."""
        return {key: _metric(value) for key, value in self.metrics.items()}


def encode_parameter(value: Any) -> str | float | bool | None:
    """A parameter as Delta spells it: a single value as it is, several as JSON inside a string.

    >>> encode_parameter("Append"), encode_parameter(True), encode_parameter({"a": "1"})
    ('Append', True, '{"a":"1"}')
    """
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Mapping):
        value = dict(value)
    elif isinstance(value, (set, frozenset)):
        value = sorted(value)
    return msgspec.json.encode(value, enc_hook=_plain).decode()


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


def _metric(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
