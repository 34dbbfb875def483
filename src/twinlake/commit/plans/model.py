"""The values that go into a plan and come out of it.

A plan has two parts. First it says what the engine has to do, from which rows of which files
matched. Then, given what the engine wrote, it says which actions make up the commit. Nothing here
reads a file, a clock or a random number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from twinlake.compat import enabled_compats
from twinlake.errors import Code, UserError, how_to_set
from twinlake.protocol import keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyroaring import AbstractBitMap64 as Positions

    from twinlake.actions import AddCDCFile, AddFile, DeletionVectorDescriptor, RemoveFile
    from twinlake.commit.read_set import ReadSet
    from twinlake.protocol import Metadata

__all__ = [
    "ChangeType",
    "Mode",
    "Outcome",
    "TableRules",
    "TouchedFile",
    "Written",
    "positions",
    "refuse",
    "touched",
]


def positions(rows: Iterable[int] = ()) -> Positions:
    """Row positions within a file as an immutable bitmap.

    >>> len(positions(range(1_000_000)))
    1000000
    """
    from pyroaring import AbstractBitMap64, FrozenBitMap64

    if isinstance(rows, (FrozenBitMap64, AbstractBitMap64, range)):
        return FrozenBitMap64(rows)
    chosen = list(rows)
    if any(row < 0 for row in chosen):
        raise refuse("Row positions cannot be negative.", [str(min(chosen))])
    return FrozenBitMap64(chosen)


class Mode(StrEnum):
    """How rows leave a file that keeps others."""

    COPY_ON_WRITE = "copy_on_write"
    DELETION_VECTORS = "deletion_vectors"


class ChangeType(StrEnum):
    """The values of ``_change_type`` in the change data feed."""

    INSERT = "insert"
    UPDATE_PREIMAGE = "update_preimage"
    UPDATE_POSTIMAGE = "update_postimage"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRules:
    """What the table's properties ask of everyone who changes its rows."""

    mode: Mode = Mode.COPY_ON_WRITE
    change_data: bool = False
    row_tracking: bool = False
    append_only: bool = False

    @staticmethod
    def of(metadata: Metadata) -> TableRules:
        """The rules of a table."""
        # Such tables may not have them in use; whoever sets the property all the same gets none.
        forbidden = any(compat.version < 3 for compat in enabled_compats(metadata))
        vectors = metadata.flag(keys.ENABLE_DELETION_VECTORS) and not forbidden
        return TableRules(
            mode=Mode.DELETION_VECTORS if vectors else Mode.COPY_ON_WRITE,
            change_data=metadata.flag(keys.ENABLE_CHANGE_DATA_FEED),
            row_tracking=metadata.flag(keys.ENABLE_ROW_TRACKING),
            append_only=metadata.flag(keys.APPEND_ONLY),
        )

    def refuse_row_loss(self, operation: str) -> None:
        """Stop an operation that takes rows out of an append-only table."""
        if self.append_only:
            raise UserError(
                Code.APPEND_ONLY,
                f"{operation} cannot change an append-only table.",
                why="delta.appendOnly is true, so no row may leave the table.",
                fix=f"If rows may be changed, run {how_to_set(keys.APPEND_ONLY, 'false')} first.",
                delta_class="DELTA_CANNOT_MODIFY_APPEND_ONLY",
                fields={"operation": operation},
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchedFile:
    """A live file and what is to happen to rows of it; make it with `touched`."""

    add: AddFile
    delete: Positions
    update: Positions
    hidden: Positions
    """Positions that the file's deletion vector already hides."""
    physical_rows: int

    @property
    def live_count(self) -> int:
        """Rows a reader sees before the operation."""
        return self.physical_rows - len(self.hidden)

    @property
    def kept_count(self) -> int:
        """Live rows that stay as they are."""
        return self.live_count - len(self.delete) - len(self.update)

    @property
    def kept(self) -> Positions:
        """The positions of the live rows that stay as they are."""
        return positions(range(self.physical_rows)) - self.hidden - self.delete - self.update

    def problems(self) -> list[str]:
        """What contradicts itself here; empty when the value can be planned with."""
        path, found = self.add.path, []
        vector = self.add.deletion_vector
        expected, given = vector.cardinality if vector else 0, len(self.hidden)
        if expected != given:
            found.append(f"{path}: the deletion vector hides {expected} rows, {given} were given")
        named = {"hidden": self.hidden, "delete": self.delete, "update": self.update}
        for name, rows in named.items():
            if len(rows) and rows.max() >= self.physical_rows:
                found.append(
                    f"{path}: {name} position {rows.max()} is beyond its {self.physical_rows} rows"
                )
        if len((self.delete | self.update) & self.hidden):
            found.append(f"{path}: rows matched that the deletion vector hides")
        if len(self.delete & self.update):
            found.append(f"{path}: rows are both deleted and updated")
        return found


def touched(
    add: AddFile,
    *,
    delete: Iterable[int] = (),
    update: Iterable[int] = (),
    hidden: Iterable[int] = (),
    physical_rows: int | None = None,
) -> TouchedFile:
    """A touched file; the row count comes from the statistics unless it is given.

    >>> from twinlake.actions import AddFile
    >>> add = AddFile(path="a", partition_values={}, size=1, modification_time=0,
    ...               data_change=True, stats='{"numRecords":3}')
    >>> touched(add, delete=[0, 2]).kept_count
    1
    """
    rows = add.num_records if physical_rows is None else physical_rows
    if rows is None:
        raise refuse(
            "The number of rows in a file is not known.",
            [f"{add.path}: no numRecords in its statistics"],
            fix="Pass `physical_rows=`; the Parquet footer of the file has the number.",
        )
    return TouchedFile(
        add=add,
        delete=positions(delete),
        update=positions(update),
        hidden=positions(hidden),
        physical_rows=rows,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What the engine made: new data files, deletion vectors by file path, change files."""

    files: tuple[AddFile, ...] = ()
    vectors: Mapping[str, DeletionVectorDescriptor] = field(default_factory=dict)
    changes: tuple[AddCDCFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is to be committed. ``actions`` is empty when the operation changes nothing."""

    operation: str
    removes: tuple[RemoveFile, ...] = ()
    adds: tuple[AddFile, ...] = ()
    changes: tuple[AddCDCFile, ...] = ()
    metrics: Mapping[str, str]
    reads: ReadSet
    changes_data: bool = True
    """False for OPTIMIZE and the like: such a commit may run under snapshot isolation."""
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def actions(self) -> tuple[RemoveFile | AddFile | AddCDCFile, ...]:
        """Removes, adds and change files, each sorted by path."""
        return (*self.removes, *self.adds, *self.changes)


def refuse(what: str, problems: Iterable[str], *, fix: str = "") -> UserError:
    """The error for input that contradicts itself, with all that is wrong with it."""
    found = list(problems)
    return UserError(
        Code.COMMIT_INVALID,
        what,
        why="; ".join(found[:10]) + (f"; and {len(found) - 10} more" if len(found) > 10 else ""),
        fix=fix or "Run the operation again on the current version of the table.",
        fields={"problems": found},
    )
