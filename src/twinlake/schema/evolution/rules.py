"""What a schema change may do to a table that has files: one list of rules.

Every commit that carries metadata is asked, by whichever call it came. A rule about files holds as
long as a file stays that was written before the change; where none does, there is nothing that the
new schema could misread. Each rule finds everything that breaks it, with the path of the column.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from twinlake.errors import how_to_set
from twinlake.schema.evolution.alignment import Alignment, ColumnPair, align, file_name
from twinlake.schema.evolution.widening import can_widen, type_changes
from twinlake.schema.mapping import (
    ColumnMappingMode,
    field_id,
    highest_id,
    nested_ids,
)
from twinlake.schema.metadata_keys import (
    COLUMN_MAPPING_MODE,
    ENABLE_TYPE_WIDENING,
    MAX_COLUMN_ID,
)
from twinlake.schema.paths import render_path
from twinlake.schema.types import (
    BYTE,
    INTEGER,
    SHORT,
    VOID,
    Array,
    DataType,
    Map,
    Struct,
    StructField,
    walk_fields,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from twinlake.schema.types import ColumnPath

__all__ = [
    "FILE_RULES",
    "MODE_CHANGES",
    "SCHEMA_CHANGE_RULES",
    "SchemaChange",
    "SchemaChangeRule",
    "SchemaChangeViolation",
    "schema_change_violations",
]

_SMALL_INTEGERS: Final = (BYTE, SHORT, INTEGER)
"""Files hold all three as 32 bits, so each may become a later one without a feature."""

MODE_CHANGES: Final = frozenset(
    {(mode, mode) for mode in ColumnMappingMode}
    | {(ColumnMappingMode.NONE, ColumnMappingMode.NAME)}
)
"""The column mapping modes that may follow each other over the same files."""


@dataclass(frozen=True, kw_only=True)
class SchemaChange:
    """A schema before and after, with what decides how files are read under it."""

    before: Struct
    after: Struct
    old_mode: ColumnMappingMode = ColumnMappingMode.NONE
    new_mode: ColumnMappingMode = ColumnMappingMode.NONE
    old_partitions: Sequence[str] = ()
    new_partitions: Sequence[str] = ()
    old_max_id: int = 0
    new_max_id: int = 0
    widens: bool = False
    """Whether type widening is enabled afterwards."""
    records_widening: bool = False
    """Whether the feature is supported afterwards: then types keep their history."""

    @cached_property
    def columns(self) -> Alignment:
        """The columns of both schemas, side by side."""
        return align(self.before, self.after, self.old_mode, self.new_mode)

    @property
    def was_mapped(self) -> bool:
        """Whether columns had ids before."""
        return self.old_mode is not ColumnMappingMode.NONE

    @cached_property
    def old_ids(self) -> dict[int, ColumnPath]:
        """Every column id before, with the path of its column."""
        if not self.was_mapped:
            return {}
        fields = walk_fields(self.before)
        return {own: path for path, field in fields if (own := field_id(field)) is not None}

    @cached_property
    def highest_id_ever(self) -> int:
        """The highest id that any column had before, also one that is gone."""
        return max(self.old_max_id, highest_id(self.before)) if self.was_mapped else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChangeRule:
    """One row of the registry."""

    id: str
    name: str
    find: Callable[[SchemaChange], Iterable[tuple[ColumnPath, str]]]
    fix: str
    delta_class: str | None = None
    files: bool = True
    """Whether it holds only while files stay that were written before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChangeViolation:
    """One thing that a change must not do, and to which column."""

    rule: SchemaChangeRule
    path: str
    message: str

    @property
    def fix(self) -> str:
        """What to do, with the column in its place."""
        return self.rule.fix.replace("COLUMN", self.path)

    def __str__(self) -> str:
        return f"{self.path} {self.message}".strip()


def schema_change_violations(
    change: SchemaChange, *, keeps_files: bool = True, waived: Collection[str] = ()
) -> Iterator[SchemaChangeViolation]:
    """Everything that the rules have against a change, in the order of the rules."""
    for rule in SCHEMA_CHANGE_RULES:
        if rule.id in waived or (rule.files and not keeps_files):
            continue
        found = False
        for path, message in rule.find(change):
            found = True
            yield SchemaChangeViolation(rule=rule, path=render_path(path), message=message)
        if found and rule is _MODE:
            # Which column is which cannot be said across such modes.
            return


def _mode(change: SchemaChange) -> Iterator[tuple[ColumnPath, str]]:
    if (change.old_mode, change.new_mode) not in MODE_CHANGES:
        yield (), f"the column mapping mode goes from {change.old_mode} to {change.new_mode}"


def _dropped(change: SchemaChange) -> Iterator[tuple[ColumnPath, str]]:
    if change.new_mode is ColumnMappingMode.NONE:
        for path, _ in change.columns.dropped:
            yield path, "is dropped or renamed, and the table has no column mapping"


def _ids(change: SchemaChange) -> Iterator[tuple[ColumnPath, str]]:
    for pair in _fields(change):
        old, new = field_id(pair.old_field), field_id(pair.new_field)
        if change.was_mapped and old is not None and old != new:
            yield pair.path, f"changes its column id from {old} to {_shown(new)}"


def _physical_names(change: SchemaChange) -> Iterator[tuple[ColumnPath, str]]:
    for pair in _fields(change):
        old = file_name(pair.old_field, change.old_mode)
        new = file_name(pair.new_field, change.new_mode)
        if old != new:
            yield pair.path, f"changes its physical name from {old} to {new}"


def _nested(change: SchemaChange) -> Iterator[tuple[ColumnPath, str]]:
    if not change.was_mapped:
        return
    for pair in _fields(change):
        now = nested_ids(pair.new_field)
        for where, old in nested_ids(pair.old_field).items():
            if now.get(where) != old:
                text = f"changes the id of {where} from {old} to {_shown(now.get(where))}"
                yield pair.path, text


def _moved(change: SchemaChange) -> Iterator[tuple[ColumnPath, str]]:
    if not change.was_mapped:
        return
    paired = {field_id(pair.old_field) for pair in _fields(change)}
    for path, field in change.columns.added:
        own = field_id(field)
        if own is not None and own in change.old_ids and own not in paired:
            yield path, f"was {render_path(change.old_ids[own])}: it moves to another level"


def _reused(change: SchemaChange) -> Iterator[tuple[ColumnPath, str]]:
    for path, field in change.columns.added:
        for number in _own_ids(field):
            if number not in change.old_ids and number <= change.highest_id_ever:
                yield path, f"takes column id {number}, which was given out before"


def _types(change: SchemaChange) -> Iterator[tuple[ColumnPath, str]]:
    for pair in _retyped(change):
        if not can_widen(pair.old_type, pair.new_type):
            yield pair.path, f"changes its type from {pair.old_type} to {pair.new_type}"


def _widening(change: SchemaChange) -> Iterator[tuple[ColumnPath, str]]:
    for pair in _retyped(change):
        if not can_widen(pair.old_type, pair.new_type):
            continue
        text = f"is widened from {pair.old_type} to {pair.new_type}"
        if not change.widens:
            yield pair.path, f"{text}, and type widening is not enabled"
        elif not any(
            entry.field_path == pair.below and entry.to_type == pair.new_type
            for entry in type_changes(pair.new_field)
        ):
            yield pair.path, f"{text} without an entry in its type history"


def _history(change: SchemaChange) -> Iterator[tuple[ColumnPath, str]]:
    if not change.records_widening:
        return
    for pair in _fields(change):
        if lost := set(type_changes(pair.old_field)) - set(type_changes(pair.new_field)):
            yield pair.path, f"loses {len(lost)} of the entries in its type history"


def _nullability(change: SchemaChange) -> Iterator[tuple[ColumnPath, str]]:
    for pair in change.columns.pairs:
        if pair.old_nullable and not pair.new_nullable:
            yield pair.path, "becomes required, and existing rows may hold nulls"


def _required(change: SchemaChange) -> Iterator[tuple[ColumnPath, str]]:
    for path, field in change.columns.added:
        if path in change.columns.added_roots and not field.nullable:
            yield path, "is added as required, and existing rows have no value for it"


def _partitions(change: SchemaChange) -> Iterator[tuple[ColumnPath, str]]:
    names = {pair.old_path: pair.path for pair in _fields(change)}
    stay = [names.get(path, ()) for path in _paths(change.before, change.old_partitions)]
    if stay != _paths(change.after, change.new_partitions):
        was = ", ".join(change.old_partitions) or "none"
        now = ", ".join(change.new_partitions) or "none"
        yield (), f"the partition columns change from {was} to {now}"


def _max_id(change: SchemaChange) -> Iterator[tuple[ColumnPath, str]]:
    if change.was_mapped and change.new_mode is not ColumnMappingMode.NONE:
        old, new = change.old_max_id, change.new_max_id
        if new < old:
            yield (), f"the highest column id goes down from {old} to {new}"


def _fields(change: SchemaChange) -> Iterator[ColumnPair]:
    return (pair for pair in change.columns.pairs if pair.is_field)


def _retyped(change: SchemaChange) -> Iterator[ColumnPair]:
    """What has another type that files cannot be taken to hold already."""
    for pair in change.columns.pairs:
        old, new = pair.old_type, pair.new_type
        nested = isinstance(old, Struct | Array | Map) and type(old) is type(new)
        # A void column holds nothing but nulls, so it may take any type.
        if not (nested or old in (new, VOID) or _is_same_width(old, new)):
            yield pair


def _is_same_width(old: DataType, new: DataType) -> bool:
    small = _SMALL_INTEGERS
    return old in small and new in small and small.index(old) < small.index(new)


def _own_ids(field: StructField) -> list[int]:
    own = field_id(field)
    return [*([] if own is None else [own]), *nested_ids(field).values()]


def _paths(schema: Struct, names: Iterable[str]) -> list[ColumnPath]:
    """Columns in the spelling of the schema."""
    fields = ((name, schema.get(name)) for name in names)
    return [(name if field is None else field.name,) for name, field in fields]


def _shown(number: int | None) -> str:
    return "none" if number is None else str(number)


_NEW_COLUMN: Final = "Add a column of the new type and copy the values over."
_KEEP_MAPPING: Final = "Leave ids and physical names of columns as they are."

_MODE: Final = SchemaChangeRule(
    id="SCH-01",
    name="the column mapping mode stays, or goes from none to name",
    find=_mode,
    fix="From none the only way is to name; choose another mode when a table is created.",
    delta_class="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
)

SCHEMA_CHANGE_RULES: Final[tuple[SchemaChangeRule, ...]] = (
    _MODE,
    SchemaChangeRule(
        id="SCH-02",
        name="columns are dropped and renamed only under column mapping",
        find=_dropped,
        fix=f"Run {how_to_set(COLUMN_MAPPING_MODE, 'name')} first.",
        delta_class="DELTA_UNSUPPORTED_DROP_COLUMN",
    ),
    SchemaChangeRule(id="SCH-03", name="a column keeps its id", find=_ids, fix=_KEEP_MAPPING),
    SchemaChangeRule(
        id="SCH-04",
        name="a column keeps its physical name",
        find=_physical_names,
        fix=_KEEP_MAPPING,
    ),
    SchemaChangeRule(
        id="SCH-05",
        name="elements, keys and values keep their ids",
        find=_nested,
        fix=_KEEP_MAPPING,
    ),
    SchemaChangeRule(
        id="SCH-06",
        name="a column stays at its level",
        find=_moved,
        fix="Add a column at the new place and copy the values over.",
    ),
    SchemaChangeRule(
        id="SCH-07",
        name="a new column has a new id",
        find=_reused,
        fix="Give new columns ids above the highest that the table ever gave out; "
        "`Table.add_column(COLUMN)` does.",
    ),
    SchemaChangeRule(
        id="SCH-08",
        name="a type stays, or becomes a wider one",
        find=_types,
        fix=_NEW_COLUMN,
        delta_class="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
    ),
    SchemaChangeRule(
        id="SCH-09",
        name="types are widened where the table allows it, and the change is recorded",
        find=_widening,
        fix=f"Run {how_to_set(ENABLE_TYPE_WIDENING, 'true')}, then "
        "`Table.widen_column(COLUMN, TYPE)`.",
        delta_class="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
    ),
    SchemaChangeRule(
        id="SCH-10",
        name="the history of types is kept",
        find=_history,
        fix="Leave the metadata of the columns as it is.",
    ),
    SchemaChangeRule(
        id="SCH-11",
        name="what may be null stays so",
        find=_nullability,
        fix='Add a CHECK constraint instead: `Table.add_constraint(NAME, "COLUMN IS NOT NULL", '
        "spark=spark)`.",
        delta_class="DELTA_ALTER_TABLE_CHANGE_COL_NOT_SUPPORTED",
    ),
    SchemaChangeRule(
        id="SCH-12",
        name="a new column may be null",
        find=_required,
        fix="Add it without NOT NULL.",
    ),
    SchemaChangeRule(
        id="SCH-13",
        name="the partition columns stay",
        find=_partitions,
        fix="Create a new table with another partitioning and copy the rows to it.",
        delta_class="DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN",
    ),
    SchemaChangeRule(
        id="SCH-14",
        name="the highest column id never comes down",
        find=_max_id,
        fix=f"Leave `{MAX_COLUMN_ID}` as it is.",
        files=False,
    ),
)
"""Every rule, in the order its findings are reported."""

FILE_RULES: Final = frozenset(rule.id for rule in SCHEMA_CHANGE_RULES if rule.files)
"""The rules that an operation may waive if it knows that the files fit."""
