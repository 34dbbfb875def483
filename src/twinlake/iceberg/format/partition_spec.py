"""Delta's partitioning as Iceberg's: identity transforms, typed values, summaries.

A spec lists the partition columns in Delta's order; its field ids follow the source column, so that
the same column has the same id in every spec of the table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, CorruptTable
from twinlake.iceberg.format.content_id import content_id
from twinlake.iceberg.format.schema import delta_type
from twinlake.iceberg.format.single_value import encode_value, plain_value
from twinlake.schema import (
    DOUBLE,
    FLOAT,
    DataType,
    field_id,
    parse_partition_value,
    physical_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import tzinfo

    from twinlake.protocol import Metadata

__all__ = [
    "FIRST_FIELD_ID",
    "PartitionField",
    "PartitionFieldSummary",
    "PartitionSpec",
    "partition_spec",
    "partition_tuple",
    "summarize_partitions",
]

FIRST_FIELD_ID: Final = 1000


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One column of a spec."""

    source_id: int
    field_id: int
    name: str
    physical: str = field(compare=False)
    """The key of Delta's ``partitionValues``."""
    type: DataType = field(compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The field as the metadata file and manifests list it."""
        return {
            "source-id": self.source_id,
            "field-id": self.field_id,
            "transform": "identity",
            "name": self.name,
        }


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """The partition columns of a table; two are equal when they are the same to Iceberg."""

    fields: tuple[PartitionField, ...] = ()
    known_id: int | None = None
    """The id it was given when its fields had other names."""

    @property
    def id(self) -> int:
        """The id of the spec: 0 without partitions, else computed from what is partitioned by."""
        if self.known_id is not None:
            return self.known_id
        return content_id(self._listed()) if self.fields else 0

    @property
    def types(self) -> tuple[DataType, ...]:
        """The types of the fields."""
        return tuple(part.type for part in self.fields)

    @property
    def last_field_id(self) -> int:
        """The highest field id, or the one before the first that a spec may use."""
        return max((part.field_id for part in self.fields), default=FIRST_FIELD_ID - 1)

    def to_dict(self) -> dict[str, Any]:
        """The spec as the metadata file lists it."""
        return {"spec-id": self.id, "fields": self._listed()}

    @classmethod
    def from_dict(
        cls, document: Mapping[str, Any], schemas: Iterable[Mapping[str, Any]]
    ) -> PartitionSpec | None:
        """A spec of a metadata file; types are those of the last of the schemas that has them.

        None where none has them: then no file that is left can lie under the spec.
        """
        types = {field["id"]: field["type"] for schema in schemas for field in schema["fields"]}
        if any(part["source-id"] not in types for part in document["fields"]):
            return None
        return cls(
            known_id=document["spec-id"],
            fields=tuple(
                PartitionField(
                    part["source-id"],
                    part["field-id"],
                    part["name"],
                    "",
                    delta_type(types[part["source-id"]]),
                )
                for part in document["fields"]
            ),
        )

    def _listed(self) -> list[dict[str, Any]]:
        return [part.to_dict() for part in self.fields]


def partition_spec(metadata: Metadata) -> PartitionSpec:
    """The spec of a table."""
    found = []
    for name in metadata.partition_columns:
        column = metadata.schema.get(name)
        source = None if column is None else field_id(column)
        if column is None or source is None:
            raise CorruptTable(
                Code.SCHEMA_INVALID,
                f"Table {metadata.label} is partitioned by {name}, which has no column id.",
                why="Iceberg binds partitions to column ids.",
                fix="Run `twinlake upgrade PATH --yes` or `Table.upgrade(FEATURE)`.",
                fields={"table": metadata.label, "column": name},
            )
        # Computed from the column, so that it does not hang on how much history is known.
        own = FIRST_FIELD_ID - 1 + source
        found.append(PartitionField(source, own, column.name, physical_name(column), column.type))
    return PartitionSpec(tuple(found))


def partition_tuple(
    values: Mapping[str, str | None], spec: PartitionSpec, zone: tzinfo
) -> tuple[Any, ...]:
    """The typed values of a file's partition, in the order of the spec."""
    return tuple(_plain(values.get(part.physical), part.type, zone) for part in spec.fields)


@lru_cache(maxsize=4096)
def _plain(text: str | None, kind: DataType, zone: tzinfo) -> Any:
    return plain_value(parse_partition_value(text, kind, zone=zone))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFieldSummary:
    """What a manifest list says of one partition field of a manifest; engines prune on it."""

    contains_null: bool = False
    contains_nan: bool = False
    lower: bytes | None = None
    upper: bytes | None = None


def summarize_partitions(
    tuples: Iterable[tuple[Any, ...]], spec: PartitionSpec
) -> tuple[PartitionFieldSummary, ...]:
    """The summary of each partition field over the files of a manifest."""
    distinct = set(tuples)
    return tuple(
        _summary({values[index] for values in distinct}, part.type)
        for index, part in enumerate(spec.fields)
    )


def _summary(values: set[Any], kind: DataType) -> PartitionFieldSummary:
    real = kind in (FLOAT, DOUBLE)
    is_nan = real and any(value is not None and math.isnan(value) for value in values)
    # To Spark NaN lies above all numbers, but no bound may be NaN; without the next best one
    # Iceberg leaves the manifest out when a query asks for what is greater than some number.
    known = [math.inf if real and math.isnan(v) else v for v in values if v is not None]
    if not known:
        return PartitionFieldSummary(contains_null=None in values)
    # Of the two zeros, which compare as equal, the lower bound is the negative one.
    lowest, highest = min(known), max(known)
    if real:
        lowest = lowest or -0.0
        highest = highest or 0.0
    return PartitionFieldSummary(
        contains_null=None in values,
        contains_nan=is_nan,
        lower=encode_value(lowest, kind),
        upper=encode_value(highest, kind),
    )
