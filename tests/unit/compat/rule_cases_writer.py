"""Cases for the rules of icebergWriterCompatV1 and V3."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from tests.unit.compat.rule_tables import (
    FIELD_PLACES,
    MODE,
    PLAIN,
    PREFIXES,
    TRACKING,
    TYPE_PLACES,
    RuleCase,
    chain,
    edited,
    mapped,
    protocol_for,
    renamed,
    state,
    struct,
    table,
    with_key,
)
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
    FLOAT,
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
    VARIANT,
    VOID,
    Array,
    DataType,
    Decimal,
    Geography,
    Geometry,
    Interval,
    Map,
    Struct,
    StructField,
)

__all__ = ["writer_cases"]

BOTH = ("IWC1", "IWC3")
FEED = "delta.enableChangeDataFeed"
IDENTITY = tuple(
    f"delta.identity.{part}" for part in ("start", "step", "highWaterMark", "allowExplicitInsert")
)


def writer_cases() -> Iterator[RuleCase]:
    """Every case."""
    for prefix in BOTH:
        yield from _protocol(prefix)
        yield from _features(prefix)
        yield from _properties(prefix)
        yield from _names(prefix)
        yield from _types(prefix)
        yield from _keys(prefix)
        yield from _map_keys(prefix)


def _protocol(prefix: str) -> Iterator[RuleCase]:
    compat = PREFIXES[prefix]
    listed = protocol_for(compat).writer_features or frozenset()
    for protocol, told, name in (
        (Protocol(2, 7, None, listed), (), "reader version 2"),
        (Protocol(3, 7, ["columnMapping"], listed), (), "reader list"),
        (Protocol(2, 7, None, listed - {"columnMapping"}), (), "only readers told"),
        (Protocol(1, 7, None, listed), ("columnMapping",), "readers not told"),
        (Protocol(3, 7, [], listed), ("columnMapping",), "not in the reader list"),
    ):
        yield RuleCase(
            rule=f"{prefix}-01", name=name, subject=table(prefix, protocol=protocol), paths=told
        )
    yield RuleCase(rule=f"{prefix}-02", name="writer 7", subject=table(prefix))
    yield RuleCase(
        rule=f"{prefix}-02",
        name="legacy",
        subject=table(prefix, protocol=Protocol(2, 6)),
        paths=("minWriterVersion",),
    )
    names = [row.feature for row in chain(compat)]
    yield RuleCase(rule=f"{prefix}-03", name="both listed", subject=table(prefix))
    for missing in ([names[0]], [names[1]], names):
        yield RuleCase(
            rule=f"{prefix}-03",
            name=f"without {missing}",
            subject=table(prefix, without=missing),
            paths=tuple(missing),
        )


def _features(prefix: str) -> Iterator[RuleCase]:
    idle = ("invariants", "changeDataFeed", "checkConstraints", "identityColumns",
            "generatedColumns", "rowTracking")  # fmt: skip
    allowed = ("appendOnly", "domainMetadata", "vacuumProtocolCheck", "v2Checkpoint",
               "inCommitTimestamp", "clustering", "timestampNtz", "typeWidening")  # fmt: skip
    third = ("deletionVectors", "variantType", "variantType-preview", "variantShredding",
             "variantShredding-preview", "allowColumnDefaults", "geospatial", "icebergCompatV2",
             "icebergWriterCompatV1")  # fmt: skip
    never = ("materializePartitionColumns", "checkpointProtection", "typeWidening-preview",
             "catalogManaged", "icebergCompatV1", "fromTheFuture", "geospatial-dev")  # fmt: skip
    apart = {
        "IWC1": ("allowColumnDefaults", "collations", "collations-preview", "variantType",
                 "variantType-preview", "variantShredding", "variantShredding-preview"),
        "IWC3": ("collations", "collations-preview"),
    }[prefix]  # fmt: skip
    good = [*idle, *allowed, *(third if prefix == "IWC3" else ())]
    off_list = [*never, *(("deletionVectors", "geospatial") if prefix == "IWC1" else ())]
    for name in good:
        for number in ("10", "17"):
            yield RuleCase(rule=f"{prefix}-{number}", name=name, subject=table(prefix, add=[name]))
    for name in off_list:
        yield RuleCase(
            rule=f"{prefix}-10", name=name, subject=table(prefix, add=[name]), paths=(name,)
        )
    for name in apart:
        yield RuleCase(
            rule=f"{prefix}-17", name=name, subject=table(prefix, add=[name]), paths=(name,)
        )
        yield RuleCase(
            rule=f"{prefix}-10", name=f"{name}, told apart", subject=table(prefix, add=[name])
        )
    yield RuleCase(
        rule=f"{prefix}-10",
        name="all at once",
        subject=table(prefix, add=[*good, *off_list]),
        paths=tuple(off_list),
    )
    yield RuleCase(
        rule=f"{prefix}-17",
        name="all at once",
        subject=table(prefix, add=[*good, *apart]),
        paths=apart,
    )
    for place, make in FIELD_PLACES.items():
        schema, path = make(with_key(CURRENT_DEFAULT_KEY, "5"))
        name = f"a default without the feature, {place}"
        told = (path,) if prefix == "IWC1" else ()
        yield RuleCase(rule=f"{prefix}-17", name=name, subject=table(prefix, schema), paths=told)
    yield RuleCase(
        rule=f"{prefix}-10", name="legacy features", subject=table(prefix, protocol=Protocol(2, 6))
    )


def _properties(prefix: str) -> Iterator[RuleCase]:
    base = chain(PREFIXES[prefix])[1].key
    yield RuleCase(rule=f"{prefix}-04", name="on", subject=table(prefix))
    for value in (None, "false", "yes"):
        yield RuleCase(
            rule=f"{prefix}-04",
            name=f"{value}",
            subject=table(prefix, config={base: value}),
            paths=(base,),
        )
    yield RuleCase(rule=f"{prefix}-05", name="id", subject=table(prefix))
    for mode in ("name", "none", None, "ID", " id"):
        yield RuleCase(
            rule=f"{prefix}-05",
            name=f"{mode}",
            subject=table(prefix, config={MODE: mode}),
            paths=(MODE,),
        )
    for value in (None, "false", "disabled", "no"):
        yield RuleCase(
            rule=f"{prefix}-12", name=f"{value}", subject=table(prefix, config={FEED: value})
        )
    for value in ("true", "TRUE"):
        yield RuleCase(
            rule=f"{prefix}-12",
            name=f"{value}",
            subject=table(prefix, config={FEED: value}),
            paths=(FEED,),
        )
    checks = {"delta.constraints.a": "x > 0", "delta.constraints.b": "y > 0"}
    yield RuleCase(
        rule=f"{prefix}-13",
        name="none",
        subject=table(prefix, config={"constraints.a": "x > 0", "delta.constraintsX": "1"}),
    )
    yield RuleCase(
        rule=f"{prefix}-13",
        name="two",
        subject=table(prefix, config=dict(checks)),
        paths=tuple(checks),
    )
    if prefix == "IWC1":
        for value, told in ((None, ()), ("false", ()), ("no", ()), ("true", (TRACKING,))):
            yield RuleCase(
                rule="IWC1-16",
                name=f"{value}",
                subject=table(prefix, config={TRACKING: value}, add=["rowTracking"]),
                paths=told,
            )


def _names(prefix: str) -> Iterator[RuleCase]:
    rule = f"{prefix}-06"
    for place, make in FIELD_PLACES.items():
        schema, path = make(StructField("c", LONG))
        yield RuleCase(rule=rule, name=f"made from the id, {place}", subject=table(prefix, schema))
        for name, mapping in {
            "another name": {ID_KEY: 77, PHYSICAL_NAME_KEY: "col-abc"},
            "the name of another id": {ID_KEY: 77, PHYSICAL_NAME_KEY: "col-7"},
            "capitals": {ID_KEY: 77, PHYSICAL_NAME_KEY: "COL-77"},
        }.items():
            schema, path = make(StructField("c", LONG, metadata=mapping))
            yield RuleCase(
                rule=rule, name=f"{name}, {place}", subject=table(prefix, schema), paths=(path,)
            )
    halves: dict[str, dict[str, object]] = {
        "no name": {ID_KEY: 1},
        "no id": {PHYSICAL_NAME_KEY: "col-1"},
        "neither": {},
        "an id that is text": {ID_KEY: "1", PHYSICAL_NAME_KEY: "col-1"},
    }
    for name, held in halves.items():
        column = StructField("c", LONG, metadata=held)
        yield RuleCase(
            rule=rule,
            name=name,
            subject=table(prefix, Struct((column,)), raw=True),
            paths=("c",),
        )
    yield RuleCase(
        rule=rule,
        name="all of them",
        subject=table(prefix, struct(a=LONG, s=struct(b=LONG)), raw=True),
        paths=("a", "s", "s.b"),
    )


def _types(prefix: str) -> Iterator[RuleCase]:
    third = prefix == "IWC3"
    fine: list[DataType] = [
        INTEGER, LONG, FLOAT, DOUBLE, Decimal(9, 2), STRING, BINARY, BOOLEAN, TIMESTAMP,
        TIMESTAMP_NTZ, DATE,
    ]  # fmt: skip
    fine += [VARIANT, Geometry(), Geography()] if third else []
    outside: list[DataType] = [VOID, Interval("day", "second")]
    outside += [] if third else [VARIANT, Geometry(), Geography()]
    for place, make in TYPE_PLACES.items():
        for kind in fine:
            schema, _ = make(kind)
            for number in ("07", "08"):
                yield RuleCase(
                    rule=f"{prefix}-{number}",
                    name=f"{kind}, {place}",
                    subject=table(prefix, schema),
                )
        for kind in (BYTE, SHORT):
            schema, path = make(kind)
            yield RuleCase(
                rule=f"{prefix}-07",
                name=f"{kind}, {place}",
                subject=table(prefix, schema),
                paths=(path,),
            )
            yield RuleCase(
                rule=f"{prefix}-08",
                name=f"{kind} is told apart, {place}",
                subject=table(prefix, schema),
            )
        for kind in outside:
            schema, path = make(kind)
            yield RuleCase(
                rule=f"{prefix}-08",
                name=f"{kind}, {place}",
                subject=table(prefix, schema),
                paths=(path,),
            )
    yield RuleCase(
        rule=f"{prefix}-07",
        name="three columns",
        subject=table(prefix, struct(a=BYTE, m=Map(SHORT, BYTE))),
        paths=("a", "m.key", "m.value"),
    )
    yield RuleCase(
        rule=f"{prefix}-08",
        name="three columns, one collated",
        subject=table(
            prefix,
            Struct(
                (
                    with_key(COLLATIONS_KEY, {"c": "icu.DE_CI"}, STRING),
                    StructField("v", VOID),
                    StructField("l", Array(VOID)),
                )
            ),
        ),
        paths=("c", "v", "l.element"),
    )


def _keys(prefix: str) -> Iterator[RuleCase]:
    for number, keys in (
        ("11", [(INVARIANTS_KEY,)]),
        ("14", [*((key,) for key in IDENTITY), IDENTITY]),
        ("15", [(GENERATION_EXPRESSION_KEY,)]),
    ):
        rule = f"{prefix}-{number}"
        for place, make in FIELD_PLACES.items():
            schema, _ = make(StructField("c", LONG, nullable=False, metadata={COMMENT_KEY: "x"}))
            yield RuleCase(
                rule=rule, name=f"NOT NULL and a comment, {place}", subject=table(prefix, schema)
            )
            for held in keys:
                column = StructField("c", LONG, metadata=dict.fromkeys(held, "1"))
                schema, path = make(column)
                yield RuleCase(
                    rule=rule,
                    name=f"{len(held)} of {held[0]}, {place}",
                    subject=table(prefix, schema),
                    paths=(path,),
                )
        column = with_key(keys[0][0], "1")
        yield RuleCase(
            rule=rule,
            name="two columns",
            subject=table(prefix, Struct((column, StructField("s", Array(Struct((column,))))))),
            paths=("c", "s.element.c"),
        )


KEY = struct(s=STRING, n=struct(x=INTEGER, y=LONG))
MAPS: Mapping[str, Callable[[DataType], Struct]] = {
    "top": lambda key: struct(m=Map(key, KEY)),
    "in a struct": lambda key: struct(o=struct(m=Map(key, KEY))),
    "in an array": lambda key: struct(l=Array(Map(key, KEY))),
    "in a map value": lambda key: struct(v=Map(STRING, Map(key, KEY))),
    "in a map key": lambda key: struct(w=Map(Map(key, LONG), LONG)),
}
MAP_PATHS = {
    "top": "m.key",
    "in a struct": "o.m.key",
    "in an array": "l.element.key",
    "in a map value": "v.value.key",
    "in a map key": "w.key.key",
}
ROUTES: Mapping[str, Callable[[Struct], DataType]] = {
    "": lambda key: key,
    "element": Array,
    "element.element": lambda key: Array(Array(key)),
    "key": lambda key: Map(key, LONG),
    "value": lambda key: Map(STRING, key),
    "o": lambda key: struct(o=key),
    "o.element": lambda key: struct(o=Array(key)),
}
"""How a struct can be inside a key."""


def _with_struct(kind: DataType, new: Struct) -> DataType:
    """The type with the struct that has a field ``s`` or ``S`` replaced."""
    match kind:
        case Struct(fields):
            if kind.get("s") is not None:
                return new
            return Struct(tuple(replace(f, type=_with_struct(f.type, new)) for f in fields))
        case Array(element):
            return replace(kind, element=_with_struct(element, new))
        case Map(key, value):
            # Maps here have the struct on one side only, or in the key first.
            changed = _with_struct(key, new)
            if changed != key:
                return replace(kind, key=changed)
            return replace(kind, value=_with_struct(value, new))
        case _:
            return kind


def _inner(kind: DataType) -> Struct | None:
    """The first struct with a field ``s``, keys first."""
    match kind:
        case Struct(fields):
            if kind.get("s") is not None:
                return kind
            return next((found for f in fields if (found := _inner(f.type)) is not None), None)
        case Array(element):
            return _inner(element)
        case Map(key, value):
            return _inner(key) or _inner(value)
        case _:
            return None


def _changes(key: Struct) -> dict[str, tuple[Struct, tuple[str, ...]]]:
    """What can be done to a key, and where it shows below the key."""
    s, n = key.fields
    assert isinstance(n.type, Struct)
    x, y = n.type.fields
    added = StructField("z", LONG, metadata={ID_KEY: 99, PHYSICAL_NAME_KEY: "col-99"})

    def inside(*fields: StructField) -> Struct:
        return Struct((s, replace(n, type=Struct(fields))))

    return {
        "add": (Struct((*key.fields, added)), ("z",)),
        "add, deeper": (inside(x, y, added), ("n.z",)),
        "drop": (Struct((s,)), ("n",)),
        "drop, deeper": (inside(y), ("n.x",)),
        "rename": (edited(key, renamed("t")), ("t",)),
        "reorder": (Struct((n, s)), ("",)),
        "reorder, deeper": (inside(y, x), ("n",)),
        "retype": (inside(replace(x, type=LONG), y), ("n.x",)),
        "to NOT NULL": (edited(key, lambda f: replace(f, nullable=False)), ("s",)),
        "another id": (edited(key, lambda f: f.with_metadata(**{ID_KEY: 98})), ("s",)),
        "no id": (edited(key, lambda f: f.with_metadata(**{ID_KEY: None})), ("s",)),
        "another physical name": (
            edited(key, lambda f: f.with_metadata(**{PHYSICAL_NAME_KEY: "col-97"})),
            ("s",),
        ),
        "two at once": (
            Struct((replace(s, name="t"), replace(n, nullable=False))),
            ("t", "n"),
        ),
    }


def _map_keys(prefix: str) -> Iterator[RuleCase]:
    rule = f"{prefix}-09"
    for where, make in MAPS.items():
        for route, wrap in ROUTES.items():
            old = mapped(make(wrap(KEY)))
            before = state(prefix, old, raw=True)
            key = _inner(old)
            assert key is not None
            yield RuleCase(
                rule=rule,
                name=f"same, {where} {route}",
                subject=table(prefix, old, raw=True, before=before),
            )
            for change, (new_key, below) in _changes(key).items():
                new = _with_struct(old, new_key)
                assert isinstance(new, Struct) and new != old
                start = ".".join(part for part in (MAP_PATHS[where], route) if part)
                yield RuleCase(
                    rule=rule,
                    name=f"{change}, {where} {route}",
                    subject=table(prefix, new, raw=True, before=before),
                    paths=tuple(f"{start}.{end}".rstrip(".") for end in below),
                )
    yield from _map_key_neighbours(prefix)


def _map_key_neighbours(prefix: str) -> Iterator[RuleCase]:
    """Changes that are none of a key's struct, and the A14 pair."""
    rule = f"{prefix}-09"
    value = struct(v=INTEGER)
    old = mapped(struct(m=Map(struct(s=STRING), value), x=LONG))
    column, other = old.fields
    before = state(prefix, old, raw=True)
    assert isinstance(column.type, Map)
    key = column.type.key
    assert isinstance(key, Struct)
    more = StructField("z", LONG, metadata={ID_KEY: 50, PHYSICAL_NAME_KEY: "col-50"})
    taller = Struct((*value.fields, more))
    wider = mapped(struct(n=Map(Array(INTEGER), LONG)))
    longer = Struct((replace(wider.fields[0], type=Map(Array(LONG), LONG)),))
    for name, new, paths in (
        ("A14: field added to the key",
         Struct((replace(column, type=replace(column.type, key=Struct((*key.fields, more)))),)),
         ("m.key.z",)),
        ("A14: field added to the value",
         Struct((replace(column, type=replace(column.type, value=taller)), other)), ()),
        ("value may be null no more",
         Struct((replace(column, type=replace(column.type, value_contains_null=False)), other)),
         ()),
        ("map renamed", Struct((replace(column, name="renamed"), other)), ()),
        ("map moved", Struct((other, column)), ()),
        ("map NOT NULL", Struct((replace(column, nullable=False), other)), ()),
        ("map dropped", Struct((other,)), ()),
        ("map dropped, another of its name",
         Struct((mapped(struct(m=Map(struct(t=LONG), LONG)), max_id=60).fields[0], other)), ()),
        ("another map added",
         Struct((column, other, *mapped(struct(q=Map(PLAIN, LONG)), max_id=70).fields)), ()),
        ("comment in the key",
         Struct((replace(column, type=replace(column.type, key=edited(
             key, lambda f: f.with_metadata(**{COMMENT_KEY: "x"})))), other)), ()),
        ("map became text", Struct((replace(column, type=STRING), other)), ("m.key",)),
        ("key became a number",
         Struct((replace(column, type=replace(column.type, key=LONG)), other)), ("m.key",)),
        ("nested id of the key changes",
         Struct((column.with_metadata(**{"delta.columnMapping.nested.ids":
                 {"col-1.key": 91, "col-1.value": 92}}), other)), ("m.key",)),
    ):  # fmt: skip
        yield RuleCase(
            rule=rule,
            name=name,
            subject=table(prefix, new, raw=True, before=before),
            paths=paths,
        )
    yield RuleCase(
        rule=rule,
        name="wider elements of a key without a struct",
        subject=table(prefix, longer, raw=True, before=state(prefix, wider, raw=True)),
    )
    bare = struct(m=Map(struct(s=STRING), LONG))
    yield RuleCase(
        rule=rule,
        name="columns without ids are found by name",
        subject=table(
            prefix,
            struct(m=Map(struct(t=STRING), LONG)),
            raw=True,
            before=state(prefix, bare, raw=True),
        ),
        paths=("m.key.s", "m.key.t"),
    )
    off = {PREFIXES[prefix].key: "false"}
    changed = Struct((replace(column, type=replace(column.type, key=struct(t=LONG))), other))
    yield RuleCase(
        rule=rule,
        name="feature was not enabled before",
        subject=table(prefix, changed, raw=True, before=state(prefix, old, raw=True, config=off)),
    )
    twin = "IWC3" if prefix == "IWC1" else "IWC1"
    yield RuleCase(
        rule=rule,
        name="the other writer feature was enabled before",
        subject=table(prefix, changed, raw=True, before=state(twin, old, raw=True)),
        paths=("m.key.s", "m.key.t"),
    )
    yield RuleCase(rule=rule, name="a new table", subject=table(prefix, old, raw=True))
