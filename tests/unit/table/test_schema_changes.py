"""What a commit may do to the columns of a table, whichever call it comes from."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.table.making import create, data_file
from twinlake import Table
from twinlake.commit.checks.files import partition_keys
from twinlake.errors import Code, UserError
from twinlake.log import CACHE
from twinlake.protocol import Metadata
from twinlake.schema import SCHEMA_CHANGE_RULES, parse_ddl

NAME = {"delta.columnMapping.mode": "name"}
ID = {"delta.columnMapping.mode": "id"}
WIDENING = {"delta.enableTypeWidening": "true"}
DDL = (
    "id INT, name STRING, s STRUCT<a: INT, b: STRING>, l ARRAY<INT>, m MAP<STRING, INT>, "
    "d DECIMAL(9, 2)"
)
MAX_ID = "delta.columnMapping.maxColumnId"
Schema = dict[str, Any]
Edit = Callable[[Schema], None]


def at(schema: Schema, path: str) -> Schema:
    """The field at a dotted path of struct fields."""
    first, _, rest = path.partition(".")
    found: Schema = next(f for f in schema["fields"] if f["name"] == first)
    return at(found["type"], rest) if rest else found


def typed(path: str, kind: Any) -> Edit:
    return lambda schema: at(schema, path).update(type=kind)


def required(path: str) -> Edit:
    return lambda schema: at(schema, path).update(nullable=False)


def noted(path: str, key: str, value: Any) -> Edit:
    return lambda schema: at(schema, path)["metadata"].update({f"delta.{key}": value})


def inside(path: str, **changes: Any) -> Edit:
    """Changes of an array or a map."""
    return lambda schema: at(schema, path)["type"].update(changes)


def added(name: str, kind: Any = "integer", nullable: bool = True, **mapping: Any) -> Edit:
    metadata = {f"delta.columnMapping.{key}": value for key, value in mapping.items()}
    new = {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}
    return lambda schema: schema["fields"].append(new)


def dropped(name: str) -> Edit:
    def edit(schema: Schema) -> None:
        schema["fields"] = [f for f in schema["fields"] if f["name"] != name]

    return edit


def renamed(path: str, name: str) -> Edit:
    return lambda schema: at(schema, path).update(name=name)


def swapped(one: str, other: str, key: str) -> Edit:
    def edit(schema: Schema) -> None:
        first, second = (at(schema, path)["metadata"] for path in (one, other))
        full = f"delta.columnMapping.{key}"
        first[full], second[full] = second[full], first[full]

    return edit


def moved_up(path: str) -> Edit:
    def edit(schema: Schema) -> None:
        parent, _, name = path.rpartition(".")
        struct = at(schema, parent)["type"]
        schema["fields"].append(at(struct, name))
        dropped(name)(struct)

    return edit


def all_of(*edits: Edit) -> Edit:
    def edit(schema: Schema) -> None:
        for one in edits:
            one(schema)

    return edit


def change_record(kind: str, to: str, where: str | None = None) -> dict[str, str]:
    entry = {"fromType": kind, "toType": to}
    return entry if where is None else {**entry, "fieldPath": where}


@dataclass(frozen=True, kw_only=True)
class Case:
    id: str
    edit: Edit = lambda _: None
    rule: str = ""
    paths: tuple[str, ...] = ("id",)
    table: dict[str, str] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    partitions_after: tuple[str, ...] | None = None
    ddl: str = DDL


REFUSED = [
    Case(id="int-to-string", edit=typed("id", "string"), rule="SCH-08"),
    Case(id="string-to-int", edit=typed("name", "integer"), rule="SCH-08", paths=("name",)),
    Case(id="struct-to-string", edit=typed("s", "string"), rule="SCH-08", paths=("s",)),
    Case(id="struct-to-string-mapped", edit=typed("s", "string"), rule="SCH-08", paths=("s",),
         table=NAME),
    Case(id="string-to-struct", edit=typed("name", {"type": "struct", "fields": []}),
         rule="SCH-08", paths=("name",), table=NAME),
    Case(id="narrowing", edit=typed("id", "short"), rule="SCH-08"),
    Case(id="nested", edit=typed("s.a", "string"), rule="SCH-08", paths=("s.a",)),
    Case(id="element", edit=inside("l", elementType="string"), rule="SCH-08", paths=("l.element",)),
    Case(id="key", edit=inside("m", keyType="integer"), rule="SCH-08", paths=("m.key",)),
    Case(id="value", edit=inside("m", valueType="string"), rule="SCH-08", paths=("m.value",)),
    Case(id="array-to-map", rule="SCH-08", paths=("l",),
         edit=lambda s: at(s, "l").update(type=at(s, "m")["type"])),
    Case(id="decimal-scale-down", edit=typed("d", "decimal(9,1)"), rule="SCH-08", paths=("d",)),
    Case(id="decimal-without-room", edit=typed("d", "decimal(9,4)"), rule="SCH-08", paths=("d",)),
    Case(id="decimal-wider", edit=typed("d", "decimal(12,2)"), rule="SCH-09", paths=("d",)),
    Case(id="widening-off", edit=typed("id", "long"), rule="SCH-09"),
    Case(id="widening-unrecorded", edit=typed("id", "long"), rule="SCH-09", table=WIDENING),
    Case(id="widening-unrecorded-element", edit=inside("l", elementType="long"), rule="SCH-09",
         paths=("l.element",), table=WIDENING),
    Case(id="widening-unknown", rule="SCH-08", table=WIDENING,
         edit=all_of(typed("id", "string"),
                     noted("id", "typeChanges", [change_record("integer", "string")]))),
    Case(id="not-null", edit=required("id"), rule="SCH-11"),
    Case(id="not-null-nested", edit=required("s.a"), rule="SCH-11", paths=("s.a",)),
    Case(id="not-null-element", edit=inside("l", containsNull=False), rule="SCH-11",
         paths=("l.element",)),
    Case(id="not-null-value", edit=inside("m", valueContainsNull=False), rule="SCH-11",
         paths=("m.value",)),
    Case(id="required-added", edit=added("n", nullable=False), rule="SCH-12", paths=("n",)),
    Case(id="required-added-nested", rule="SCH-12", paths=("s.n",),
         edit=lambda s: added("n", nullable=False)(at(s, "s")["type"])),
    Case(id="dropped-unmapped", edit=dropped("name"), rule="SCH-02", paths=("name",)),
    Case(id="renamed-unmapped", edit=renamed("name", "Name"), rule="SCH-02", paths=("name",)),
    Case(id="moved-unmapped", edit=moved_up("s.a"), rule="SCH-02", paths=("s.a",)),
    Case(id="moved-up", edit=moved_up("s.a"), rule="SCH-06", paths=("a",), table=NAME),
    Case(id="moved-into-new-struct", rule="SCH-06", paths=("t.id",), table=ID,
         edit=lambda s: all_of(
             dropped("id"),
             added("t", {"type": "struct", "fields": [at(s, "id")]}, id=50, physicalName="col-50"),
         )(s), properties={MAX_ID: "50"}),
    Case(id="swapped-ids", edit=swapped("id", "name", "id"), rule="SCH-03", paths=("id", "name"),
         table=NAME),
    Case(id="swapped-physical-names", edit=swapped("id", "name", "physicalName"), rule="SCH-04",
         paths=("id", "name"), table=ID),
    Case(id="new-id", edit=noted("id", "columnMapping.id", 50), rule="SCH-03", table=NAME,
         properties={MAX_ID: "50"}),
    Case(id="new-physical-name", edit=noted("id", "columnMapping.physicalName", "x"),
         rule="SCH-04", table=NAME),
    Case(id="id-of-another", edit=all_of(dropped("id"), added("n", id=2, physicalName="x")),
         rule="", paths=("n",), table=NAME),
    Case(id="partitions-dropped", rule="SCH-13", paths=("",), partition_by=("name",),
         partitions_after=()),
    Case(id="partitions-added", rule="SCH-13", paths=("",), partitions_after=("name",)),
    Case(id="partitions-in-another-order", rule="SCH-13", paths=("",), partition_by=("name", "id"),
         partitions_after=("id", "name")),
    Case(id="partition-column-dropped", rule="SCH-13", paths=("",), partition_by=("name",),
         partitions_after=(), edit=dropped("name"), table=NAME),
    Case(id="partition-physical-name", edit=noted("name", "columnMapping.physicalName", "x"),
         rule="SCH-04", paths=("name",), table=ID, partition_by=("name",)),
    Case(id="partition-column-anew", rule="SCH-13", paths=("",), table=NAME,
         partition_by=("name",), properties={MAX_ID: "9"},
         edit=all_of(dropped("name"), added("name", "string", id=9, physicalName="col-9"))),
    Case(id="partition-type", edit=typed("name", "integer"), rule="SCH-08", paths=("name",),
         partition_by=("name",)),
    Case(id="max-id-lowered", rule="SCH-14", paths=("",), table=NAME,
         edit=dropped("d"), properties={MAX_ID: "7"}),
    Case(id="none-to-id", rule="SCH-01", paths=("",), properties=ID),
    Case(id="name-to-id", rule="SCH-01", paths=("",), table=NAME, properties=ID),
    Case(id="id-to-name", rule="SCH-01", paths=("",), table=ID, properties=NAME),
    Case(id="name-to-none", rule="SCH-01", paths=("",), table=NAME,
         properties={"delta.columnMapping.mode": "none"}),
    Case(id="mapping-with-other-names", rule="SCH-04", ddl="id INT",
         edit=all_of(noted("id", "columnMapping.id", 1),
                     noted("id", "columnMapping.physicalName", "col-1")),
         properties={**NAME, MAX_ID: "1"}),
]  # fmt: skip

ALLOWED = [
    Case(id="added", edit=added("n")),
    Case(id="added-nested", edit=lambda s: added("n")(at(s, "s")["type"])),
    Case(id="required-in-a-new-struct",
         edit=added("n", {"type": "struct", "fields": [
             {"name": "x", "type": "long", "nullable": False, "metadata": {}}]})),
    Case(id="added-mapped", edit=added("n", id=9, physicalName="col-9"), table=NAME,
         properties={MAX_ID: "9"}),
    Case(id="comment", edit=lambda s: at(s, "id")["metadata"].update(comment="x")),
    Case(id="order", edit=lambda s: s["fields"].reverse()),
    Case(id="dropped", edit=dropped("name"), table=NAME),
    Case(id="dropped-nested", edit=lambda s: dropped("a")(at(s, "s")["type"]), table=ID),
    Case(id="renamed", edit=renamed("name", "Name"), table=NAME),
    Case(id="renamed-crosswise", table=ID,
         edit=all_of(renamed("s.a", "x"), renamed("s.b", "a"), renamed("s.x", "b"))),
    Case(id="dropped-and-added-anew", table=NAME, properties={MAX_ID: "9"},
         edit=all_of(dropped("name"), added("name", "date", id=9, physicalName="col-9"))),
    Case(id="nullable-again", ddl="id INT NOT NULL",
         edit=lambda s: at(s, "id").update(nullable=True)),
    Case(id="widened", table=WIDENING,
         edit=all_of(typed("id", "long"),
                     noted("id", "typeChanges", [change_record("integer", "long")]))),
    Case(id="widened-element", table=WIDENING,
         edit=all_of(inside("l", elementType="long"),
                     noted("l", "typeChanges", [change_record("integer", "long", "element")]))),
    Case(id="widened-while-switched-on", properties=WIDENING,
         edit=all_of(typed("id", "long"),
                     noted("id", "typeChanges", [change_record("integer", "long")]))),
    Case(id="widened-partition-column", table=WIDENING, partition_by=("id",),
         edit=all_of(typed("id", "long"),
                     noted("id", "typeChanges", [change_record("integer", "long")]))),
    Case(id="byte-to-int", ddl="id TINYINT", edit=typed("id", "integer")),
    Case(id="void", ddl="id INT, v VOID", edit=typed("v", {"type": "struct", "fields": [
        {"name": "x", "type": "long", "nullable": False, "metadata": {}}]})),
    Case(id="char", edit=lambda s: at(s, "name")["metadata"].update(
        {"__CHAR_VARCHAR_TYPE_STRING": "varchar(10)"})),
    Case(id="partition-renamed", table=NAME, partition_by=("name",), partitions_after=("Name",),
         edit=renamed("name", "Name")),
    Case(id="mapping-switched-on", ddl="id INT",
         edit=all_of(noted("id", "columnMapping.id", 1),
                     noted("id", "columnMapping.physicalName", "id")),
         properties={**NAME, MAX_ID: "1"}),
    Case(id="mapping-switched-on-and-renamed", ddl="id INT",
         edit=all_of(noted("id", "columnMapping.id", 1), renamed("id", "key"),
                     noted("key", "columnMapping.physicalName", "id")),
         properties={**NAME, MAX_ID: "1"}),
]  # fmt: skip


def make(folder: Path, case: Case) -> Table:
    return create(
        folder, case.ddl, properties=case.table, partition_by=case.partition_by, policy="minimal"
    )


def with_file(table: Table) -> Table:
    values = dict.fromkeys(partition_keys(table.metadata), "1")
    add = msgspec.structs.replace(data_file("f", partition=values), stats='{"numRecords":10}')
    return table.commit("WRITE", [add])


def edited(table: Table, case: Case) -> Metadata:
    schema = json.loads(table.metadata.schema_string)
    case.edit(schema)
    changed = replace(
        table.metadata.with_configuration(case.properties), schema_string=json.dumps(schema)
    )
    if case.partitions_after is None:
        return changed
    return replace(changed, partition_columns=case.partitions_after)


def ids(case: Case) -> str:
    return case.id


FILES_ONLY = [case for case in REFUSED if case.rule not in ("", "SCH-14")]


@pytest.mark.parametrize("case", REFUSED, ids=ids)
def test_a_raw_commit_is_refused(tmp_path: Path, case: Case) -> None:
    table = with_file(make(tmp_path, case))
    with pytest.raises(UserError) as caught:
        table.commit("UPDATE SCHEMA", [edited(table, case)])
    error = caught.value
    found = [v for v in error.fields["violations"] if v["check"] == "CMT-17"]
    if case.rule:
        assert error.code in (Code.SCHEMA_EVOLUTION, Code.COMMIT_INVALID)
        assert case.rule in [v["rule"] for v in found]
        assert [v.get("path", "") for v in found] == list(case.paths)
        assert all(path in error.why for path in case.paths)
    assert error.fix
    assert table.refresh().version == table.version


@pytest.mark.parametrize("case", FILES_ONLY, ids=ids)
def test_where_no_file_stays_the_same_is_allowed(tmp_path: Path, case: Case) -> None:
    table = with_file(make(tmp_path, case))
    gone = [add.remove(deletion_timestamp=1) for add in table.snapshot.adds()]
    try:
        overwritten = table.commit("WRITE", [edited(table, case), *gone])
    except UserError as error:
        # Wrong in itself, with files or without.
        assert {v["check"] for v in error.fields["violations"]} == {"CMT-16"}
    else:
        assert overwritten.snapshot.num_files == 0


@pytest.mark.parametrize("case", ALLOWED, ids=ids)
def test_a_raw_commit_may(tmp_path: Path, case: Case) -> None:
    table = with_file(make(tmp_path, case))
    after = table.commit("UPDATE SCHEMA", [edited(table, case)])
    assert after.metadata.schema_string == edited(table, case).schema_string


def test_every_rule_has_a_case() -> None:
    covered = {case.rule for case in REFUSED} | {"SCH-05", "SCH-07", "SCH-10"}
    assert covered - {""} == {rule.id for rule in SCHEMA_CHANGE_RULES}


def test_the_id_of_a_dropped_column_is_not_given_out_again(tmp_path: Path) -> None:
    table = with_file(create(tmp_path, DDL, properties=NAME))
    table = table.drop_column("name")
    case = Case(id="", edit=added("n", id=2, physicalName="col-x"))
    with pytest.raises(UserError) as caught:
        table.commit("ADD COLUMNS", [edited(table, case)])
    assert caught.value.fields["violations"][0]["rule"] == "SCH-07"


def test_ids_of_elements_stay(tmp_path: Path) -> None:
    properties = {"delta.enableIcebergCompatV2": "true", **NAME}
    table = create(tmp_path, "l ARRAY<INT>", properties=properties)
    plain = {"delta.enableIcebergCompatV2": "false"}
    table = with_file(table.set_properties(plain))
    schema = json.loads(table.metadata.schema_string)
    nested = at(schema, "l")["metadata"]["delta.columnMapping.nested.ids"]
    for key in nested:
        nested[key] = 77
    changed = replace(
        table.metadata.with_configuration({MAX_ID: "77"}), schema_string=json.dumps(schema)
    )
    with pytest.raises(UserError) as caught:
        table.commit("UPDATE SCHEMA", [changed])
    assert caught.value.fields["violations"][0]["rule"] == "SCH-05"


def test_the_history_of_a_type_is_kept(tmp_path: Path) -> None:
    table = with_file(create(tmp_path, "id INT", properties=WIDENING)).widen_column("id", "BIGINT")
    case = Case(id="", edit=lambda s: at(s, "id")["metadata"].clear())
    with pytest.raises(UserError) as caught:
        table.commit("UPDATE SCHEMA", [edited(table, case)])
    assert caught.value.fields["violations"][0]["rule"] == "SCH-10"


def test_everything_is_named_at_once(tmp_path: Path) -> None:
    table = with_file(create(tmp_path, DDL))
    case = Case(
        id="", edit=all_of(typed("id", "string"), required("name"), added("n", nullable=False))
    )
    with pytest.raises(UserError) as caught:
        table.commit("UPDATE SCHEMA", [edited(table, case)])
    found = [(v["rule"], v["path"]) for v in caught.value.fields["violations"]]
    assert found == [("SCH-08", "id"), ("SCH-11", "name"), ("SCH-12", "n")]
    assert caught.value.code is Code.SCHEMA_EVOLUTION


def test_a_wide_table_is_told_of_shortly(tmp_path: Path) -> None:
    table = with_file(create(tmp_path, ", ".join(f"c{number} INT" for number in range(300))))
    case = Case(id="", edit=all_of(*(typed(f"c{number}", "string") for number in range(300))))
    with pytest.raises(UserError, match="and 280 more") as caught:
        table.commit("UPDATE SCHEMA", [edited(table, case)])
    assert len(caught.value.fields["violations"]) == 300
    assert len(str(caught.value)) < 2_000


@pytest.mark.parametrize("operation", ["REPLACE TABLE", "RESTORE"])
def test_a_name_alone_does_not_make_it_legal(tmp_path: Path, operation: str) -> None:
    """What counts is that files stay, not what the commit calls itself."""
    table = with_file(create(tmp_path, DDL))
    case = Case(id="", edit=typed("id", "string"))
    with pytest.raises(UserError, match="changes its type from integer to string"):
        table.commit(operation, [edited(table, case)])


def test_a_file_that_is_removed_and_added_again_stays(tmp_path: Path) -> None:
    table = with_file(create(tmp_path, DDL))
    (add,) = table.snapshot.adds()
    case = Case(id="", edit=typed("id", "string"))
    removed = table.commit("DELETE", [add.remove(deletion_timestamp=1)])
    assert removed.commit("UPDATE SCHEMA", [edited(removed, case)]).version == removed.version + 1
    with pytest.raises(UserError, match="changes its type"):
        table.commit("WRITE", [edited(table, case), add, data_file("g")])


def test_restore_goes_back_over_changes(tmp_path: Path) -> None:
    first = with_file(create(tmp_path, DDL, properties={**NAME, **WIDENING}))
    (tmp_path / "f").write_bytes(b"PAR1")
    later = first.widen_column("id", "BIGINT").drop_column("name").add_column("n INT")
    back = later.restore(first.version)
    assert back.schema == first.schema
    assert int(back.properties[MAX_ID]) > int(first.properties[MAX_ID])


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (added("ID"), "differs only in case"),
        (added("a b"), "need column mapping"),
        (typed("s", {"type": "struct", "fields": []}), "struct without fields"),
    ],
    ids=["twice", "characters", "empty-struct"],
)
def test_a_schema_that_is_invalid_in_itself(tmp_path: Path, edit: Edit, text: str) -> None:
    table = create(tmp_path, DDL)
    with pytest.raises(UserError, match=text) as caught:
        table.commit("UPDATE SCHEMA", [edited(table, Case(id="", edit=edit))])
    assert {v["check"] for v in caught.value.fields["violations"]} == {"CMT-16"}


def test_what_was_invalid_before_does_not_lock_the_table(tmp_path: Path) -> None:
    create(tmp_path, "id INT, name STRING")
    log = tmp_path / "_delta_log" / f"{0:020d}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "metaData" in line:
            text = line["metaData"]["schemaString"]
            line["metaData"]["schemaString"] = text.replace('"name":"name"', '"name":"ID"')
    log.write_text("\n".join(map(json.dumps, lines)) + "\n")
    (tmp_path / "_delta_log" / f"{0:020d}.crc").unlink(missing_ok=True)
    CACHE.forget(Table.open(tmp_path, durable=False).location)
    broken = Table.open(tmp_path, durable=False)
    assert [f.name for f in broken.schema] == ["id", "ID"]
    more = edited(broken, Case(id="", edit=added("more")))
    assert len(broken.commit("ADD COLUMNS", [more]).schema) == 3


def test_metadata_without_a_change_of_columns_is_asked_nothing(tmp_path: Path) -> None:
    table = with_file(create(tmp_path, DDL))
    assert parse_ddl(DDL) == table.schema
    assert table.set_properties({"a": "b"}).properties["a"] == "b"
