"""Cases for what Delta Spark and the Java kernel read otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tests.unit.compat.rule_tables import (
    FIELD_PLACES,
    MODE,
    PREFIXES,
    TRACKING,
    TYPE_PLACES,
    VECTOR,
    VECTORS,
    RuleCase,
    chain,
    edited,
    file,
    footer,
    leaf,
    mapped,
    protocol_for,
    state,
    struct,
    table,
    with_key,
)
from twinlake.compat import FileFooter, Profile
from twinlake.protocol import Protocol
from twinlake.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    COLLATIONS_KEY,
    COMMENT_KEY,
    CURRENT_DEFAULT_KEY,
    DATE,
    DOUBLE,
    GENERATION_EXPRESSION_KEY,
    ID_KEY,
    INTEGER,
    INVARIANTS_KEY,
    LONG,
    PHYSICAL_NAME_KEY,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TYPE_CHANGES_KEY,
    VARIANT,
    VOID,
    Array,
    DataType,
    Decimal,
    Geometry,
    Interval,
    Map,
    Struct,
    StructField,
)

__all__ = ["reading_cases"]

SPARK, KERNEL = Profile.SPARK, Profile.KERNEL
IN_COLLECTION = ("element", "map key", "map value", "deep")


def reading_cases() -> Iterator[RuleCase]:
    """Every case."""
    yield from _spark()
    for prefix in ("ICV1", "ICV2", "ICV3"):
        yield from _kernel_base(prefix)
        yield from _kernel_files(prefix)
    for prefix in ("ICV2", "ICV3"):
        yield from _kernel_columns(prefix)
    for prefix in ("IWC1", "IWC3"):
        yield from _kernel_features(prefix)
        yield from _kernel_writer(prefix)
    yield from _kernel_switch("IWC1")
    yield from _kernel_third()
    yield from _kernel_keys()
    yield from _kernel_defaults()


def _spark() -> Iterator[RuleCase]:
    on: dict[str, Any] = {"add": ["deletionVectors"], "config": {VECTORS: "true"}}
    for prefix in ("ICV1", "ICV2"):
        rule = f"{prefix}-05"
        idle = state(prefix, add=["deletionVectors"])
        for name, subject, paths in (
            ("feature alone", table(prefix, add=["deletionVectors"], before=idle), ()),
            ("property without feature", table(prefix, config={VECTORS: "true"}), ()),
            ("on", table(prefix, **on), (VECTORS,)),
            ("on before", table(prefix, before=state(prefix, **on)), (VECTORS,)),
            ("on and on before", table(prefix, before=state(prefix, **on), **on), (VECTORS,) * 2),
        ):
            yield RuleCase(rule=rule, name=name, subject=subject, paths=paths, profile=SPARK)
        marked = table(prefix, adds=[file(deletion_vector=VECTOR)], vectors=4)
        yield RuleCase(rule=f"{prefix}-06", name="not asked", subject=marked, profile=SPARK)
        yield RuleCase(rule=f"{prefix}-06", name="not asked", subject=marked, profile=KERNEL)
    for prefix in ("ICV1", "ICV2", "ICV3"):
        for mode, wrong in (("ID", ()), ("Name", ()), ("none", (MODE,)), (None, (MODE,))):
            yield RuleCase(
                rule=f"{prefix}-03",
                name=f"mode {mode}",
                subject=table(prefix, config={MODE: mode}),
                paths=wrong,
                profile=SPARK,
            )
    off = {PREFIXES["ICV3"].key: None}
    tracked = state("ICV3", config=off)
    untracked = state("ICV3", config={**off, TRACKING: None})
    for name, subject, paths in (
        ("rows had ids", table("ICV3", before=tracked), (TRACKING,)),
        ("rows had none", table("ICV3", before=untracked), ()),
        ("a new table", table("ICV3"), ()),
        ("replaced", table("ICV3", before=tracked, replaces=True), ()),
        ("on before", table("ICV3", before=state("ICV3")), ()),
    ):
        yield RuleCase(rule="ICV3-19", name=name, subject=subject, paths=paths, profile=SPARK)
        yield RuleCase(rule="ICV3-19", name=f"{name}, not asked", subject=subject)


def _kernel_base(prefix: str) -> Iterator[RuleCase]:
    compat = PREFIXES[prefix]
    listed = protocol_for(compat).writer_features or frozenset()
    bare = listed - {"columnMapping"}
    for protocol, paths, name in (
        (Protocol(2, 7, None, bare), (), "writers not told"),
        (Protocol(3, 7, ["columnMapping"], bare), (), "not in the writer list"),
        (Protocol(2, 4), (), "legacy versions that do not go together"),
        (Protocol(1, 7, None, listed), ("columnMapping",), "readers not told"),
        (Protocol(3, 7, [], listed), ("columnMapping",), "not in the reader list"),
    ):
        yield RuleCase(
            rule=f"{prefix}-02",
            name=name,
            subject=table(prefix, protocol=protocol),
            paths=paths,
            profile=KERNEL,
        )
    yield from _modes(f"{prefix}-03", prefix, {"ID", "Name", "name"}, {"none", "other"})
    others = [row.key for row in map(PREFIXES.__getitem__, ("ICV1", "ICV2", "ICV3"))]
    others.remove(compat.key)
    for value in ("TRUE", " true", "yes"):
        yield RuleCase(
            rule=f"{prefix}-04",
            name=f"{value!r}",
            subject=table(prefix, config=dict.fromkeys(others, value)),
            paths=tuple(others) if value == "TRUE" else (),
            profile=KERNEL,
        )
    yield from _kernel_history(prefix)
    if prefix != "ICV3":
        yield from _kernel_vectors(prefix)


def _modes(rule: str, prefix: str, good: set[str], bad: set[str]) -> Iterator[RuleCase]:
    for mode in sorted(good | bad):
        yield RuleCase(
            rule=rule,
            name=f"mode {mode}",
            subject=table(prefix, config={MODE: mode}),
            paths=(MODE,) if mode in bad else (),
            profile=KERNEL,
        )
    absent: dict[str, str | None] = {MODE: None}
    for name, subject, paths in (
        ("absent", table(prefix, config=absent), (MODE,)),
        ("absent on a new table", table(prefix, config=absent, creates=True), ()),
        ("absent on a replaced table", table(prefix, config=absent, replaces=True), ()),
    ):
        yield RuleCase(rule=rule, name=name, subject=subject, paths=paths, profile=KERNEL)
    yield RuleCase(
        rule=rule,
        name="none on a new table",
        subject=table(prefix, config={MODE: "none"}, creates=True),
        paths=(MODE,),
        profile=KERNEL,
    )


def _kernel_history(prefix: str) -> Iterator[RuleCase]:
    changes = [{"fromType": old, "toType": "double"} for old in ("integer", "short")]
    schema = Struct((with_key(TYPE_CHANGES_KEY, changes, DOUBLE),))
    names = protocol_for(PREFIXES[prefix]).writer_features or frozenset()
    for protocol, paths, name in (
        (Protocol(3, 7, ["columnMapping", "typeWidening"], names), ("c", "c"), "for readers only"),
        (Protocol(3, 7, ["columnMapping"], names | {"typeWidening"}), (), "for writers only"),
        (protocol_for(PREFIXES[prefix]), (), "no feature"),
    ):
        yield RuleCase(
            rule=f"{prefix}-15",
            name=name,
            subject=table(prefix, schema, protocol=protocol),
            paths=paths,
            profile=KERNEL,
        )


def _kernel_vectors(prefix: str) -> Iterator[RuleCase]:
    add = ["deletionVectors"]
    listed = (protocol_for(PREFIXES[prefix]).writer_features or frozenset()) | set(add)
    half = Protocol(3, 7, ["columnMapping"], listed)
    for name, subject, paths in (
        ("absent", table(prefix, before=state(prefix)), ()),
        ("property alone", table(prefix, config={VECTORS: "true"}), ()),
        ("for writers only", table(prefix, protocol=half), ()),
        ("listed", table(prefix, add=add), tuple(add)),
        ("listed before", table(prefix, before=state(prefix, add=add)), tuple(add)),
    ):
        yield RuleCase(rule=f"{prefix}-05", name=name, subject=subject, paths=paths, profile=KERNEL)


def _kernel_files(prefix: str) -> Iterator[RuleCase]:
    yield RuleCase(
        rule=f"{prefix}-10",
        name="statistics of any kind",
        subject=table(prefix, adds=[file(stats="{}"), file(stats="")]),
        profile=KERNEL,
    )
    yield RuleCase(
        rule=f"{prefix}-10",
        name="no statistics",
        subject=table(prefix, adds=[file("f1", stats=None), file("f2", stats=None)]),
        paths=("f1", "f2"),
        profile=KERNEL,
    )
    wrong = table(
        prefix,
        partitions=["a"],
        config={"delta.rowTracking.materializedRowIdColumnName": "_row_id"},
        footers=[
            footer(leaf("x", None, "INT96"), leaf("_row_id", None), rows=9),
            FileFooter(add=file(), root=None),
        ],
    )
    numbers = {"ICV1": "11 14 24 25", "ICV2": "11 12 14 24 25", "ICV3": "11 12 14 22 24 25"}
    for number in numbers[prefix].split():
        yield RuleCase(rule=f"{prefix}-{number}", name="not asked", subject=wrong, profile=KERNEL)
    columns = struct(p=LONG, q=LONG)
    yield RuleCase(
        rule=f"{prefix}-09",
        name="not asked",
        subject=table(
            prefix,
            columns,
            partitions=["q"],
            before=state(prefix, columns, partitions=["p"]),
            replaces=True,
        ),
        profile=KERNEL,
    )


def _kernel_columns(prefix: str) -> Iterator[RuleCase]:
    rule = f"{prefix}-07"
    bad: list[DataType] = [VOID, *([VARIANT] if prefix == "ICV2" else [])]
    for place, make in TYPE_PLACES.items():
        for kind in bad:
            schema, path = make(kind)
            yield RuleCase(
                rule=rule,
                name=f"{kind}, {place}",
                subject=table(prefix, schema),
                paths=(path,),
                profile=KERNEL,
            )
        for kind in (LONG, STRING, BYTE, *([VARIANT, Geometry()] if prefix == "ICV3" else [])):
            schema, _ = make(kind)
            yield RuleCase(
                rule=rule, name=f"{kind}, {place}", subject=table(prefix, schema), profile=KERNEL
            )
    yield RuleCase(
        rule=rule,
        name="two columns",
        subject=table(prefix, struct(a=VOID, l=Array(VOID))),
        paths=("a", "l.element"),
        profile=KERNEL,
    )
    texts = with_key(COLLATIONS_KEY, {"c.key": "icu.DE", "c.value": "icu.DE"}, Map(STRING, STRING))
    yield RuleCase(
        rule=rule,
        name="collated keys only",
        subject=table(prefix, Struct((texts,))),
        paths=("c.key",),
        profile=KERNEL,
    )
    rule = f"{prefix}-08"
    for column, listed, fine in (
        ("region", "region", True),
        ("region", "REGION", True),
        ("Region", "Region", False),
        ("Region", "region", False),
    ):
        yield RuleCase(
            rule=rule,
            name=f"column {column} as {listed}",
            subject=table(prefix, struct(**{column: STRING, "v": LONG}), partitions=[listed]),
            paths=() if fine else (listed,),
            profile=KERNEL,
        )
    yield RuleCase(
        rule=rule,
        name="types",
        subject=table(
            prefix, struct(p=Array(LONG), q=VARIANT, r=Decimal(3, 1)), partitions=["p", "q", "r"]
        ),
        paths=("p", "q"),
        profile=KERNEL,
    )
    rule = f"{prefix}-13"
    for name, mapping, paths in _MAPPINGS:
        listing = StructField("c", Array(LONG), metadata=mapping)
        yield RuleCase(
            rule=rule,
            name=name,
            subject=table(prefix, Struct((listing,)), raw=True),
            paths=paths if name in ("id alone", "name alone") else (),
            profile=KERNEL,
        )
    halves = Struct(
        (
            StructField("c", LONG, metadata={ID_KEY: 1}),
            StructField("s", Array(Struct((StructField("d", LONG, metadata={ID_KEY: 2}),)))),
        )
    )
    yield RuleCase(
        rule=rule,
        name="two halves",
        subject=table(prefix, halves, raw=True),
        paths=("c", "s.element.d"),
        profile=KERNEL,
    )


_MAPPINGS: tuple[tuple[str, dict[str, object], tuple[str, ...]], ...] = (
    ("neither", {}, ()),
    ("both", {ID_KEY: 1, PHYSICAL_NAME_KEY: "col-1"}, ()),
    ("id alone", {ID_KEY: 1}, ("c",)),
    ("name alone", {PHYSICAL_NAME_KEY: "col-1"}, ("c",)),
    ("another name", {ID_KEY: 1, PHYSICAL_NAME_KEY: "c"}, ("c",)),
)


def _kernel_features(prefix: str) -> Iterator[RuleCase]:
    rule = f"{prefix}-10"
    tolerated = ["checkpointProtection", "typeWidening-preview", "catalogManaged", "appendonly"]
    refused = ["collations", "fromTheFuture", "icebergCompatV1", "materializePartitionColumns"]
    refused += ["allowColumnDefaults", "deletionVectors"] if prefix == "IWC1" else []
    yield RuleCase(
        rule=rule, name="tolerated", subject=table(prefix, add=tolerated), profile=KERNEL
    )
    yield RuleCase(
        rule=rule,
        name="refused",
        subject=table(prefix, add=[*tolerated, *refused]),
        paths=tuple(refused),
        profile=KERNEL,
    )
    yield RuleCase(
        rule=f"{prefix}-17",
        name="left to the list",
        subject=table(prefix, add=refused),
        profile=KERNEL,
    )


def _kernel_writer(prefix: str) -> Iterator[RuleCase]:
    listed = protocol_for(PREFIXES[prefix]).writer_features or frozenset()
    for reader, paths in ((1, ("columnMapping",)), (2, ())):
        yield RuleCase(
            rule=f"{prefix}-01",
            name=f"reader version {reader}; the base speaks",
            subject=table(prefix, protocol=Protocol(reader, 7, None, listed)),
            paths=(),
            profile=KERNEL,
        )
        yield RuleCase(
            rule=f"{chain(PREFIXES[prefix])[1].prefix}-02",
            name=f"reader version {reader}, on a table for writers",
            subject=table(prefix, protocol=Protocol(reader, 7, None, listed)),
            paths=paths,
            profile=KERNEL,
        )
    names = [row.feature for row in chain(PREFIXES[prefix])]
    for missing, told in ((names[0], (names[0],)), (names[1], ())):
        yield RuleCase(
            rule=f"{prefix}-03",
            name=f"without {missing}",
            subject=table(prefix, without=[missing]),
            paths=told,
            profile=KERNEL,
        )
    yield RuleCase(
        rule=f"{prefix}-02",
        name="the base speaks",
        subject=table(prefix, protocol=Protocol(2, 5)),
        profile=KERNEL,
    )
    base = chain(PREFIXES[prefix])[1].key
    for value, creates, fine in (
        ("TRUE", False, True),
        ("true ", False, False),
        (None, False, False),
        (None, True, True),
        ("false", True, False),
    ):
        yield RuleCase(
            rule=f"{prefix}-04",
            name=f"{value!r} on {'a new' if creates else 'an existing'} table",
            subject=table(prefix, config={base: value}, creates=creates),
            paths=() if fine else (base,),
            profile=KERNEL,
        )
    yield from _modes(f"{prefix}-05", prefix, {"ID", "Id"}, {"none", "Name", "other"})
    for name, mapping, wrong in _MAPPINGS:
        yield RuleCase(
            rule=f"{prefix}-06",
            name=name,
            subject=table(prefix, Struct((StructField("c", LONG, metadata=mapping),)), raw=True),
            paths=wrong,
            profile=KERNEL,
        )
    off = Struct(tuple(StructField(n, LONG, metadata={ID_KEY: 9}) for n in ("a", "b")))
    yield RuleCase(
        rule=f"{prefix}-06",
        name="two columns, one deep",
        subject=table(prefix, Struct((*off.fields, StructField("l", Array(off)))), raw=True),
        paths=("a", "b", "l.element.a", "l.element.b"),
        profile=KERNEL,
    )
    yield RuleCase(
        rule=f"{prefix}-08",
        name="left to the base",
        subject=table(prefix, struct(a=VOID, b=Interval("day", "day"))),
        profile=KERNEL,
    )
    yield from _kernel_idle(prefix)


def _kernel_idle(prefix: str) -> Iterator[RuleCase]:
    keys = {
        "11": (INVARIANTS_KEY,),
        "14": ("delta.identity.start", "delta.identity.step", "delta.identity.allowExplicitInsert"),
        "15": (GENERATION_EXPRESSION_KEY,),
    }
    for number, own in keys.items():
        for place, make in FIELD_PLACES.items():
            for key in own:
                schema, path = make(with_key(key, "1"))
                yield RuleCase(
                    rule=f"{prefix}-{number}",
                    name=f"{key}, {place}",
                    subject=table(prefix, schema),
                    paths=() if place in IN_COLLECTION else (path,),
                    profile=KERNEL,
                )
        column = with_key(own[0], "1")
        yield RuleCase(
            rule=f"{prefix}-{number}",
            name="two columns",
            subject=table(prefix, Struct((column, StructField("s", Struct((column,)))))),
            paths=("c", "s.c"),
            profile=KERNEL,
        )
    yield RuleCase(
        rule=f"{prefix}-14",
        name="the mark alone goes unseen",
        subject=table(prefix, Struct((with_key("delta.identity.highWaterMark", "1"),))),
        profile=KERNEL,
    )
    feed = "delta.enableChangeDataFeed"
    keys_off = [("12", feed), *([("16", TRACKING)] if prefix == "IWC1" else [])]
    for number, key in keys_off:
        for value in ("True", " true", "yes"):
            yield RuleCase(
                rule=f"{prefix}-{number}",
                name=f"{value!r}",
                subject=table(prefix, config={key: value}),
                paths=(key,) if value == "True" else (),
                profile=KERNEL,
            )


def _kernel_switch(prefix: str) -> Iterator[RuleCase]:
    key = PREFIXES[prefix].key
    off = {key: None}
    on_before, off_before = state(prefix), state(prefix, config=off)
    for name, subject, paths in (
        ("stays on", table(prefix, before=on_before), ()),
        ("stays off", table(prefix, before=off_before, config=off), ()),
        ("switched on", table(prefix, before=off_before), (key,)),
        ("switched off", table(prefix, before=on_before, config=off), (key,)),
        ("switched on by a replacement", table(prefix, before=off_before, replaces=True), ()),
        (
            "switched off by a replacement",
            table(prefix, before=on_before, config=off, replaces=True),
            (),
        ),
        ("a new table", table(prefix, creates=True), ()),
    ):
        yield RuleCase(rule=f"{prefix}-19", name=name, subject=subject, paths=paths, profile=KERNEL)
        if paths:
            for profile in (Profile.SPEC, SPARK):
                yield RuleCase(
                    rule=f"{prefix}-19", name=f"{name}, allowed", subject=subject, profile=profile
                )


def _kernel_third() -> Iterator[RuleCase]:
    for value, creates, fine in (
        ("true", False, True),
        (" true", False, False),
        (None, False, False),
        (None, True, True),
    ):
        yield RuleCase(
            rule="ICV3-18",
            name=f"{value!r} on {'a new' if creates else 'an existing'} table",
            subject=table("ICV3", config={TRACKING: value}, creates=creates),
            paths=() if fine else (TRACKING,),
            profile=KERNEL,
        )
    yield RuleCase(
        rule="ICV3-18",
        name="not listed",
        subject=table("ICV3", without=["rowTracking"], config={TRACKING: "false"}),
        paths=(TRACKING, "rowTracking"),
        profile=KERNEL,
    )
    key = PREFIXES["ICV3"].key
    off = {key: None, TRACKING: None}
    on_before, off_before = state("ICV3"), state("ICV3", config=off)
    for number, name, subject, paths in (
        ("19", "switched on", table("ICV3", before=off_before), (key,)),
        ("19", "a new table", table("ICV3", creates=True), ()),
        ("19", "replaced", table("ICV3", before=off_before, replaces=True), ()),
        ("19", "stays on", table("ICV3", before=on_before), ()),
        ("20", "switched off", table("ICV3", before=on_before, config=off), (key,)),
        ("20", "stays on", table("ICV3", before=on_before), ()),
        ("20", "replaced", table("ICV3", before=on_before, config=off, replaces=True), ()),
    ):
        yield RuleCase(
            rule=f"ICV3-{number}", name=name, subject=subject, paths=paths, profile=KERNEL
        )


def _kernel_keys() -> Iterator[RuleCase]:
    """A change in a struct that is a key, by every way to it."""
    ways: dict[str, Callable[[Struct], DataType]] = {
        "struct": lambda key: Map(key, LONG),
        "map in the key": lambda key: Map(Map(key, LONG), LONG),
        "map in the value": lambda key: Map(STRING, Map(key, LONG)),
        "array of maps": lambda key: Array(Map(key, LONG)),
        "array in the key": lambda key: Map(Array(key), LONG),
        "map in an array in the key": lambda key: Map(Array(Map(key, LONG)), LONG),
        "value of a map in the key": lambda key: Map(Map(LONG, Map(key, LONG)), LONG),
    }
    where = {
        "struct": "m.key",
        "map in the key": "m.key.key",
        "map in an array in the key": "m.key.element.key",
        "map in the value": "m.value.key",
        "array of maps": "m.element.key",
        "value of a map in the key": "m.key.value.key",
    }
    for name, way in ways.items():
        old, new = mapped(struct(m=way(struct(s=LONG)))), mapped(struct(m=way(struct(t=LONG))))
        for prefix in ("IWC1", "IWC3"):
            told = (where[name],) if prefix == "IWC1" and name in where else ()
            yield RuleCase(
                rule=f"{prefix}-09",
                name=name,
                subject=table(prefix, new, raw=True, before=state(prefix, old, raw=True)),
                paths=told,
                profile=KERNEL,
            )
    old = mapped(struct(m=Map(struct(s=LONG), LONG), n=Map(struct(s=LONG), LONG)))
    before = state("IWC1", old, raw=True)
    for name, change, paths in (
        ("comments", {"comment": "x"}, ("m.key", "n.key")),
        ("value side", {"value": STRING}, ()),
        ("struct becomes a number", {"key": LONG}, ()),
    ):
        new = Struct(tuple(replace(f, type=_changed(f.type, change)) for f in old))
        yield RuleCase(
            rule="IWC1-09",
            name=name,
            subject=table("IWC1", new, raw=True, before=before),
            paths=paths,
            profile=KERNEL,
        )


def _changed(kind: DataType, change: Mapping[str, Any]) -> DataType:
    """The map with another key or value, or with a comment in its key."""
    assert isinstance(kind, Map) and isinstance(kind.key, Struct)
    if COMMENT_KEY not in change:
        return replace(kind, **change)
    return replace(kind, key=edited(kind.key, lambda field: field.with_metadata(**change)))


def _kernel_defaults() -> Iterator[RuleCase]:
    values: tuple[tuple[DataType, str, bool], ...] = (
        (LONG, "5", True), (LONG, "'5'", True), (LONG, "NULL", False), (LONG, "5L", False),
        (INTEGER, "3000000000", False), (SHORT, "7", True), (BYTE, "7", False),
        (STRING, "'x'", True), (STRING, '"x"', True), (STRING, "x", False), (BINARY, "'x'", True),
        (BOOLEAN, "whatever", True), (DOUBLE, "1e3", True), (DOUBLE, "NaN", True),
        (DOUBLE, "one", False), (Decimal(4, 2), "12.34", True), (Decimal(4, 2), "1.234", False),
        (Decimal(4, 2), "12345", False), (Decimal(4, 2), " 7 ", False),
        (DATE, "'2020-01-31'", True), (DATE, "'2020-02-31'", False),
        (DATE, "DATE '2020-01-31'", False),
        (TIMESTAMP, "'2020-01-01T00:00:00Z'", True),
        (TIMESTAMP, "'2020-01-01T00:00:00'", False), (TIMESTAMP, "'2020-01-01 00:00:00'", False),
        (TIMESTAMP_NTZ, "'2020-01-01T00:00:00.5'", True),
        (TIMESTAMP_NTZ, "'2020-01-01T00:00:00Z'", False), (DATE, "'0000-02-29'", True),
        (DATE, "'+10000-01-01'", True), (DATE, "'10000-01-01'", False), (DOUBLE, "0x1p3", True),
        (TIMESTAMP, "'2020-01-01t00:00:00.z'", True),
        (TIMESTAMP, "'2020-01-01T00:00:00+18:01'", False), (INTEGER, "\u0967", True),
        (Array(LONG), "'x'", False), (Geometry(), "'x'", False),
    )  # fmt: skip
    for kind, text, fine in values:
        for place in ("top", "element"):
            schema, path = FIELD_PLACES[place](with_key(CURRENT_DEFAULT_KEY, text, kind))
            yield RuleCase(
                rule="ICV3-21",
                name=f"{text} for {kind}, {place}",
                subject=table("ICV3", schema),
                paths=() if fine else (path,),
                profile=KERNEL,
            )
    both = Struct(
        tuple(StructField(n, LONG, metadata={CURRENT_DEFAULT_KEY: "x"}) for n in ("a", "b"))
    )
    yield RuleCase(
        rule="ICV3-21",
        name="two columns",
        subject=table("ICV3", both),
        paths=("a", "b"),
        profile=KERNEL,
    )
