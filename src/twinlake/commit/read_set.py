"""What a transaction read: the other half of every conflict rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from twinlake.errors import TwinlakeError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from twinlake.actions import AddFile, Metadata
    from twinlake.schema import ColumnPath
    from twinlake.schema.predicates import Expr

__all__ = ["ReadSet", "partition_matches"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSet:
    """Files, predicates, application ids and domains that a transaction looked at.

    >>> ReadSet(files=frozenset({"a.parquet"})).reads_data
    True
    """

    files: frozenset[str] = frozenset()
    predicates: tuple[Expr, ...] = ()
    whole_table: bool = False
    app_ids: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()

    @property
    def reads_data(self) -> bool:
        """Whether any rows or files of the table were looked at."""
        return self.whole_table or bool(self.files) or bool(self.predicates)

    def merge(self, other: ReadSet) -> ReadSet:
        """All that either has."""
        return ReadSet(
            files=self.files | other.files,
            predicates=(*self.predicates, *other.predicates),
            whole_table=self.whole_table or other.whole_table,
            app_ids=self.app_ids | other.app_ids,
            domains=self.domains | other.domains,
        )

    def without_files(self, paths: Collection[str]) -> ReadSet:
        """The same without these files."""
        return replace(self, files=self.files.difference(paths))

    def with_files(self, paths: Iterable[str]) -> ReadSet:
        """The same with these files as well."""
        return replace(self, files=self.files.union(paths))


def partition_matches(
    predicate: Expr, adds: Sequence[AddFile], metadata: Metadata
) -> Sequence[bool]:
    """For each added file, whether ``predicate`` may have wanted to read it.

    Only conjuncts over partition columns are looked at, evaluated on the file's partition values;
    a predicate without one matches every file. Unknown (null) counts as no match, as in WHERE.
    """
    from twinlake.schema.predicates import is_partition_only, split_conjuncts

    columns = metadata.partition_columns
    narrowing = [part for part in split_conjuncts(predicate) if is_partition_only(part, columns)]
    if not narrowing or not columns or not adds:
        return [True] * len(adds)

    import pyarrow as pa

    from twinlake.protocol import partition_zone
    from twinlake.schema import field_at, partition_array, physical_name
    from twinlake.schema.predicates import evaluate_on

    matches = [True] * len(adds)
    try:
        arrays: dict[ColumnPath, pa.Array] = {}
        for name in columns:
            field = field_at(metadata.schema, (name,))
            stored = physical_name(field)
            texts = pa.array([add.partition_values.get(stored) for add in adds], pa.string())
            zone = partition_zone(metadata)
            arrays[(field.name,)] = partition_array(texts, field.type, zone=zone)
        for part in narrowing:
            mask = evaluate_on(part, arrays, len(adds)).to_pylist()
            matches = [sofar and now is True for sofar, now in zip(matches, mask, strict=True)]
    except TwinlakeError:
        # Values that cannot be understood may match: a false alarm is better than a lost update.
        return [True] * len(adds)
    return matches
