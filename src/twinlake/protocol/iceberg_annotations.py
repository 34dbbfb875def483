"""What Iceberg clients attach to snapshots and Delta has no word for: tags and statistics files.

Kept in a metadata domain of the table, so that it is in the log like everything else. It keeps no
snapshot and no data file alive: what is attached to a snapshot goes with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import msgspec

__all__ = ["ICEBERG_DOMAIN", "NO_ANNOTATIONS", "IcebergAnnotations", "SnapshotTag"]

ICEBERG_DOMAIN: Final = "twinlake.iceberg"
_SNAPSHOT: Final = "snapshot-id"
_TAG: Final = "tag"

Document = dict[str, Any]


class _Tag(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    snapshot_id: int
    max_ref_age_ms: int | None = None


class _Configuration(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    tags: dict[str, _Tag] = {}
    statistics: tuple[Document, ...] = ()
    partition_statistics: tuple[Document, ...] = ()


class SnapshotTag(NamedTuple):
    """A name for a snapshot."""

    name: str
    snapshot_id: int
    max_age_ms: int | None = None
    """How long the client wants the tag to stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergAnnotations:
    """Tags, and the statistics files of snapshots as the Iceberg metadata lists them.

    >>> found = IcebergAnnotations().with_tag(SnapshotTag("v1", 7))
    >>> found.refs()
    {'v1': {'snapshot-id': 7, 'type': 'tag'}}
    >>> IcebergAnnotations.parse(found.render()) == found
    True
    """

    tags: tuple[SnapshotTag, ...] = ()
    """One a name, in the order of the names."""
    statistics: tuple[Document, ...] = field(default=(), hash=False)
    partition_statistics: tuple[Document, ...] = field(default=(), hash=False)

    @classmethod
    def parse(cls, text: str) -> IcebergAnnotations:
        """The configuration of the domain; nothing where it is damaged.

        Any writer may put text there, and no row depends on it.
        """
        try:
            found = msgspec.json.decode(text, type=_Configuration)
        except (msgspec.DecodeError, RecursionError):
            return cls()
        return cls(
            tags=tuple(
                SnapshotTag(name, tag.snapshot_id, tag.max_ref_age_ms)
                for name, tag in sorted(found.tags.items())
            ),
            statistics=_of_snapshots(found.statistics),
            partition_statistics=_of_snapshots(found.partition_statistics),
        )

    def render(self) -> str:
        """The configuration of the domain."""
        tags = {tag.name: _Tag(tag.snapshot_id, tag.max_age_ms) for tag in self.tags}
        found = _Configuration(tags, self.statistics, self.partition_statistics)
        return msgspec.json.encode(found).decode()

    def refs(self) -> dict[str, Document]:
        """The tags as the metadata file lists them."""
        return {
            tag.name: {
                _SNAPSHOT: tag.snapshot_id,
                "type": _TAG,
                **({} if tag.max_age_ms is None else {"max-ref-age-ms": tag.max_age_ms}),
            }
            for tag in self.tags
        }

    def with_tag(self, tag: SnapshotTag) -> IcebergAnnotations:
        """A tag set or moved."""
        return replace(self, tags=tuple(sorted((*self.without_tag(tag.name).tags, tag))))

    def without_tag(self, name: str) -> IcebergAnnotations:
        """A tag removed, if there is one."""
        return replace(self, tags=tuple(tag for tag in self.tags if tag.name != name))

    def with_statistics(self, document: Document, *, of_partitions: bool) -> IcebergAnnotations:
        """The statistics file of a snapshot; it replaces the one that the snapshot had."""
        kept = self._statistics_without(document[_SNAPSHOT], of_partitions=of_partitions)
        return self._with((*kept, document), of_partitions=of_partitions)

    def without_statistics(self, snapshot: int, *, of_partitions: bool) -> IcebergAnnotations:
        """A snapshot without statistics file."""
        kept = self._statistics_without(snapshot, of_partitions=of_partitions)
        return self._with(kept, of_partitions=of_partitions)

    def _statistics_without(self, snapshot: int, *, of_partitions: bool) -> tuple[Document, ...]:
        known = self.partition_statistics if of_partitions else self.statistics
        return tuple(one for one in known if one[_SNAPSHOT] != snapshot)

    def _with(self, found: tuple[Document, ...], *, of_partitions: bool) -> IcebergAnnotations:
        if of_partitions:
            return replace(self, partition_statistics=found)
        return replace(self, statistics=found)


NO_ANNOTATIONS: Final = IcebergAnnotations()


def _of_snapshots(documents: tuple[Document, ...]) -> tuple[Document, ...]:
    return tuple(one for one in documents if isinstance(one.get(_SNAPSHOT), int))
