"""Cases for the rules about Parquet footers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal as Number

from tests.unit.compat.rule_tables import (
    ROW_ID_NAME,
    ROW_VERSION_NAME,
    RuleCase,
    file,
    footer,
    group,
    keyed,
    leaf,
    listed,
    mapped,
    struct,
    table,
)
from twinlake.compat import FileFooter, Profile
from twinlake.schema import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    Array,
    ColumnBounds,
    Decimal,
    LegacyColumn,
    Map,
    ParquetNode,
    Repetition,
    Struct,
)

__all__ = ["file_cases"]

ALL = ("ICV1", "ICV2", "ICV3")
REPEATED = Repetition.REPEATED


def file_cases() -> Iterator[RuleCase]:
    """Every case."""
    for prefix in ALL:
        yield from _partitions(prefix)
        yield from _flat_ids(prefix)
        yield from _counts(prefix)
        yield from _calendars(prefix)
        yield from _partition_values(prefix)
    for prefix in ("ICV2", "ICV3"):
        yield from _timestamps(prefix)
        yield from _nested_ids(prefix)
        yield from _list_shapes(prefix)
    yield from _row_tracking()
    yield RuleCase(
        rule="ICV3-14",
        name="the parts of a variant",
        subject=table(
            "ICV3",
            struct(v=VARIANT),
            footers=[
                footer(group("col-1", 1, leaf("metadata", None), leaf("value", None))),
                footer(group("x", 1, leaf("value", None), annotation="VARIANT")),
            ],
        ),
    )


def _partitions(prefix: str) -> Iterator[RuleCase]:
    rule = f"{prefix}-11"
    columns = struct(p=STRING, v=LONG, Q=INTEGER)

    def case(name: str, *nodes: ParquetNode, missing: tuple[str, ...] = ()) -> RuleCase:
        return RuleCase(
            rule=rule,
            name=name,
            subject=table(prefix, columns, partitions=["p", "Q"], footers=[footer(*nodes)]),
            paths=tuple(f"f1.parquet: {column}" for column in missing),
        )

    p, v, q = leaf("col-1", 1), leaf("col-2", 2), leaf("col-3", 3)
    yield case("after the data columns", v, p, q)
    yield case("by id", v, leaf("old", 1), leaf("older", 3))
    yield case("by name", v, leaf("col-1", None), leaf("col-3", None))
    yield case("one is missing", v, p, missing=("Q",))
    yield case("both are missing", v, missing=("p", "Q"))
    first = ("p",) if prefix == "ICV1" else ()
    yield case("one before the data columns", p, v, q, missing=first)
    both = ("p", "Q") if prefix == "ICV1" else ()
    yield case("both before the data columns", p, q, v, missing=both)
    yield case("no data columns", p, q)
    yield RuleCase(
        rule=rule, name="not partitioned", subject=table(prefix, columns, footers=[footer(v)])
    )
    yield RuleCase(
        rule=rule,
        name="two files",
        subject=table(
            prefix, columns, partitions=["p"], footers=[footer(v), footer(v, name="f2.parquet")]
        ),
        paths=("f1.parquet: p", "f2.parquet: p"),
    )


def _flat_ids(prefix: str) -> Iterator[RuleCase]:
    rule = f"{prefix}-14"
    columns = struct(a=LONG, s=struct(b=LONG))

    def case(name: str, *nodes: ParquetNode, wrong: tuple[str, ...] = ()) -> RuleCase:
        return RuleCase(
            rule=rule,
            name=name,
            subject=table(prefix, columns, footers=[footer(*nodes)]),
            paths=tuple(f"f1.parquet: {column}" for column in wrong),
        )

    a, s = leaf("col-1", 1), group("col-2", 2, leaf("col-3", 3))
    yield case("every node", a, s)
    yield case("names do not matter", leaf("a", 1), group("s", 2, leaf("b", 3)))
    yield case("columns that came later", a)
    yield case("a column that is gone", a, leaf("col-50", 50))
    yield case("top without id", leaf("col-1", None), s, wrong=("`col-1`",))
    yield case("group without id", a, group("col-2", None, leaf("col-3", 3)), wrong=("`col-2`",))
    yield case(
        "field of a struct without id",
        a,
        group("col-2", 2, leaf("col-3", None)),
        wrong=("`col-2`.`col-3`",),
    )
    yield case(
        "nothing has an id",
        leaf("col-1", None),
        group("col-2", None, leaf("col-3", None)),
        leaf("gone", None),
        wrong=("`col-1`", "`col-2`", "`col-2`.`col-3`", "gone"),
    )
    yield case("another id", leaf("col-1", 9), s, wrong=("`col-1`",))
    yield case(
        "ids exchanged",
        leaf("col-1", 2),
        group("col-2", 1, leaf("col-3", 3)),
        wrong=("`col-1`", "`col-2`"),
    )
    yield case("the id of a column elsewhere", leaf("x", 3), s, wrong=("x",))
    yield case("the same id twice", leaf("x", 1), leaf("y", 1), s, wrong=("y",))
    hidden = {ROW_ID_NAME: "_row_id", ROW_VERSION_NAME: "_row_version"}
    yield RuleCase(
        rule=rule,
        name="columns of row tracking",
        subject=table(
            prefix,
            columns,
            config=dict(hidden),
            footers=[footer(a, s, leaf("_row_id", None), leaf("_row_version", None))],
        ),
    )


NESTED = struct(
    l=Array(Array(LONG)), m=Map(struct(k=STRING), Array(struct(v=LONG))), t=Array(struct(i=LONG))
)
# Columns get their ids first: l 1, m 2, k 3, v 4, t 5, i 6; then elements, keys and values.


def _nested_nodes(**changed: int | None) -> list[ParquetNode]:
    """The file of NESTED, with some ids otherwise."""
    ids = {
        "l": 1, "m": 2, "k": 3, "v": 4, "t": 5, "i": 6, "l_element": 7, "l_inner": 8, "m_key": 9,
        "m_value": 10, "m_element": 11, "t_element": 12, **changed,
    }  # fmt: skip
    return [
        listed(
            "col-1", ids["l"], listed("element", ids["l_element"], leaf("element", ids["l_inner"]))
        ),
        keyed(
            "col-2",
            ids["m"],
            group("key", ids["m_key"], leaf("col-3", ids["k"])),
            listed(
                "value", ids["m_value"], group("element", ids["m_element"], leaf("col-4", ids["v"]))
            ),
        ),
        listed("col-5", ids["t"], group("element", ids["t_element"], leaf("col-6", ids["i"]))),
    ]


def _nested_ids(prefix: str) -> Iterator[RuleCase]:
    rule = f"{prefix}-14"
    paths = {
        "l": "`col-1`", "m": "`col-2`", "k": "`col-2`.key.`col-3`",
        "v": "`col-2`.value.element.`col-4`", "t": "`col-5`", "i": "`col-5`.element.`col-6`",
        "l_element": "`col-1`.element", "l_inner": "`col-1`.element.element",
        "m_key": "`col-2`.key", "m_value": "`col-2`.value", "m_element": "`col-2`.value.element",
        "t_element": "`col-5`.element",
    }  # fmt: skip

    def case(name: str, nodes: list[ParquetNode], *wrong: str) -> RuleCase:
        return RuleCase(
            rule=rule,
            name=name,
            subject=table(prefix, NESTED, footers=[footer(*nodes)]),
            paths=tuple(f"f1.parquet: {column}" for column in wrong),
        )

    yield case("every nested node", _nested_nodes())
    for which, path in paths.items():
        yield case(f"no id on {which}", _nested_nodes(**{which: None}), path)
        yield case(f"another id on {which}", _nested_nodes(**{which: 500}), path)
    yield case("no ids at all", _nested_nodes(**dict.fromkeys(paths)), *paths.values())
    yield case("key and value exchanged", _nested_nodes(m_key=10, m_value=9),
               paths["m_key"], paths["m_value"])  # fmt: skip
    bare = Struct(
        tuple(
            field.with_metadata(**{"delta.columnMapping.nested.ids": None})
            for field in mapped(struct(l=Array(LONG)))
        )
    )
    for own, wrong in ((7, ()), (1, ("f1.parquet: `col-1`.element",))):
        yield RuleCase(
            rule=rule,
            name=f"id {own} on an element that the table has no id for",
            subject=table(
                prefix,
                bare,
                raw=True,
                footers=[footer(listed("col-1", 1, leaf("element", own)))],
            ),
            paths=wrong,
        )


def _list_shapes(prefix: str) -> Iterator[RuleCase]:
    rule = f"{prefix}-14"
    columns = struct(l=Array(LONG), s=Array(struct(x=LONG, y=LONG)))
    # l 1, s 2, x 3, y 4, l.element 5, s.element 6
    good = listed("col-1", 1, leaf("element", 5))
    pair = (leaf("col-3", 3), leaf("col-4", 4))
    shapes = {
        "repeated value": leaf("col-1", 1, repetition=REPEATED),
        "repeated value in a list": group(
            "col-1", 1, leaf("array", 5, repetition=REPEATED), annotation="LIST"
        ),
        "group called array": group(
            "col-1", 1, group("array", 5, leaf("x", 50), repetition=REPEATED), annotation="LIST"
        ),
        "group called after the list": group(
            "col-1",
            1,
            group("col-1_tuple", 5, leaf("x", 50), repetition=REPEATED),
            annotation="LIST",
        ),
        "empty list group": group("col-1", 1, annotation="LIST"),
        "wrapper that is not repeated": group(
            "col-1", 1, group("list", None, leaf("element", 5)), annotation="LIST"
        ),
    }
    for name, node in shapes.items():
        yield RuleCase(
            rule=rule,
            name=name,
            subject=table(prefix, columns, footers=[footer(node)]),
            paths=("f1.parquet: `col-1`",),
        )
    yield RuleCase(
        rule=rule,
        name="group of several fields",
        subject=table(
            prefix,
            columns,
            footers=[
                footer(good, group("col-2", 2, group("list", 6, *pair, repetition=REPEATED),
                                   annotation="LIST"))
            ],
        ),
        paths=("f1.parquet: `col-2`",),
    )  # fmt: skip
    yield RuleCase(
        rule=rule,
        name="three levels",
        subject=table(
            prefix, columns, footers=[footer(good, listed("col-2", 2, group("element", 6, *pair)))]
        ),
    )
    yield RuleCase(
        rule=rule,
        name="a map of another shape",
        subject=table(
            prefix,
            struct(m=Map(STRING, LONG)),
            footers=[footer(group("col-1", 1, annotation="MAP"))],
        ),
        paths=("f1.parquet: `col-1`",),
    )
    yield RuleCase(
        rule=rule,
        name="a map as old writers annotate it",
        subject=table(
            prefix,
            struct(m=Map(STRING, LONG)),
            footers=[
                footer(
                    group(
                        "col-1",
                        1,
                        group("map", None, leaf("key", 2), leaf("value", 3), repetition=REPEATED),
                        annotation="MAP_KEY_VALUE",
                    )
                )
            ],
        ),
    )


def _timestamps(prefix: str) -> Iterator[RuleCase]:
    rule = f"{prefix}-12"
    columns = struct(t=TIMESTAMP, s=struct(u=TIMESTAMP), l=Array(TIMESTAMP))
    for physical, wrong in (
        ("INT64", ()),
        ("INT96", ("`col-1`", "`col-2`.`col-3`", "`col-4`.list.element")),
    ):
        yield RuleCase(
            rule=rule,
            name=physical,
            subject=table(
                prefix,
                columns,
                footers=[
                    footer(
                        leaf("col-1", 1, physical),
                        group("col-2", 2, leaf("col-3", 3, physical)),
                        listed("col-4", 4, leaf("element", 5, physical)),
                    )
                ],
            ),
            paths=tuple(f"f1.parquet: {column}" for column in wrong),
        )


def _counts(prefix: str) -> Iterator[RuleCase]:
    rule = f"{prefix}-24"
    node = leaf("col-1", 1)
    unread = FileFooter(add=file("f9.parquet"), root=None, problem="It is not Parquet.")
    for name, footers, wrong in (
        ("as counted", [footer(node)], ()),
        ("no statistics", [footer(node, rows=7, stats=None)], ()),
        ("cannot be read", [unread], ()),
        ("fewer and more",
         [footer(node, rows=2), footer(node, rows=4, name="f2.parquet"),
          footer(node, rows=3, name="f3.parquet")],
         ("f1.parquet", "f2.parquet")),
    ):  # fmt: skip
        yield RuleCase(rule=rule, name=name, subject=table(prefix, footers=footers), paths=wrong)
    rule = f"{prefix}-25"
    nameless = FileFooter(add=file("f8.parquet"), root=None)
    yield RuleCase(rule=rule, name="read", subject=table(prefix, footers=[footer(node)]))
    yield RuleCase(
        rule=rule,
        name="cannot be read",
        subject=table(prefix, footers=[unread, footer(node), nameless]),
        paths=("f9.parquet", "f8.parquet"),
    )


def _calendars(prefix: str) -> Iterator[RuleCase]:
    rule = f"{prefix}-26"
    node = leaf("col-1", 1)
    for name, columns, wrong in (
        ("today", (), ()),
        ("from 1900 on", [LegacyColumn(("col-1",), -2_208_988_800_000_000)], ()),
        ("just before 1900", [LegacyColumn(("col-1",), -2_208_988_800_000_001)], ("`col-1`",)),
        ("no minimum", [LegacyColumn(("col-1",), None)], ("`col-1`",)),
        ("nested",
         [LegacyColumn(("col-1",), 0), LegacyColumn(("col-2", "list", "element"), None),
          LegacyColumn(("col-3", "col-4"), -3_000_000_000_000_000)],
         ("`col-2`.list.element", "`col-3`.`col-4`")),
    ):  # fmt: skip
        yield RuleCase(
            rule=rule,
            name=name,
            subject=table(prefix, footers=[replace(footer(node), legacy=tuple(columns))]),
            paths=tuple(f"f1.parquet: {column}" for column in wrong),
        )
    unknown = replace(footer(node), legacy=(LegacyColumn(("col-1",), None),))
    for profile in (Profile.SPARK, Profile.KERNEL):
        yield RuleCase(
            rule=rule, name="not asked", subject=table(prefix, footers=[unknown]), profile=profile
        )


def _partition_values(prefix: str) -> Iterator[RuleCase]:
    rule = f"{prefix}-29"
    day, noon = date(2024, 2, 29), datetime(2024, 2, 29, 12)
    long = "x" * 40
    for name, kind, text, low, high, nulls, differs in (
        ("same text", STRING, "a", "a", "a", 0, False),
        ("other text", STRING, "a", "b", "b", 0, True),
        ("texts", STRING, "a", "a", "b", 0, True),
        ("long texts may be cut", STRING, f"{long}b", f"{long}a", f"{long}c", 0, False),
        ("long texts apart", STRING, "y", f"{long}a", f"{long}c", 0, True),
        ("same number", INTEGER, "7", 7, 7, 0, False),
        ("other number", LONG, "7", 7, 8, 0, True),
        ("nulls beside a value", INTEGER, "7", 7, 7, 1, True),
        ("null", INTEGER, None, None, None, 3, False),
        ("empty is null", STRING, "", None, None, 3, False),
        ("empty text where null", STRING, "", "", "", 0, True),
        ("value where null", INTEGER, None, 7, 7, 2, True),
        ("nothing known", INTEGER, "7", None, None, None, False),
        ("same day", DATE, "2024-02-29", day, day, 0, False),
        ("other day", DATE, "2024-02-28", day, day, 0, True),
        ("a day that became a time", TIMESTAMP_NTZ, "2024-02-28 00:00:00", day, day, 0, False),
        ("same time", TIMESTAMP_NTZ, "2024-02-29 12:00:00", noon, noon, 0, False),
        ("other time", TIMESTAMP, "2024-02-29T13:00:00Z", *2 * (noon.replace(tzinfo=UTC),), 0,
         True),
        ("a time in an unknown zone", TIMESTAMP, "2024-02-29 13:00:00",
         *2 * (noon.replace(tzinfo=UTC),), 0, False),
        ("decimal", Decimal(5, 2), "1.5", Number("1.50"), Number("1.50"), 0, False),
        ("other decimal", Decimal(5, 2), "1.5", Number("1.51"), Number("1.51"), 0, True),
        ("real", DOUBLE, "0.5", 0.5, 0.5, 0, False),
        ("a float that became a double", DOUBLE, "0.1", *2 * (0.10000000149011612,), 0, False),
        ("other real", DOUBLE, "1e300", 0.5, 0.5, 0, True),
        ("zeros", DOUBLE, "-0.0", -0.0, 0.0, 0, False),
        ("not a number", DOUBLE, "NaN", 1.0, 1.0, 0, False),
        ("flag", BOOLEAN, "true", True, True, 0, False),
        ("flags", BOOLEAN, "true", False, True, 0, True),
        ("no value of its type", INTEGER, "x", 7, 7, 0, False),
    ):  # fmt: skip
        bounds = ColumnBounds(name="col-1", minimum=low, maximum=high, nulls=nulls, values=3)
        read = replace(footer(leaf("col-1", 1), partition_values={"col-1": text}), bounds=(bounds,))
        yield RuleCase(
            rule=rule,
            name=name,
            subject=table(prefix, struct(p=kind, x=INTEGER), partitions=("p",), footers=[read]),
            paths=("f1.parquet: p",) if differs else (),
        )
    read = replace(read, add=file(partition_values={"col-1": "8"}))
    other = replace(read, add=file("f2.parquet", partition_values={"col-1": "9"}))
    yield RuleCase(
        rule=rule,
        name="two files",
        subject=table(
            prefix, struct(p=INTEGER, x=INTEGER), partitions=("p",), footers=[read, other]
        ),
        paths=("f1.parquet: p", "f2.parquet: p"),
    )
    for profile in (Profile.SPARK, Profile.KERNEL):
        yield RuleCase(
            rule=rule,
            name="not asked",
            subject=table(prefix, struct(p=INTEGER), partitions=("p",), footers=[read]),
            profile=profile,
        )


def _row_tracking() -> Iterator[RuleCase]:
    rule = "ICV3-22"
    names = {ROW_ID_NAME: "_row_id", ROW_VERSION_NAME: "_row_version"}
    a = leaf("col-1", 1)

    def case(
        name: str, *nodes: ParquetNode, wrong: tuple[str, ...] = (), **rest: object
    ) -> RuleCase:
        return RuleCase(
            rule=rule,
            name=name,
            subject=table("ICV3", footers=[footer(a, *nodes)], config=rest.get("config", names)),
            paths=tuple(f"f1.parquet: {column}" for column in wrong),
        )

    yield case("not written down")
    yield case("reserved ids", leaf("_row_id", 2147483540), leaf("_row_version", 2147483539))
    yield case(
        "exchanged",
        leaf("_row_id", 2147483539),
        leaf("_row_version", 2147483540),
        wrong=("_row_id", "_row_version"),
    )
    yield case(
        "no ids",
        leaf("_row_id", None),
        leaf("_row_version", None),
        wrong=("_row_id", "_row_version"),
    )
    yield case("columns that only look like it", leaf("_row_id", 9), config={})
