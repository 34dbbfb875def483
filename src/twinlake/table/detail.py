"""One screen about a table: what ``DESCRIBE DETAIL`` would say, and what it leaves out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from twinlake.actions import find_clustering
from twinlake.log import render_timestamp
from twinlake.protocol.properties import redact_property
from twinlake.schema import render_ddl, render_path
from twinlake.table.rendering import files_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.log import Snapshot
    from twinlake.schema import ColumnPath

__all__ = [
    "Detail",
    "clustering_columns",
    "clustering_paths",
    "describe",
    "detail_html",
    "shown_properties",
]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Detail:
    """A table at one version, described."""

    location: str
    id: str
    name: str | None
    description: str | None
    version: int
    created_at: int | None
    last_modified: int
    columns: str
    partition_columns: tuple[str, ...]
    clustering_columns: tuple[str, ...]
    num_files: int
    size_in_bytes: int
    num_deletion_vectors: int
    min_reader_version: int
    min_writer_version: int
    features: tuple[str, ...]
    properties: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def __repr__(self) -> str:
        return (
            f"<Detail of {self.location} version {self.version}, protocol "
            f"{self.min_reader_version},{self.min_writer_version}, "
            f"{files_text(self.num_files, self.size_in_bytes)}>"
        )

    def _repr_html_(self) -> str:
        return detail_html(self, self.columns)


def detail_html(detail: Detail, columns: str) -> str:
    """One screen for a notebook: what the table is, its columns, its properties."""
    from twinlake._html import fields, grid, page

    vectors = detail.num_deletion_vectors
    more = f", {vectors:,} with a deletion vector" if vectors else ""
    summary = [
        ("location", detail.location),
        ("about", detail.description),
        ("version", str(detail.version)),
        ("created", render_timestamp(detail.created_at) if detail.created_at else ""),
        ("changed", render_timestamp(detail.last_modified)),
        ("protocol", f"reader {detail.min_reader_version}, writer {detail.min_writer_version}"),
        ("features", ", ".join(detail.features) or "none"),
        ("partitioned by", ", ".join(detail.partition_columns)),
        ("clustered by", ", ".join(detail.clustering_columns)),
        ("data", files_text(detail.num_files, detail.size_in_bytes) + more),
    ]
    title = detail.name or detail.location.rstrip("/").rpartition("/")[2]
    properties = grid(("property", "value"), detail.properties.items())
    return page(title, fields(summary), columns, properties)


def describe(snapshot: Snapshot) -> Detail:
    """The detail record of a snapshot; values that look like credentials are masked."""
    metadata, counters = snapshot.metadata, snapshot.counters
    return Detail(
        location=snapshot.store.url,
        id=metadata.id,
        name=metadata.name,
        description=metadata.description,
        version=snapshot.version,
        created_at=metadata.created_time,
        last_modified=snapshot.timestamp_ms,
        columns=render_ddl(metadata.schema),
        partition_columns=metadata.partition_columns,
        clustering_columns=clustering_columns(snapshot),
        num_files=counters.num_files,
        size_in_bytes=counters.size_in_bytes,
        num_deletion_vectors=counters.num_deletion_vectors,
        min_reader_version=snapshot.protocol.min_reader_version,
        min_writer_version=snapshot.protocol.min_writer_version,
        features=tuple(sorted(snapshot.protocol.feature_names)),
        properties=shown_properties(metadata.configuration),
    )


def shown_properties(configuration: Mapping[str, str]) -> dict[str, str]:
    """Properties fit for showing: sorted, credentials masked."""
    return {key: str(redact_property(key, configuration[key])) for key in sorted(configuration)}


def clustering_columns(snapshot: Snapshot) -> tuple[str, ...]:
    """The clustering columns by logical dotted path, from the system's domain."""
    return tuple(render_path(path) for path in clustering_paths(snapshot))


def clustering_paths(snapshot: Snapshot) -> tuple[ColumnPath, ...]:
    """The clustering columns by logical path."""
    found = find_clustering(snapshot.domains.values())
    return () if found is None else found.logical_paths(snapshot.metadata)
