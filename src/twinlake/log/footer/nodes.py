"""The schema of data files as their footers spell it, and how many rows each claims to have.

A check of a table looks at every live file, so this reads little (one range of a file) and decodes
less: it stops before the row groups, unless a file has values of Spark's legacy calendar or bounds
of columns are asked for, and a schema section that it met before, byte for byte, is not decoded
again. What is wrong with a file is reported, never raised; only a store that fails raises.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, StorageError
from twinlake.log.footer.bounds import column_bounds
from twinlake.log.footer.legacy_calendar import legacy_columns
from twinlake.log.footer.thrift import TAIL, TRAILER, ThriftReader, footer_bytes
from twinlake.schema import ParquetNode, Repetition
from twinlake.storage import OnDisk, resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from twinlake.log.footer.bounds import FileColumn
    from twinlake.runtime import Executor
    from twinlake.schema import ColumnBounds, LegacyColumn
    from twinlake.storage import Store

__all__ = ["FooterNodes", "FooterReader", "decode_nodes", "read_nodes"]

FileSize = tuple[str, int]
"""A path as the log spells it, and the size the log gives."""

_BATCH: Final = 256
"""Files an executor gets as one item: their trees are the same and travel back once."""
_WINDOW: Final = 32
"""Items handed over at a time, so that a table of any size takes little memory."""
_THREADS: Final = 16
_LARGEST_GUESS: Final = 1 << 20

_MAX_DEPTH: Final = 200
_KNOWN: Final = 64
_LARGEST_KNOWN: Final = 1 << 22

# Numbers of parquet.thrift.
_SCHEMA, _NUM_ROWS = 2, 3
_LIST = 9
_REPETITIONS: Final = (Repetition.REQUIRED, Repetition.OPTIONAL, Repetition.REPEATED)
_TYPES: Final = (
    "BOOLEAN",
    "INT32",
    "INT64",
    "INT96",
    "FLOAT",
    "DOUBLE",
    "BYTE_ARRAY",
    "FIXED_LEN_BYTE_ARRAY",
)
_LOGICAL: Final = {
    1: "STRING",
    2: "MAP",
    3: "LIST",
    4: "ENUM",
    5: "DECIMAL",
    6: "DATE",
    7: "TIME",
    8: "TIMESTAMP",
    10: "INTEGER",
    11: "UNKNOWN",
    12: "JSON",
    13: "BSON",
    14: "UUID",
    15: "FLOAT16",
    16: "VARIANT",
    17: "GEOMETRY",
    18: "GEOGRAPHY",
}
# What writers said before there were logical types, in the words of today.
_CONVERTED: Final = {
    0: "STRING",
    1: "MAP",
    2: "MAP_KEY_VALUE",
    3: "LIST",
    4: "ENUM",
    5: "DECIMAL",
    6: "DATE",
    7: "TIME",
    8: "TIME",
    9: "TIMESTAMP",
    10: "TIMESTAMP",
    **dict.fromkeys(range(11, 19), "INTEGER"),
    19: "JSON",
    20: "BSON",
    21: "INTERVAL",
}
_TIMESTAMP_MILLIS, _UINT_8 = 9, 11
_UNITS: Final = {1: 3, 2: 6, 3: 9}
_INTEGERS: Final = tuple((bits, signed) for signed in (0, 1) for bits in (8, 16, 32, 64))


@dataclass(frozen=True, slots=True, kw_only=True)
class FooterNodes:
    """What one footer says; ``root`` is None where it cannot be read, and ``problem`` says why."""

    root: ParquetNode | None
    num_rows: int = 0
    problem: str = ""
    legacy: tuple[LegacyColumn, ...] = ()
    """The columns with values of Spark's legacy calendar."""
    bounds: tuple[ColumnBounds, ...] = ()
    """Of the columns that were asked for."""


def read_nodes(
    store: Store,
    files: Iterable[FileSize],
    executor: Executor,
    *,
    columns: tuple[FileColumn, ...] = (),
) -> Iterator[FooterNodes]:
    """What the footers of the files say, in their order; batch by batch, on the executor.

    ``columns`` are those whose bounds are wanted.
    """
    reader = FooterReader(store, columns)
    remaining = iter(files)
    batches = iter(lambda: tuple(islice(remaining, _BATCH)), ())
    shared: dict[ParquetNode, ParquetNode] = {}
    while window := list(islice(batches, _WINDOW)):
        for found in executor.map(reader, window):
            yield from _shared(found, shared)


def _shared(
    found: Sequence[FooterNodes], shared: dict[ParquetNode, ParquetNode]
) -> Iterator[FooterNodes]:
    """The same with one tree for all files that have it.

    Batches from other processes bring copies, and a rule may know a tree again by its identity.
    """
    one_of: dict[int, ParquetNode] = {}
    for nodes in found:
        if nodes.root is None:
            yield nodes
            continue
        root = one_of.get(id(nodes.root))
        if root is None:
            if len(shared) >= _KNOWN:
                shared.clear()
            root = one_of[id(nodes.root)] = shared.setdefault(nodes.root, nodes.root)
        yield nodes if root is nodes.root else replace(nodes, root=root)


@dataclass(frozen=True, slots=True)
class FooterReader:
    """A value and no closure, so that an executor may send it to another process."""

    store: Store
    columns: tuple[FileColumn, ...] = ()

    def __call__(self, files: Sequence[FileSize]) -> list[FooterNodes]:
        """What the footers of a batch of files say."""
        # A disk answers at once; a service takes its time for every request.
        if isinstance(self.store, OnDisk) or len(files) < 2:
            return self._in_turn(files)
        with ThreadPoolExecutor(min(_THREADS, len(files))) as pool:
            return list(pool.map(self._one, files))

    def _in_turn(self, files: Sequence[FileSize]) -> list[FooterNodes]:
        """One after the other; files of one writer have footers of about one length."""
        guess = TAIL
        found = []
        for file in files:
            nodes, length = self._read(file, guess)
            guess = min(max(guess, length + length // 8), _LARGEST_GUESS)
            found.append(nodes)
        return found

    def _one(self, file: FileSize) -> FooterNodes:
        return self._read(file, TAIL)[0]

    def _read(self, file: FileSize, guess: int) -> tuple[FooterNodes, int]:
        path, size = file
        store, key = resolve(self.store, path)
        try:
            footer = footer_bytes(
                size, lambda start, length: store.read_range(key, start, length), guess=guess
            )
            root, num_rows = decode_nodes(footer)
            legacy = legacy_columns(footer)
            bounds = column_bounds(footer, root, self.columns) if self.columns else ()
        except ValueError as error:
            return FooterNodes(root=None, problem=_why(store, key, size, str(error))), 0
        except StorageError as error:
            if error.code != Code.STORAGE_NOT_FOUND:
                raise
            return FooterNodes(root=None, problem="the file is not there"), 0
        nodes = FooterNodes(root=root, num_rows=num_rows, legacy=legacy, bounds=bounds)
        return nodes, len(footer)


def _why(store: Store, key: str, size: int, problem: str) -> str:
    """A footer was looked for where the log says the file ends; that may be the very problem."""
    meta = store.head(key)
    if meta is None:
        return "the file is not there"
    if meta.size != size:
        return f"the file has {meta.size} bytes, the log says {size}"
    return problem


def decode_nodes(footer: bytes) -> tuple[ParquetNode, int]:
    """The tree and the number of rows of a footer (with its trailer); damage is a ValueError."""
    reader = ThriftReader(footer[:-TRAILER])
    root: ParquetNode | None = None
    num_rows: int | None = None
    number = 0
    try:
        while root is None or num_rows is None:
            field = reader.field(number)
            if field is None:
                raise ValueError("its footer lacks the schema or the number of rows")
            number, kind = field
            if number == _SCHEMA and kind == _LIST:
                root = _SCHEMAS.decode(reader, footer)
            elif number == _NUM_ROWS:
                num_rows = _natural(reader.value(kind))
            else:
                reader.value(kind)
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"its footer is damaged: {error!r}") from error
    return root, num_rows


class _Schemas:
    """Schema sections that were met lately, with their trees, the latest first.

    The compact protocol reads from left to right and says itself where a list ends: bytes that
    begin with a known section hold that section and no other.
    """

    def __init__(self) -> None:
        # Replaced as a whole and never changed, so that threads need no lock.
        self._known: tuple[tuple[bytes, ParquetNode], ...] = ()

    def decode(self, reader: ThriftReader, data: bytes) -> ParquetNode:
        """The tree of the section that starts here; the reader goes on behind it."""
        start = reader.at
        known = self._known
        for position, entry in enumerate(known):
            section, root = entry
            if data.startswith(section, start):
                reader.at += len(section)
                if position:
                    self._known = (entry, *known[:position], *known[position + 1 :])
                return root
        root = _tree(reader.value(_LIST))
        if reader.at - start <= _LARGEST_KNOWN:
            self._known = ((data[start : reader.at], root), *known[: _KNOWN - 1])
        return root


_SCHEMAS: Final = _Schemas()


def _tree(elements: list[dict[int, Any]]) -> ParquetNode:
    """The nodes of the flat list, parents before children, as a tree."""
    if not elements:
        raise ValueError("its footer has an empty schema")
    # From the back: by then the children of a group are ready, the first on top.
    ready: list[tuple[ParquetNode, int]] = []
    for element in reversed(elements):
        count = 0 if 1 in element else _natural(element.get(5, 0))
        if count > len(ready):
            raise ValueError(f"its footer claims a group of {count}")
        taken = [ready.pop() for _ in range(count)]
        depth = 1 + max((below for _, below in taken), default=0)
        if depth > _MAX_DEPTH:
            raise ValueError("its schema nests too deep")
        ready.append((_node(element, tuple(node for node, _ in taken)), depth))
    if len(ready) != 1 or not ready[0][0].is_group:
        raise ValueError("its footer has more than one schema")
    return ready[0][0]


def _node(element: dict[int, Any], children: tuple[ParquetNode, ...]) -> ParquetNode:
    logical = next(iter(element.get(10, {})), None)
    annotation = (
        _CONVERTED.get(element.get(6, -1))
        if logical is None
        else _LOGICAL.get(logical, f"LOGICAL_{logical}")
    )
    return ParquetNode(
        name=element[4].decode(),
        # The root has none.
        repetition=_REPETITIONS[_natural(element.get(3, 0))],
        physical_type=_TYPES[_natural(element[1])] if 1 in element else None,
        annotation=annotation,
        parameters=_parameters(element, annotation, logical),
        field_id=_natural(element[9]) if 9 in element else None,
        children=children,
    )


def _parameters(
    element: dict[int, Any], annotation: str | None, logical: int | None
) -> tuple[int, ...]:
    """What the logical type is parameterized by, as ``ParquetNode`` has it."""
    found = {} if logical is None else element[10][logical]
    if annotation == "DECIMAL":
        # Both are in fields of their own as well, whichever way the type is said.
        scale, precision = (
            (found.get(1), found.get(2)) if found else (element.get(7, 0), element.get(8))
        )
        return (_natural(precision), _natural(scale))
    if annotation == "TIMESTAMP":
        if logical is None:
            # Before there were logical types, all timestamps were in UTC.
            return (1, 3 if element[6] == _TIMESTAMP_MILLIS else 6)
        return (int(bool(found.get(1))), _UNITS.get(next(iter(found.get(2, {})), 0), 0))
    if annotation == "INTEGER":
        if logical is None:
            return _INTEGERS[element[6] - _UINT_8]
        return (abs(int(found.get(1, 0))), int(bool(found.get(2))))
    return ()


def _natural(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"its footer holds the unknown value {value!r}")
    return value
