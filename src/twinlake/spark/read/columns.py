"""From the columns of a table to the columns that are read, and back.

At the top level columns are read by their physical names and aliased above the scan, so that
filters still reach Parquet. Below, fields keep their logical names and are found by id, so that
Spark still prunes them; where files have no ids, they are read by physical name and renamed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from twinlake.schema import (
    Array,
    ColumnMappingMode,
    Map,
    Struct,
    StructField,
    field_id,
    map_fields,
    physical_name,
    walk_fields,
)
from twinlake.spark.rows.char_padding import padded_for
from twinlake.spark.spark_types import quoted, spark_type
from twinlake.table.rows import read_field_metadata

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType as SparkDataType

    from twinlake.protocol import Metadata

__all__ = ["ReadColumns", "visible_field", "visible_type"]

_FIELD_ID: Final = "parquet.field.id"


def visible_field(field: StructField) -> StructField:
    """The field as a reader sees it: without what concerns only the table's own bookkeeping."""
    shown = map_fields(
        Struct((field,)), lambda _, inner: replace(inner, metadata=read_field_metadata(inner))
    )
    assert isinstance(shown, Struct)
    return shown.fields[0]


def visible_type(field: StructField) -> SparkDataType:
    """The type of the field as a reader sees it, for casts."""
    return spark_type(Struct((visible_field(field),)))[0].dataType


@dataclass(frozen=True, kw_only=False)
class ReadColumns:
    """How the columns of one table are read."""

    metadata: Metadata
    nested_by_id: bool = True

    @cached_property
    def mode(self) -> ColumnMappingMode:
        """Column mapping."""
        return self.metadata.column_mapping_mode

    @cached_property
    def _partition_names(self) -> frozenset[str]:
        return frozenset(name.casefold() for name in self.metadata.partition_columns)

    @cached_property
    def data(self) -> tuple[StructField, ...]:
        """The table's columns that are not partition columns."""
        return tuple(
            f for f in self.metadata.schema if f.name.casefold() not in self._partition_names
        )

    @cached_property
    def partitions(self) -> tuple[StructField, ...]:
        """The partition columns, in partitioning order."""
        found = (self.metadata.schema.get(name) for name in self.metadata.partition_columns)
        return tuple(field for field in found if field is not None)

    @cached_property
    def renamed_inside(self) -> bool:
        """Whether a field below the top level has another name in files."""
        return any(
            len(path) > 1 and physical_name(field) != field.name
            for path, field in walk_fields(Struct(self.data))
        )

    @cached_property
    def data_fields(self) -> tuple[StructField, ...]:
        """What Spark is asked to find in the files."""
        return tuple(self._read_field(field) for field in self.data)

    @cached_property
    def partition_fields(self) -> tuple[StructField, ...]:
        """The partition columns as folders name them."""
        return tuple(StructField(self.name_in_files(f), f.type) for f in self.partitions)

    def name_in_files(self, field: StructField) -> str:
        """A top-level column's name in files and folders."""
        return field.name if self.mode is ColumnMappingMode.NONE else physical_name(field)

    def _read_field(self, field: StructField) -> StructField:
        if self.mode is ColumnMappingMode.NONE:
            return visible_field(field)
        by_id = self.mode is ColumnMappingMode.ID
        by_name_below = self.mode is ColumnMappingMode.NAME and (
            not self.renamed_inside or not self.nested_by_id
        )

        def below(inner: StructField) -> StructField:
            if by_name_below:
                return replace(inner, name=physical_name(inner), metadata={}, nullable=True)
            return replace(inner, metadata=_id_of(inner), nullable=True)

        kind = map_fields(field.type, lambda _, inner: below(inner))
        metadata = _id_of(field) if by_id else {}
        # Spark pads CHAR values where it sees the type on the source itself.
        return StructField(
            physical_name(field), kind, metadata={**metadata, **read_field_metadata(field)}
        )

    def only_partition(self, files: pa.Table) -> tuple[Any, ...] | None:
        """The partition values, where all files share them: then they are constants."""
        if not self.partitions or not len(files):
            return None
        distinct = (
            files.select(["partition_values"])
            .flatten()
            .group_by([f"partition_values.{field.name}" for field in self.partitions])
        )
        found = distinct.aggregate([])
        return tuple(column[0] for column in found.columns) if len(found) == 1 else None

    def select(
        self,
        raw: DataFrame,
        *,
        partitions: Callable[[int], Column] | None,
        constants: tuple[Any, ...] | None,
    ) -> list[Column] | None:
        """The table's columns in their order; None if the frame already has just these."""
        if (
            self.mode is ColumnMappingMode.NONE
            and partitions is None
            and constants is None
            and raw.columns == [field.name for field in self.metadata.schema]
        ):
            return None
        number = {field.name: position for position, field in enumerate(self.partitions)}
        chosen = []
        for field in self.metadata.schema:
            position = number.get(field.name)
            if position is not None and constants is not None:
                column = padded_for(raw.sparkSession, _constant(constants[position], field), field)
            elif position is not None and partitions is not None:
                column = padded_for(raw.sparkSession, partitions(position), field)
            else:
                column = F.col(quoted(self.name_in_files(field)))
                if self._is_cast(field):
                    column = column.cast(visible_type(field))
            chosen.append(column.alias(field.name, metadata=read_field_metadata(field)))
        return chosen

    def _is_cast(self, field: StructField) -> bool:
        return (
            self.mode is ColumnMappingMode.NAME
            and self.renamed_inside
            and not self.nested_by_id
            and isinstance(field.type, Struct | Array | Map)
        )


def _id_of(field: StructField) -> dict[str, Any]:
    number = field_id(field)
    return {} if number is None else {_FIELD_ID: number}


def _constant(value: Any, field: StructField) -> Column:
    """A partition value as a literal of the column's type."""
    kind = visible_type(field)
    plain = value.as_py() if hasattr(value, "as_py") else value
    if isinstance(plain, date):
        # As text. Objects go through Java's old calendar, which moves days before 1582 and knows
        # no years of three digits; without a zone they would be instants in this process's zone.
        plain = str(plain)
    return F.lit(plain).cast(kind)
