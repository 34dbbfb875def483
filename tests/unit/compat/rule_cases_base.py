"""Cases for the rules of icebergCompatV1, V2 and V3 about metadata, changes and commits."""

from __future__ import annotations

from collections.abc import Iterator

from tests.unit.compat.rule_tables import (
    FIELD_PLACES,
    MAX_ID,
    MODE,
    PLAIN,
    PREFIXES,
    TRACKING,
    TYPE_PLACES,
    VECTOR,
    VECTORS,
    RuleCase,
    file,
    mapped,
    protocol_for,
    state,
    struct,
    table,
    with_key,
)
from twinlake.compat import Profile
from twinlake.protocol import Protocol
from twinlake.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    CHAR_VARCHAR_KEY,
    COLLATIONS_KEY,
    CURRENT_DEFAULT_KEY,
    DATE,
    DOUBLE,
    EXISTS_DEFAULT_KEY,
    FLOAT,
    ID_KEY,
    INTEGER,
    LONG,
    NESTED_IDS_KEY,
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
    Geography,
    Geometry,
    Interval,
    Map,
    Struct,
    StructField,
    UserDefined,
)

__all__ = ["base_cases"]

ALL = ("ICV1", "ICV2", "ICV3")
EVERYWHERE: tuple[DataType, ...] = (
    BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE, Decimal(38, 18), STRING, BINARY, BOOLEAN, DATE,
    TIMESTAMP, TIMESTAMP_NTZ,
)  # fmt: skip
UDT = UserDefined(STRING, {"type": "udt", "class": "Point", "sqlType": "string"})


def base_cases() -> Iterator[RuleCase]:
    """Every case."""
    for prefix in ALL:
        yield from _protocol(prefix)
        yield from _properties(prefix)
        yield from _commit(prefix)
        yield from _type_changes(prefix)
        yield from _partition_names(prefix)
        yield from _types_ruled_out(prefix)
        yield from _values_of_readers(prefix)
    for prefix in ("ICV2", "ICV3"):
        yield from _types(prefix)
        yield from _partition_types(prefix)
        yield from _ids(prefix)
    yield from _first_version_types()
    yield from _third_version()


def _protocol(prefix: str) -> Iterator[RuleCase]:
    compat = PREFIXES[prefix]
    rule = f"{prefix}-01"
    name = compat.feature
    yield RuleCase(rule=rule, name="listed", subject=table(prefix))
    yield RuleCase(
        rule=rule, name="not listed", subject=table(prefix, without=[name]), paths=(name,)
    )
    yield RuleCase(
        rule=rule,
        name="legacy protocol",
        subject=table(prefix, protocol=Protocol(2, 5)),
        paths=("minWriterVersion", name),
    )
    rule = f"{prefix}-02"
    path = ("columnMapping",)
    listed = protocol_for(compat).writer_features or frozenset()
    bare = listed - {"columnMapping"}
    for protocol, told, name in (
        (Protocol(2, 7, None, listed), (), "reader version 2"),
        (Protocol(3, 7, ["columnMapping"], listed), (), "reader list"),
        (Protocol(1, 7, None, listed), path, "readers not told"),
        (Protocol(3, 7, [], listed), path, "not in the reader list"),
        (Protocol(2, 7, None, bare), path, "writers not told"),
        (Protocol(3, 7, ["columnMapping"], bare), path, "not in the writer list"),
        (Protocol(1, 7, None, bare), path, "nobody told"),
        (Protocol(2, 4), path, "legacy versions that do not go together"),
        (Protocol(2, 5), (), "legacy"),
    ):
        yield RuleCase(rule=rule, name=name, subject=table(prefix, protocol=protocol), paths=told)


def _properties(prefix: str) -> Iterator[RuleCase]:
    rule = f"{prefix}-03"
    for mode, told in (
        ("name", ()),
        ("id", ()),
        ("none", (MODE,)),
        (None, (MODE,)),
        ("ID", (MODE,)),
        ("", (MODE,)),
        ("other", (MODE,)),
    ):
        yield RuleCase(
            rule=rule,
            name=f"mode {mode}",
            subject=table(prefix, config={MODE: mode}),
            paths=told,
        )
    rule = f"{prefix}-04"
    others = [PREFIXES[other].key for other in ALL if other != prefix]
    yield RuleCase(rule=rule, name="alone", subject=table(prefix))
    yield RuleCase(
        rule=rule,
        name="others absent or not true",
        subject=table(prefix, config={others[0]: "false", others[1]: "yes"}),
    )
    yield RuleCase(
        rule=rule,
        name="two others",
        subject=table(prefix, config=dict.fromkeys(others, "true")),
        paths=tuple(others),
    )
    yield RuleCase(
        rule=rule,
        name="one other, in capitals",
        subject=table(prefix, config={others[1]: "TRUE"}),
        paths=(others[1],),
    )


def _commit(prefix: str) -> Iterator[RuleCase]:
    if prefix != "ICV3":
        yield from _vectors(prefix)
    rule = f"{prefix}-10"
    yield RuleCase(
        rule=rule,
        name="counted",
        subject=table(prefix, adds=[file("f1"), file("f2", stats='{"numRecords":0,"x":[]}')]),
    )
    yield RuleCase(
        rule=rule,
        name="not counted",
        subject=table(
            prefix,
            adds=[
                file("none", stats=None),
                file("empty", stats=""),
                file("object", stats="{}"),
                file("null", stats='{"numRecords":null}'),
                file("text", stats='{"numRecords":"3"}'),
                file("below", stats='{"numRecords":-1}'),
                file("damaged", stats='{"numRecords":3'),
                file("good"),
            ],
        ),
        paths=("none", "empty", "object", "null", "text", "below", "damaged"),
    )


def _vectors(prefix: str) -> Iterator[RuleCase]:
    rule = f"{prefix}-05"
    idle = () if prefix == "ICV2" else ("deletionVectors",)
    active = (VECTORS,) if prefix == "ICV2" else ("deletionVectors",)
    add = ["deletionVectors"]
    yield RuleCase(rule=rule, name="no feature", subject=table(prefix))
    yield RuleCase(
        rule=rule, name="property without feature", subject=table(prefix, config={VECTORS: "true"})
    )
    yield RuleCase(rule=rule, name="feature alone", subject=table(prefix, add=add), paths=idle)
    yield RuleCase(
        rule=rule,
        name="feature and property",
        subject=table(prefix, add=add, config={VECTORS: "true"}),
        paths=active,
    )
    yield RuleCase(
        rule=rule,
        name="property off",
        subject=table(prefix, add=add, config={VECTORS: "false"}),
        paths=idle,
    )
    rule = f"{prefix}-06"
    marked = [file("f1", deletion_vector=VECTOR), file("f2"), file("f3", deletion_vector=VECTOR)]
    yield RuleCase(rule=rule, name="none", subject=table(prefix, adds=[file()]))
    yield RuleCase(rule=rule, name="live files", subject=table(prefix, vectors=2), paths=("",))
    yield RuleCase(
        rule=rule, name="added files", subject=table(prefix, adds=marked), paths=("f1", "f3")
    )
    yield RuleCase(
        rule=rule,
        name="added files are live files",
        subject=table(prefix, adds=marked, vectors=2),
        paths=("f1", "f3"),
    )
    yield RuleCase(
        rule=rule,
        name="added and others",
        subject=table(prefix, adds=marked, vectors=3),
        paths=("f1", "f3", ""),
    )


def _type_changes(prefix: str) -> Iterator[RuleCase]:
    rule = f"{prefix}-15"

    def changes(*pairs: tuple[str, str], at: str | None = None) -> list[dict[str, str]]:
        where = {} if at is None else {"fieldPath": at}
        return [{"fromType": old, "toType": new, **where} for old, new in pairs]

    fine = changes(
        ("byte", "long"), ("short", "integer"), ("integer", "long"), ("float", "double"),
        ("decimal(5,2)", "decimal(9,2)"),
    )  # fmt: skip
    bad = [
        ("integer", "double"), ("byte", "decimal(12,0)"), ("long", "decimal(20,0)"),
        ("date", "timestamp_ntz"), ("decimal(5,2)", "decimal(9,4)"),
    ]  # fmt: skip
    wide = ["typeWidening"]
    for place, make in FIELD_PLACES.items():
        schema, path = make(with_key(TYPE_CHANGES_KEY, fine))
        yield RuleCase(
            rule=rule, name=f"Iceberg can, {place}", subject=table(prefix, schema, add=wide)
        )
        schema, path = make(with_key(TYPE_CHANGES_KEY, changes(*bad)))
        yield RuleCase(
            rule=rule,
            name=f"Iceberg cannot, {place}",
            subject=table(prefix, schema, add=wide),
            paths=(path,) * len(bad),
        )
    schema = Struct((with_key(TYPE_CHANGES_KEY, changes(*bad)),))
    yield RuleCase(
        rule=rule,
        name="preview of the feature",
        subject=table(prefix, schema, add=["typeWidening-preview"]),
        paths=("c",) * len(bad),
    )
    yield RuleCase(rule=rule, name="history without the feature", subject=table(prefix, schema))
    element = with_key(
        TYPE_CHANGES_KEY, changes(bad[0], at="value.element"), Map(LONG, Array(LONG))
    )
    yield RuleCase(
        rule=rule,
        name="recorded on the nearest field",
        subject=table(prefix, Struct((element,)), add=wide),
        paths=("c.value.element",),
    )
    for damaged in ("x", [1], [{"fromType": "long"}], changes(("nonsense", "long"))):
        yield RuleCase(
            rule=rule,
            name=f"damaged history {damaged}",
            subject=table(prefix, Struct((with_key(TYPE_CHANGES_KEY, damaged),)), add=wide),
            paths=("c",),
        )


def _partition_names(prefix: str) -> Iterator[RuleCase]:
    rule = f"{prefix}-09"
    columns = struct(part_a=INTEGER, part_b=INTEGER, v=STRING)
    for old, new, fine, name in (
        (["part_a"], ["part_a"], True, "kept"),
        ([], ["part_a"], True, "not partitioned before"),
        (["part_a"], ["part_b"], False, "another column"),
        (["part_a"], [], False, "no longer partitioned"),
        (["part_a", "part_b"], ["part_b", "part_a"], False, "another order"),
        (["part_a"], ["part_a", "part_b"], False, "one more"),
    ):
        yield RuleCase(
            rule=rule,
            name=name,
            subject=table(
                prefix,
                columns,
                partitions=new,
                before=state(prefix, columns, partitions=old),
                replaces=True,
            ),
            paths=() if fine else (", ".join(old),),
        )
    yield RuleCase(
        rule=rule,
        name="A15: part_a INT by part_a LONG",
        subject=table(
            prefix,
            struct(part_a=LONG, v=STRING),
            partitions=["part_a"],
            before=state(prefix, struct(part_a=INTEGER, v=STRING), partitions=["part_a"]),
            replaces=True,
        ),
    )
    yield RuleCase(
        rule=rule,
        name="A15: part_a INT by part_b INT",
        subject=table(
            prefix,
            struct(part_b=INTEGER, v=STRING),
            partitions=["part_b"],
            before=state(prefix, struct(part_a=INTEGER, v=STRING), partitions=["part_a"]),
            replaces=True,
        ),
        paths=("part_a",),
    )
    yield RuleCase(rule=rule, name="a new table", subject=table(prefix, partitions=["a"]))


def _types_ruled_out(prefix: str) -> Iterator[RuleCase]:
    shapes = [Geometry(), Geography()] if prefix != "ICV3" else []
    spans = [Interval("day", "second"), Interval("year", "month"), Interval("hour", "hour")]
    for number, kinds in (("16", shapes), ("17", spans)):
        for place, make in TYPE_PLACES.items():
            for kind in kinds:
                schema, path = make(kind)
                yield RuleCase(
                    rule=f"{prefix}-{number}",
                    name=f"{kind}, {place}",
                    subject=table(prefix, schema),
                    paths=(path,),
                )
        if kinds:
            yield RuleCase(
                rule=f"{prefix}-{number}",
                name="two columns",
                subject=table(prefix, struct(a=kinds[0], b=STRING, c=kinds[1])),
                paths=("a", "c"),
            )
            yield RuleCase(
                rule=f"{prefix}-{number}",
                name="plain types",
                subject=table(prefix, struct(a=LONG, l=Array(STRING), m=Map(DATE, BINARY))),
            )


def _types(prefix: str) -> Iterator[RuleCase]:
    rule = f"{prefix}-07"
    version = PREFIXES[prefix].version
    new = [VARIANT]
    shapes: list[DataType] = [Geometry(), Geography()]
    for place, make in TYPE_PLACES.items():
        for kind in (
            *EVERYWHERE,
            *(new if version == 3 else ()),
            *(shapes if version == 3 else ()),
        ):
            schema, _ = make(kind)
            yield RuleCase(rule=rule, name=f"{kind}, {place}", subject=table(prefix, schema))
        for kind in (VOID, UDT, *(new if version == 2 else ())):
            schema, path = make(kind)
            yield RuleCase(
                rule=rule, name=f"{kind}, {place}", subject=table(prefix, schema), paths=(path,)
            )
    yield RuleCase(
        rule=rule,
        name="two columns",
        subject=table(prefix, struct(a=VOID, b=STRING, c=Array(VOID))),
        paths=("a", "c.element"),
    )
    for place, make_field in FIELD_PLACES.items():
        schema, path = make_field(with_key(COLLATIONS_KEY, {"c": "icu.UNICODE_CI"}, STRING))
        yield RuleCase(
            rule=rule,
            name=f"collated text, {place}",
            subject=table(prefix, schema),
            paths=(path,),
        )
        schema, _ = make_field(with_key(COLLATIONS_KEY, {"c": "spark.UTF8_BINARY"}, STRING))
        yield RuleCase(
            rule=rule, name=f"text compared by bytes, {place}", subject=table(prefix, schema)
        )
    both = with_key(COLLATIONS_KEY, {"c.key": "icu.DE", "c.value.element": "spark.UTF8_LCASE"})
    yield RuleCase(
        rule=rule,
        name="collated elements and keys",
        subject=table(
            prefix,
            Struct((StructField("c", Map(STRING, Array(STRING)), metadata=both.metadata),)),
        ),
        paths=("c.key", "c.value.element"),
    )
    yield RuleCase(
        rule=rule,
        name="collations that cannot be read",
        subject=table(prefix, Struct((with_key(COLLATIONS_KEY, "icu", STRING),))),
        paths=("c",),
    )


def _values_of_readers(prefix: str) -> Iterator[RuleCase]:
    """CHAR and EXISTS_DEFAULT: what Spark reads is not what files hold."""
    others = (Profile.SPARK, Profile.KERNEL)
    for place, make in FIELD_PLACES.items():
        for text in (
            "char(5)",
            "CHAR(5)",
            "struct<c:char(5)>",
            "array<char(2)>",
            "map<char(1),int>",
        ):
            schema, path = make(with_key(CHAR_VARCHAR_KEY, text, STRING))
            rule = f"{prefix}-27"
            yield RuleCase(
                rule=rule, name=f"{text}, {place}", subject=table(prefix, schema), paths=(path,)
            )
            for profile in others:
                yield RuleCase(
                    rule=rule,
                    name=f"{text}, {place}",
                    subject=table(prefix, schema),
                    profile=profile,
                )
        for other in ("varchar(5)", "struct<char:varchar(5)>", "struct<`char(5)`:varchar(5)>", 5):
            schema, _ = make(with_key(CHAR_VARCHAR_KEY, other, STRING))
            name = f"{other}, {place}"
            yield RuleCase(rule=f"{prefix}-27", name=name, subject=table(prefix, schema))
        schema, path = make(with_key(EXISTS_DEFAULT_KEY, "5"))
        rule = f"{prefix}-28"
        name = f"a value, {place}"
        yield RuleCase(rule=rule, name=name, subject=table(prefix, schema), paths=(path,))
        for profile in others:
            yield RuleCase(rule=rule, name=name, subject=table(prefix, schema), profile=profile)
        schema, _ = make(with_key(CURRENT_DEFAULT_KEY, "5"))
        yield RuleCase(rule=rule, name=f"new rows only, {place}", subject=table(prefix, schema))
    two = Struct(
        tuple(
            StructField(n, STRING, metadata={CHAR_VARCHAR_KEY: "char(5)", EXISTS_DEFAULT_KEY: "''"})
            for n in ("a", "b")
        )
    )
    for number in ("27", "28"):
        yield RuleCase(
            rule=f"{prefix}-{number}", name="two", subject=table(prefix, two), paths=("a", "b")
        )


def _first_version_types() -> Iterator[RuleCase]:
    rule = "ICV1-07"
    for kind in EVERYWHERE:
        yield RuleCase(
            rule=rule,
            name=f"{kind}",
            subject=table("ICV1", struct(c=kind, s=struct(d=kind))),
        )
    for place in ("top", "struct"):
        for kind in (Array(LONG), Map(STRING, LONG), VOID):
            schema, path = TYPE_PLACES[place](kind)
            yield RuleCase(
                rule=rule, name=f"{kind}, {place}", subject=table("ICV1", schema), paths=(path,)
            )
    yield RuleCase(
        rule=rule,
        name="one in the other",
        subject=table("ICV1", struct(m=Map(STRING, Array(VOID)))),
        paths=("m", "m.value", "m.value.element"),
    )


def _partition_types(prefix: str) -> Iterator[RuleCase]:
    rule = f"{prefix}-08"
    for kind in EVERYWHERE:
        yield RuleCase(
            rule=rule,
            name=f"{kind}",
            subject=table(prefix, struct(Part=kind, v=LONG), partitions=["Part"]),
        )
    bad = (VARIANT, VOID, Geometry(), Interval("day", "day"), Array(LONG), Map(LONG, LONG), PLAIN)
    for kind in bad:
        yield RuleCase(
            rule=rule,
            name=f"{kind}",
            subject=table(prefix, struct(p=kind, v=LONG), partitions=["p"]),
            paths=("p",),
        )
        yield RuleCase(
            rule=rule,
            name=f"{kind}, not a partition column",
            subject=table(prefix, struct(p=kind, v=LONG), partitions=["v"]),
        )
    yield RuleCase(
        rule=rule,
        name="two columns",
        subject=table(prefix, struct(p=PLAIN, q=VOID, v=LONG), partitions=["p", "q"]),
        paths=("p", "q"),
    )
    yield RuleCase(
        rule=rule,
        name="no such column",
        subject=table(prefix, partitions=["gone"]),
        paths=("gone",),
    )


def _ids(prefix: str) -> Iterator[RuleCase]:
    rule = f"{prefix}-13"
    nested = struct(
        l=Array(Array(LONG)), m=Map(struct(k=LONG), Array(struct(v=LONG))), s=struct(x=LONG)
    )
    every = (
        "l.element", "l.element.element", "m.key", "m.value", "m.value.element",
    )  # fmt: skip
    yield RuleCase(rule=rule, name="all there", subject=table(prefix, nested))
    yield RuleCase(rule=rule, name="flat", subject=table(prefix))
    yield RuleCase(
        rule=rule, name="no highest id", subject=table(prefix, nested, config={MAX_ID: None})
    )
    whole = mapped(nested)

    def without(field: StructField) -> StructField:
        return field.with_metadata(**{NESTED_IDS_KEY: {}})

    bare = Struct(tuple(without(field) for field in whole))
    yield RuleCase(
        rule=rule,
        name="no nested ids",
        subject=table(prefix, bare, raw=True),
        paths=every,
    )
    yield RuleCase(
        rule=rule,
        name="no ids at all",
        subject=table(prefix, struct(a=LONG, s=struct(l=Array(LONG))), raw=True),
        paths=("a", "s", "s.l", "s.l.element"),
    )
    first = whole.fields[0]
    yield RuleCase(
        rule=rule,
        name="nested ids under another name",
        subject=table(
            prefix,
            Struct((first.with_metadata(**{NESTED_IDS_KEY: {"l.element": 90}}),)),
            raw=True,
        ),
        paths=("l.element", "l.element.element"),
    )
    yield RuleCase(
        rule=rule,
        name="the id of a column on an element",
        subject=table(
            prefix,
            Struct(
                (
                    first.with_metadata(
                        **{NESTED_IDS_KEY: {"col-1.element": 2, "col-1.element.element": 3}}
                    ),
                    StructField("b", LONG, metadata={ID_KEY: 2}),
                    StructField("d", LONG, metadata={ID_KEY: 2}),
                )
            ),
            raw=True,
        ),
        paths=("b", "d"),
    )
    yield RuleCase(
        rule=rule,
        name="ids above the highest",
        subject=table(prefix, struct(a=LONG, l=Array(LONG)), config={MAX_ID: "1"}),
        paths=("l", "l.element"),
    )
    yield RuleCase(
        rule=rule,
        name="highest id is no number",
        subject=table(prefix, config={MAX_ID: "many"}),
        paths=(MAX_ID,),
    )
    for value in (0, -1, 2**31):
        yield RuleCase(
            rule=rule,
            name=f"id {value}",
            subject=table(
                prefix,
                Struct((StructField("c", LONG, metadata={ID_KEY: value}),)),
                raw=True,
                config={MAX_ID: None},
            ),
            paths=("c",),
        )
    yield RuleCase(
        rule=rule,
        name="an id that is no number",
        subject=table(prefix, Struct((StructField("c", LONG, metadata={ID_KEY: "1"}),)), raw=True),
        paths=("c",),
    )


def _third_version() -> Iterator[RuleCase]:
    rule = "ICV3-18"
    yield RuleCase(rule=rule, name="on", subject=table("ICV3"))
    for value in (None, "false", "yes"):
        yield RuleCase(
            rule=rule,
            name=f"property {value}",
            subject=table("ICV3", config={TRACKING: value}),
            paths=(TRACKING,),
        )
    yield RuleCase(
        rule=rule,
        name="not listed",
        subject=table("ICV3", without=["rowTracking"], config={TRACKING: None}),
        paths=(TRACKING, "rowTracking"),
    )
    yield from _third_version_switch()
    yield from _defaults()


def _third_version_switch() -> Iterator[RuleCase]:
    rule, key = "ICV3-20", PREFIXES["ICV3"].key
    on, off = state("ICV3"), state("ICV3", config={key: None})
    yield RuleCase(rule=rule, name="stays on", subject=table("ICV3", before=on))
    yield RuleCase(rule=rule, name="switched on", subject=table("ICV3", before=off))
    yield RuleCase(rule=rule, name="a new table", subject=table("ICV3"))
    for value in ("false", None, "no"):
        yield RuleCase(
            rule=rule,
            name=f"off by {value}",
            subject=table("ICV3", before=on, config={key: value}),
            paths=(key,),
        )
    yield RuleCase(
        rule=rule,
        name="back to the second version",
        subject=table("ICV3", before=on, config={key: "false", PREFIXES["ICV2"].key: "true"}),
        paths=(key,),
    )
    yield RuleCase(
        rule=rule,
        name="off by a replacement",
        subject=table("ICV3", before=on, config={key: None}, replaces=True),
        paths=(key,),
    )


def _defaults() -> Iterator[RuleCase]:
    rule = "ICV3-21"
    for place, make in FIELD_PLACES.items():
        schema, _ = make(with_key(CURRENT_DEFAULT_KEY, "42"))
        yield RuleCase(rule=rule, name=f"a number, {place}", subject=table("ICV3", schema))
        for text in ("now()", "40 + 2", "'x'", "1.5", "3000000000", ""):
            schema, path = make(with_key(CURRENT_DEFAULT_KEY, text))
            yield RuleCase(
                rule=rule, name=f"{text}, {place}", subject=table("ICV3", schema), paths=(path,)
            )
    yield RuleCase(
        rule=rule,
        name="two columns, one of them not text",
        subject=table(
            "ICV3",
            Struct(
                (
                    with_key(CURRENT_DEFAULT_KEY, "rand()", DOUBLE),
                    StructField("d", LONG, metadata={CURRENT_DEFAULT_KEY: 5}),
                )
            ),
        ),
        paths=("c", "d"),
    )
