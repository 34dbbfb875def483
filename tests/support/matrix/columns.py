"""The column types of the matrix: for every type the values that readers are known to trip over.

A group becomes one table. Values are SQL expressions; a column with fewer values than the group has
rows is null in the rest, and the last row of every group is null throughout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["GROUPS", "Column", "Group", "padded"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its type as DDL, and its values as SQL expressions."""

    name: str
    type: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Columns that are written and read together."""

    name: str
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()

    @property
    def ddl(self) -> str:
        """The columns of the table; ``cell`` and ``id`` say which row of which write it is."""
        return "cell STRING, id INT, " + ", ".join(f"{c.name} {c.type}" for c in self.columns)

    def rows(self, cell: str) -> str:
        """A query for the rows of one write."""
        count = max(len(c.values) for c in self.columns) + 1
        names = ", ".join(["cell", "id", *(c.name for c in self.columns)])
        lines = []
        for row in range(count):
            values = [c.values[row] if row < len(c.values) else "NULL" for c in self.columns]
            lines.append(f"('{cell}', {row}, {', '.join(values)})")
        casts = [
            f"CAST({c.name} AS {_plain(c.type)}) AS {c.name}" if c.type != "VARIANT" else c.name
            for c in self.columns
        ]
        return (
            f"SELECT CAST(cell AS STRING) AS cell, id, {', '.join(casts)} "
            f"FROM VALUES {', '.join(lines)} AS t({names})"
        )


def _plain(kind: str) -> str:
    """The type without lengths: what a frame of such a column has."""
    return kind.replace("VARCHAR(5)", "STRING").replace("CHAR(5)", "STRING")


def padded(kind: str, value: object) -> object:
    """A value as a column of that type has it: CHAR(n) is filled up with spaces.

    ``kind`` is the type as Spark keeps it beside a column, for instance ``array<char(5)>``.
    """
    if isinstance(value, str):
        return value.ljust(5) if "char(5)" in kind and "varchar" not in kind else value
    if isinstance(value, dict):
        return {key: padded(kind, inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(padded(kind, inner) for inner in value)
    return value


_OLD_DAYS: Final = (
    "DATE'0001-01-01'", "DATE'1500-03-01'", "DATE'1582-10-04'", "DATE'1582-10-15'",
    "DATE'1899-12-31'",
)  # fmt: skip
_OLD_TIMES: Final = (
    "0001-01-01 00:00:00",
    "1500-03-01 12:34:56.789012",
    "1582-10-04 23:59:59.999999",
    "1582-10-15 00:00:00",
    "1899-12-31 23:59:59.999999",
)
_DAYS: Final = ("DATE'1900-01-01'", "DATE'1969-12-31'", "DATE'2024-02-29'", "DATE'9999-12-31'")
_TIMES: Final = (
    "1900-01-01 00:00:00",
    "1969-12-31 23:59:59.999999",
    "2024-02-29 12:34:56.789012",
    "9999-12-31 23:59:59.999999",
)
_TEXTS: Final = (
    "''", "'ü☃ 𝄞'", "repeat('long ', 20)", "'a\\0b'", "'null'", "repeat('\U0010ffff', 40)",
    "' lead and trail '",
)  # fmt: skip


def _at(kind: str, times: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{kind}'{time}'" for time in times)


def _decimals(digits: int, scale: int) -> tuple[str, ...]:
    top = "9" * (digits - scale) + ("." + "9" * scale if scale else "")
    kind = f"DECIMAL({digits}, {scale})"
    tiny = ("0." + "0" * (scale - 1) + "1") if scale else "1"
    return tuple(f"CAST('{text}' AS {kind})" for text in (top, f"-{top}", "0", tiny, f"-{tiny}"))


_FLOATS: Final = (
    "float('NaN')", "float('-0.0')", "float('0.0')", "float('Infinity')", "float('-Infinity')",
    "float('1.4E-45')", "float('0.1')",
)  # fmt: skip
_DOUBLES: Final = tuple(
    text.replace("float", "double").replace("1.4E-45", "4.9E-324") for text in _FLOATS
)
_BINARIES: Final = ("X''", "X'00'", "X'FFFE00'", "CAST(repeat('b', 90) AS BINARY)")
_INTS: Final = ("-2147483648", "2147483647", "0")
_LONGS: Final = ("-9223372036854775807L - 1L", "9223372036854775807L", "9007199254740993L")

_PRIMITIVES = (
    Column("o", "BOOLEAN", ("true", "false")),
    Column("i", "INT", _INTS),
    Column("l", "BIGINT", _LONGS),
    Column("f", "FLOAT", _FLOATS),
    Column("d", "DOUBLE", _DOUBLES),
    Column("n9", "DECIMAL(9, 2)", _decimals(9, 2)),
    Column("n18", "DECIMAL(18, 18)", _decimals(18, 18)),
    Column("n38", "DECIMAL(38, 10)", _decimals(38, 10)),
    Column("n1", "DECIMAL(1, 0)", _decimals(1, 0)),
    Column("s", "STRING", _TEXTS),
    Column("b", "BINARY", _BINARIES),
    Column("day", "DATE", _DAYS),
    Column("ts", "TIMESTAMP", _at("TIMESTAMP", _TIMES)),
    Column("ntz", "TIMESTAMP_NTZ", _at("TIMESTAMP_NTZ", _TIMES)),
)
_SMALL = (
    Column("y", "TINYINT", ("-128", "127")),
    Column("h", "SMALLINT", ("-32768", "32767")),
    Column("ys", "ARRAY<TINYINT>", ("array(-128Y, NULL)",)),
)
_CALENDAR = (
    Column("day", "DATE", _OLD_DAYS),
    Column("ts", "TIMESTAMP", _at("TIMESTAMP", _OLD_TIMES)),
    Column("ntz", "TIMESTAMP_NTZ", _at("TIMESTAMP_NTZ", _OLD_TIMES)),
    Column("days", "ARRAY<DATE>", tuple(f"array({day}, NULL)" for day in _OLD_DAYS)),
    Column(
        "times",
        "MAP<STRING, STRUCT<at: TIMESTAMP>>",
        tuple(f"map('k', named_struct('at', {t}))" for t in _at("TIMESTAMP", _OLD_TIMES)),
    ),
)
_TIMESTAMPS = (
    Column("ts", "TIMESTAMP", _at("TIMESTAMP", (*_OLD_TIMES, *_TIMES))),
    Column("tss", "ARRAY<TIMESTAMP>", tuple(f"array({t})" for t in _at("TIMESTAMP", _TIMES))),
)
_NESTED = (
    Column(
        "st",
        "STRUCT<x: INT, y: STRUCT<z: STRING, w: DECIMAL(20, 2)>>",
        (
            "named_struct('x', 1, 'y', named_struct('z', 'ü', 'w', 1.25))",
            "named_struct('x', NULL, 'y', NULL)",
            "named_struct('x', 2, 'y', named_struct('z', NULL, 'w', NULL))",
        ),
    ),
    Column("ints", "ARRAY<INT>", ("array(1, NULL, 2)", "array()", "array(NULL)")),
    Column("deep", "ARRAY<ARRAY<INT>>", ("array(array(1), NULL, array())", "array()")),
    Column(
        "ls",
        "ARRAY<STRUCT<k: STRING, v: DOUBLE>>",
        ("array(named_struct('k', 'a', 'v', 1.5D), NULL)", "array()", "array(NULL)"),
    ),
    Column("m", "MAP<STRING, INT>", ("map('a', 1, 'b', NULL)", "map()")),
    Column(
        "ms",
        "MAP<STRING, STRUCT<n: INT, t: STRING>>",
        ("map('k', named_struct('n', 1, 't', 'x'), 'e', NULL)", "map()"),
    ),
    Column(
        "mls",
        "MAP<STRING, ARRAY<STRUCT<n: INT>>>",
        ("map('k', array(named_struct('n', 7), NULL), 'e', NULL, 'f', array())", "map()"),
    ),
    Column(
        "msk",
        "MAP<STRUCT<a: INT, b: STRING>, STRING>",
        ("map(named_struct('a', 1, 'b', 'x'), 'v')", "map()"),
    ),
    Column("mi", "MAP<INT, ARRAY<STRING>>", ("map(1, array('x', NULL), 2, NULL)",)),
    Column(
        "lm",
        "ARRAY<MAP<STRING, STRUCT<n: INT>>>",
        ("array(map('k', named_struct('n', 3)), NULL, map())", "array()"),
    ),
    Column(
        "sl",
        "STRUCT<l: ARRAY<STRUCT<m: MAP<STRING, STRUCT<q: DATE>>>>>",
        (
            "named_struct('l', array(named_struct('m', "
            "map('k', named_struct('q', DATE'2024-02-29'))), NULL))",
            "named_struct('l', NULL)",
            "named_struct('l', array(named_struct('m', NULL)))",
        ),
    ),
    Column("bs", "ARRAY<BINARY>", ("array(X'00', X'', NULL)",)),
    Column("ns", "MAP<STRING, DECIMAL(9, 2)>", ("map('k', 1.25)",)),
)
_TEXT5: Final = ("'ab'", "'abcde'", "''", "'ü'", "'a b '")
_CHAR = (
    Column("c", "CHAR(5)", _TEXT5),
    Column("v", "VARCHAR(5)", _TEXT5),
    Column("cs", "ARRAY<CHAR(5)>", tuple(f"array({text}, NULL)" for text in _TEXT5)),
    Column("sc", "STRUCT<c: CHAR(5)>", tuple(f"named_struct('c', {text})" for text in _TEXT5)),
    Column("mv", "MAP<STRING, VARCHAR(5)>", tuple(f"map('k', {text})" for text in _TEXT5)),
)


def _partitioned(
    name: str, columns: tuple[Column, ...], properties: tuple[tuple[str, str], ...] = ()
) -> Group:
    data = Column("data", "INT", ("1", "2"))
    return Group(name, (data, *columns), tuple(c.name for c in columns), properties)


GROUPS: Final = {
    group.name: group
    for group in (
        Group("primitives", _PRIMITIVES),
        Group("small integers", _SMALL),
        Group("dates and times before 1900", _CALENDAR),
        Group("timestamps", _TIMESTAMPS),
        Group("nested", _NESTED),
        Group("char and varchar", _CHAR),
        Group("variant", (Column("v", "VARIANT", ("parse_json('{\"a\": [1, null]}')",)),)),
        _partitioned(
            "partitions",
            (
                Column("o", "BOOLEAN", ("true", "false")),
                Column("i", "INT", _INTS),
                Column("l", "BIGINT", _LONGS),
                Column("s", "STRING", ("'a/b=c'", "'ü☃ 𝄞'", "'a b%20'", "'null'")),
                Column("day", "DATE", _DAYS),
                Column("ts", "TIMESTAMP", _at("TIMESTAMP", _TIMES)),
                Column("ntz", "TIMESTAMP_NTZ", _at("TIMESTAMP_NTZ", _TIMES)),
            ),
        ),
        _partitioned("partitions by small integers", _SMALL[:2]),
        _partitioned(
            "partitions by decimal",
            (
                Column("n", "DECIMAL(18, 3)", _decimals(18, 3)),
                Column("n38", "DECIMAL(38, 10)", _decimals(38, 10)),
            ),
        ),
        _partitioned(
            "partitions by float and binary",
            (
                Column("f", "FLOAT", _FLOATS),
                Column("d", "DOUBLE", _DOUBLES),
                Column("b", "BINARY", ("X'41'", "CAST('a/b' AS BINARY)")),
            ),
        ),
        _partitioned(
            "partitions by binary that is not ASCII",
            (Column("b", "BINARY", ("CAST('ü' AS BINARY)", "X'FFFE'")),),
        ),
        _partitioned("partitions before 1900", _CALENDAR[:3]),
        # An empty text is no partition value of Delta's: it is null.
        _partitioned(
            "partitions by char",
            (
                Column("c", "CHAR(5)", _TEXT5[:2]),
                Column("v", "VARCHAR(5)", _TEXT5[:2]),
            ),
        ),
    )
}
"""By name."""
