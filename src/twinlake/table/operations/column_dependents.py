"""What else names a column: constraints, generated columns, clustering, the statistics setting.

Expressions are stored as text with display names, so a column they use cannot be renamed, dropped
or given another type under them. The list of columns with statistics is only a list and follows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, UserError, how_to_drop_column, how_to_drop_constraint, listed
from twinlake.protocol import keys
from twinlake.schema import (
    GENERATION_EXPRESSION_KEY,
    Struct,
    parse_path,
    parse_predicate,
    render_path,
    type_at,
    walk_fields,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from twinlake.protocol import Metadata
    from twinlake.schema import ColumnPath

__all__ = [
    "Dependent",
    "dependents",
    "dropped_from_statistics",
    "refuse_dependents",
    "renamed_in_statistics",
]

_WORD: Final = re.compile(r"\w+")
_LISTED: Final = re.compile(r"(?:`(?:[^`]|``)*`|[^,`])+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependent:
    """Something that names a column and does not work without it."""

    kind: str
    name: str
    column: str
    delta_class: str
    fix: str

    def __str__(self) -> str:
        return f"{self.column} is used by {self.kind} {self.name}"


def dependents(
    metadata: Metadata,
    paths: Sequence[ColumnPath],
    *,
    clustered_by: Iterable[ColumnPath] = (),
) -> list[Dependent]:
    """Everything that depends on one of the columns, or on one inside them."""
    return [
        found
        for path in paths
        for found in (
            *_constraints(metadata, path),
            *_generated(metadata, path, paths),
            *_clustering(path, clustered_by),
        )
    ]


def refuse_dependents(
    metadata: Metadata,
    paths: Sequence[ColumnPath],
    verb: str,
    *,
    clustered_by: Iterable[ColumnPath] = (),
) -> None:
    """Raise, naming all of them, if anything depends on the columns."""
    found = dependents(metadata, paths, clustered_by=tuple(clustered_by))
    if not found:
        return
    columns = sorted({dependent.column for dependent in found})
    raise UserError(
        Code.SCHEMA_EVOLUTION,
        f"Cannot {verb} column {', '.join(columns)}.",
        why=listed(map(str, found)),
        fix=" ".join(sorted({dependent.fix for dependent in found})),
        delta_class=found[0].delta_class,
        fields={
            "columns": columns,
            "dependents": [{"kind": d.kind, "name": d.name, "column": d.column} for d in found],
        },
    )


def _constraints(metadata: Metadata, path: ColumnPath) -> Iterator[Dependent]:
    for key, text in sorted(metadata.configuration.items()):
        if key.startswith(keys.CONSTRAINTS_PREFIX) and _uses(text, metadata.schema, path):
            yield Dependent(
                kind="CHECK constraint",
                name=key.removeprefix(keys.CONSTRAINTS_PREFIX),
                column=render_path(path),
                delta_class="DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
                fix=f"Drop the constraint first with {how_to_drop_constraint('NAME')}.",
            )


def _generated(
    metadata: Metadata, path: ColumnPath, changed: Sequence[ColumnPath]
) -> Iterator[Dependent]:
    for own, column in walk_fields(metadata.schema):
        text = column.metadata.get(GENERATION_EXPRESSION_KEY)
        # A generated column that goes as well needs nothing any more.
        if not isinstance(text, str) or any(own[: len(gone)] == gone for gone in changed):
            continue
        if _uses(text, metadata.schema, path):
            yield Dependent(
                kind="generated column",
                name=render_path(own),
                column=render_path(path),
                delta_class="DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
                fix=f"Drop the generated column first with {how_to_drop_column('COLUMN')}.",
            )


def _clustering(path: ColumnPath, clustered_by: Iterable[ColumnPath]) -> Iterator[Dependent]:
    for column in clustered_by:
        if _folded(column[: len(path)]) == _folded(path):
            yield Dependent(
                kind="clustering on",
                name=render_path(column),
                column=render_path(path),
                delta_class="DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN",
                fix="Cluster the table by other columns first, with Delta Spark.",
            )


def _uses(text: str, schema: Struct, path: ColumnPath) -> bool:
    try:
        named = parse_predicate(text, schema).columns()
    except UserError:
        # Other engines accept more than can be parsed here; a name that occurs counts as used.
        words = set(_WORD.findall(text.casefold()))
        return words.issuperset(_WORD.findall(path[0].casefold()))
    return any(
        other[: len(path)] == path
        # Expressions that reach into arrays and maps are known by the array or map only.
        or (path[: len(other)] == other and not isinstance(type_at(schema, other), Struct))
        for other in named
    )


def renamed_in_statistics(metadata: Metadata, path: ColumnPath, name: str) -> Metadata:
    """The metadata with the column's new name in the list of columns with statistics."""
    new = (*path[:-1], name)
    return _relisted(
        metadata, lambda own: (*new, *own[len(path) :]) if _is_below(own, path) else own
    )


def dropped_from_statistics(metadata: Metadata, paths: Sequence[ColumnPath]) -> Metadata:
    """The metadata without the columns in the list of columns with statistics."""
    return _relisted(
        metadata, lambda own: None if any(_is_below(own, path) for path in paths) else own
    )


def _relisted(metadata: Metadata, change: Callable[[ColumnPath], ColumnPath | None]) -> Metadata:
    text = metadata.configuration.get(keys.DATA_SKIPPING_STATS_COLUMNS)
    if text is None:
        return metadata
    kept, changed = [], False
    for item in (part.strip() for part in _LISTED.findall(text)):
        try:
            own = parse_path(item)
        except UserError:
            kept.append(item)
            continue
        new = change(own)
        changed = changed or new != own
        if new is not None:
            kept.append(item if new == own else render_path(new))
    return (
        metadata.with_configuration({keys.DATA_SKIPPING_STATS_COLUMNS: ",".join(kept)})
        if changed
        else metadata
    )


def _is_below(own: ColumnPath, path: ColumnPath) -> bool:
    return _folded(own[: len(path)]) == _folded(path)


def _folded(path: ColumnPath) -> ColumnPath:
    return tuple(part.casefold() for part in path)
