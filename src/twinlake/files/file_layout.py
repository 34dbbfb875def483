"""How rows are laid out in data files: names, types, field ids, and which columns stay out.

Both writers follow one layout, so that their files are the same. Every
column is optional in the file, as Delta Spark's are, whatever is NOT NULL in the table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from twinlake.compat import VERSION_TAG, enabled_compats
from twinlake.protocol import features, keys
from twinlake.schema import (
    ID_KEY,
    LONG,
    VOID,
    Array,
    ColumnMappingMode,
    DataType,
    Map,
    Struct,
    StructField,
    UserDefined,
    physical_schema,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twinlake.files.file_target import FileTarget
    from twinlake.protocol import Metadata, Protocol

__all__ = [
    "FileLayout",
    "as_optional",
    "file_tags",
    "must_materialise",
    "row_id_fields",
    "row_tracking_columns",
]

_ROW_ID_FIELD_IDS: Final = (2147483540, 2147483539)
"""What Iceberg calls a row's id and the sequence number of its last change."""
_MATERIALISING: Final = (
    keys.ENABLE_MATERIALIZE_PARTITION_COLUMNS,
    "delta.writePartitionColumnsToParquet",
    keys.ENABLE_CHANGE_DATA_FEED,
)


def must_materialise(metadata: Metadata, protocol: Protocol | None = None) -> bool:
    """Whether files hold the partition columns too.

    Delta protocol, Iceberg Compatibility and Materialize Partition Columns. So do those of tables
    with a change feed: Delta Spark reads old changes by the newest metadata, and once a table
    is no longer partitioned it looks for all columns in the files, where it writes them itself.

    >>> from twinlake.protocol import Metadata
    >>> must_materialise(Metadata(configuration={"delta.enableIcebergCompatV2": "true"}))
    True
    """
    if protocol is not None and protocol.is_supported(features.MATERIALIZE_PARTITION_COLUMNS):
        return True
    if enabled_compats(metadata):
        return True
    return any(metadata.flag(key) for key in _MATERIALISING)


def file_tags(target: FileTarget) -> dict[str, str | None] | None:
    """The tags of a new file: the version of the Iceberg compat feature that it was written for.

    >>> from twinlake.protocol import Metadata
    >>> from twinlake.files.file_target import FileTarget
    >>> compat = Metadata(configuration={"delta.enableIcebergCompatV2": "true"})
    >>> file_tags(FileTarget(url="memory://t", metadata=compat))
    {'ICEBERG_COMPAT_VERSION': '2'}
    """
    version = max((compat.version for compat in enabled_compats(target.metadata)), default=0)
    return {VERSION_TAG: str(version)} if version >= 2 and not target.folder else None


def row_id_fields(metadata: Metadata, names: Sequence[str]) -> tuple[StructField, ...]:
    """The hidden columns of row ids and commit versions, as files hold them."""
    third = any(compat.version >= 3 for compat in enabled_compats(metadata))
    return tuple(
        StructField(name, LONG, metadata={ID_KEY: number} if third else {})
        for name, number in zip(names, _ROW_ID_FIELD_IDS, strict=True)
    )


def row_tracking_columns(metadata: Metadata) -> tuple[str, str]:
    """The hidden columns in which rewritten rows carry their row id and commit version."""
    configuration = metadata.configuration
    return (
        configuration.get(keys.MATERIALIZED_ROW_ID, "__no_row_id"),
        configuration.get(keys.MATERIALIZED_ROW_COMMIT_VERSION, "__no_version"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLayout:
    """The columns of a frame as files spell them, and which of them go where."""

    columns: tuple[StructField, ...]
    """All columns of the frame in its order, under the names of the files."""
    partitions: tuple[int, ...]
    """Which of them partition the table, in the order of the partitioning."""
    kept: tuple[int, ...]
    """Which of them files hold, in the order of the file."""
    field_ids: bool

    @classmethod
    def of(cls, target: FileTarget) -> FileLayout:
        """The layout of a table's files."""
        metadata = target.metadata
        mode = metadata.column_mapping_mode
        logical = metadata.schema
        columns = tuple(
            replace(f, type=as_optional(f.type), nullable=True)
            for f in (*physical_schema(logical, mode), *target.extra)
        )
        folded = [name.casefold() for name in logical.names()]
        partitions = tuple(folded.index(c.casefold()) for c in metadata.partition_columns)
        data = (i for i, f in enumerate(columns) if i not in partitions and f.type != VOID)
        # After the data, where IcebergCompatV1 wants them; others find columns by id.
        extra = partitions if must_materialise(metadata, target.protocol) else ()
        return cls(
            columns=columns,
            partitions=partitions,
            kept=(*data, *extra),
            field_ids=mode is not ColumnMappingMode.NONE,
        )

    @property
    def materialises(self) -> bool:
        """Whether a file holds partition columns."""
        return any(i in self.partitions for i in self.kept)


def as_optional(kind: DataType) -> DataType:
    """The type with nulls allowed at every level, but for the keys of maps."""
    match kind:
        case Struct(fields):
            return Struct(
                tuple(replace(f, type=as_optional(f.type), nullable=True) for f in fields)
            )
        case Array(element):
            return Array(as_optional(element), True)
        case Map(key, value):
            return Map(as_optional(key), as_optional(value), True)
        case UserDefined(sql_type):
            return as_optional(sql_type)
        case _:
            return kind
