"""Rules on random tables: they never fall over, and they find what was put there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import schema_strategies as schemas
from tests.support.scale import scale
from tests.unit.compat.rule_tables import (
    PREFIXES,
    READER_FEATURES,
    file,
    mapped,
    state,
    struct,
    table,
)
from twinlake.compat import FileFooter, Profile, State, Subject, evaluate_rules
from twinlake.protocol import FEATURES, Metadata, Protocol
from twinlake.schema import (
    COLLATIONS_KEY,
    CURRENT_DEFAULT_KEY,
    GENERATION_EXPRESSION_KEY,
    ID_KEY,
    INVARIANTS_KEY,
    LONG,
    NESTED_IDS_KEY,
    PHYSICAL_NAME_KEY,
    STRING,
    TYPE_CHANGES_KEY,
    Array,
    DataType,
    Map,
    ParquetNode,
    Repetition,
    Struct,
    StructField,
)

EXAMPLES = scale(60, 2000)

KEYS = (
    ID_KEY, PHYSICAL_NAME_KEY, NESTED_IDS_KEY, INVARIANTS_KEY, GENERATION_EXPRESSION_KEY,
    CURRENT_DEFAULT_KEY, COLLATIONS_KEY, TYPE_CHANGES_KEY, "delta.identity.start", "comment",
)  # fmt: skip
keys = st.dictionaries(
    st.sampled_from(KEYS),
    st.integers(-1, 9)
    | schemas.json_values
    | st.builds(lambda n: f"col-{n}", st.integers(1, 9))
    | st.dictionaries(schemas.text, st.integers(-1, 9), max_size=3)
    | st.just([{"fromType": "integer", "toType": "double", "fieldPath": "element"}]),
    max_size=4,
)
wild_schemas = schemas.schemas(field_metadata=keys)
settings_of_tables = st.dictionaries(
    st.sampled_from(
        (
            "delta.columnMapping.mode", "delta.columnMapping.maxColumnId",
            "delta.enableRowTracking", "delta.enableDeletionVectors", "delta.constraints.c",
            "delta.enableChangeDataFeed", "delta.rowTracking.materializedRowIdColumnName",
            *(compat.key for compat in PREFIXES.values()),
        )
    ),
    st.sampled_from(("true", "false", "id", "name", "none", "7", "", "\u0663")) | schemas.text,
)  # fmt: skip


@st.composite
def protocols(draw: st.DrawFn) -> Protocol:
    """Legacy versions, or lists of known and unknown names."""
    if draw(st.booleans()):
        return Protocol(draw(st.integers(1, 2)), draw(st.integers(1, 6)))
    names = draw(st.sets(st.sampled_from((*FEATURES, "fromTheFuture")), max_size=8))
    readers = draw(st.sets(st.sampled_from(sorted(READER_FEATURES)), max_size=4))
    return Protocol(3, 7, readers, names) if draw(st.booleans()) else Protocol(2, 7, None, names)


nodes: st.SearchStrategy[ParquetNode] = st.recursive(
    st.builds(
        ParquetNode,
        name=st.sampled_from(("col-1", "a", "element", "")),
        repetition=st.sampled_from(Repetition),
        physical_type=st.sampled_from(("INT64", "INT96", None)),
        annotation=st.sampled_from((None, "LIST", "MAP", "VARIANT", "STRING")),
        field_id=st.none() | st.integers(-1, 9),
    ),
    lambda inner: st.builds(
        ParquetNode,
        name=st.sampled_from(("col-1", "array", "list", "key_value", "x.y")),
        repetition=st.sampled_from(Repetition),
        annotation=st.sampled_from((None, "LIST", "MAP", "MAP_KEY_VALUE", "VARIANT")),
        field_id=st.none() | st.integers(-1, 9),
        children=st.lists(inner, max_size=3).map(tuple),
    ),
    max_leaves=8,
)
footers = st.builds(
    FileFooter,
    add=st.builds(lambda stats: file(stats=stats), st.none() | schemas.text | st.just("{}")),
    root=st.none() | st.builds(lambda found: ParquetNode(name="r", children=tuple(found)),
                               st.lists(nodes, max_size=3)),
    num_rows=st.integers(0, 4),
)  # fmt: skip


@st.composite
def states(draw: st.DrawFn) -> State:
    """Any table at all."""
    schema = draw(wild_schemas)
    columns = draw(st.lists(st.sampled_from((*schema.names(), "gone")), max_size=2))
    metadata = Metadata(
        configuration=draw(settings_of_tables), partition_columns=tuple(columns)
    ).with_schema(schema)
    return State(metadata=metadata, protocol=draw(protocols()))


@st.composite
def subjects(draw: st.DrawFn) -> Subject:
    """Any commit at all."""
    return Subject(
        after=draw(states()),
        before=draw(st.none() | states()),
        creates=draw(st.booleans()),
        replaces=draw(st.booleans()),
        adds=[f.add for f in draw(st.lists(footers, max_size=2))],
        vectors=draw(st.integers(0, 2)),
        footers=draw(st.lists(footers, max_size=2)),
    )


@settings(max_examples=EXAMPLES, deadline=None)
@given(subjects())
def test_judging_never_falls_over(subject: Subject) -> None:
    for compat in PREFIXES.values():
        for profile in Profile:
            report = evaluate_rules(subject, compat, profile=profile)
            for violation in report.violations:
                assert violation.rule in report.rules
                assert violation.found and violation.wanted and violation.message and violation.fix


allowed = (
    st.sampled_from([kind for kind in schemas.COMMON if str(kind) not in ("byte", "short")])
    | schemas.decimals
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(schemas.schemas(leaves=allowed), st.sampled_from(("ICV2", "ICV3", "IWC1", "IWC3")))
def test_tables_with_allowed_types_and_mapping_are_fine(schema: Struct, prefix: str) -> None:
    for profile in Profile:
        report = evaluate_rules(table(prefix, schema), PREFIXES[prefix], profile=profile)
        assert report.ok, report.violations


# -- map keys ------------------------------------------------------------------------------------

Place = tuple[tuple[str, ...], bool]


def _structs(kind: DataType, path: tuple[str, ...], in_key: bool) -> list[Place]:
    """Every struct with its path, and whether it is in a key: by a walk of the test's own."""
    if isinstance(kind, Struct):
        found: list[Place] = [(path, in_key)]
        for field in kind:
            found += _structs(field.type, (*path, field.name), in_key)
        return found
    if isinstance(kind, Array):
        return _structs(kind.element, (*path, "element"), in_key)
    if isinstance(kind, Map):
        return _structs(kind.key, (*path, "key"), True) + _structs(
            kind.value, (*path, "value"), in_key
        )
    return []


def _edit(kind: DataType, path: tuple[str, ...], change: Any) -> DataType:
    """The type with the struct at the path changed; names are exact here."""
    if not path:
        return change(kind)  # type: ignore[no-any-return]
    head, rest = path[0], path[1:]
    if isinstance(kind, Struct):
        return Struct(
            tuple(
                replace(f, type=_edit(f.type, rest, change)) if f.name == head else f for f in kind
            )
        )
    if isinstance(kind, Array):
        return replace(kind, element=_edit(kind.element, rest, change))
    assert isinstance(kind, Map)
    if head == "key":
        return replace(kind, key=_edit(kind.key, rest, change))
    return replace(kind, value=_edit(kind.value, rest, change))


def _changes(kind: Struct) -> dict[str, Struct]:
    """Ways to change a struct."""
    first, *others = kind.fields
    new = StructField("new one", LONG, metadata={ID_KEY: 900, PHYSICAL_NAME_KEY: "col-900"})
    ways = {
        "add": Struct((*kind.fields, new)),
        "drop": Struct(tuple(others)),
        "rename": Struct((replace(first, name="another name"), *others)),
        "nullability": Struct((replace(first, nullable=not first.nullable), *others)),
        "id": Struct((first.with_metadata(**{ID_KEY: 901}), *others)),
        "physical name": Struct((first.with_metadata(**{PHYSICAL_NAME_KEY: "x"}), *others)),
    }
    if others:
        ways["reorder"] = Struct((*others, first))
    return ways


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    schemas.schemas(leaves=allowed),
    schemas.schemas(leaves=allowed),
    st.data(),
    st.sampled_from(("IWC1", "IWC3")),
)
def test_a_change_is_refused_exactly_where_it_is_inside_a_key(
    key: Struct, value: Struct, data: st.DataObject, prefix: str
) -> None:
    old = mapped(struct(m=Map(Array(key), value), n=Map(STRING, struct(o=Map(key, key)))))
    # A struct without fields is a place to add to, and that is tested by the others.
    places = [place for place in _structs(old, (), False) if len(_at(old, place[0])) and place[0]]
    path, in_key = data.draw(st.sampled_from(places))
    ways = _changes(_at(old, path))
    way = data.draw(st.sampled_from(sorted(ways)))
    new = _edit(old, path, lambda _: ways[way])
    assert isinstance(new, Struct)
    subject = table(prefix, new, raw=True, before=state(prefix, old, raw=True))
    told = [
        v for v in evaluate_rules(subject, PREFIXES[prefix]).violations if v.rule == f"{prefix}-09"
    ]
    if in_key:
        assert told, (way, path)
    elif way != "physical name":  # which the ids of keys are filed under
        assert not told, (way, path, told)


def _at(kind: DataType, path: tuple[str, ...]) -> Struct:
    for part in path:
        if isinstance(kind, Struct):
            kind = next(field.type for field in kind if field.name == part)
        elif isinstance(kind, Array):
            kind = kind.element
        else:
            assert isinstance(kind, Map)
            kind = kind.key if part == "key" else kind.value
    assert isinstance(kind, Struct)
    return kind
