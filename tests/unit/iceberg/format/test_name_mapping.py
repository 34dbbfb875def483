"""Files without ids: which column a name in them belongs to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from pyiceberg.table.name_mapping import parse_mapping_from_json

from tests.support.data_files import append
from tests.support.iceberg.both_sides import agree, iceberg_rows, opened
from tests.support.log_tables import commit
from twinlake.iceberg.format.name_mapping import name_mapping
from twinlake.schema import (
    ID_KEY,
    INTEGER,
    PHYSICAL_NAME_KEY,
    Array,
    DataType,
    Struct,
    StructField,
)
from twinlake.table import Table


def column(number: int, logical: str, physical: str, kind: DataType = INTEGER) -> StructField:
    return StructField(logical, kind, metadata={ID_KEY: number, PHYSICAL_NAME_KEY: physical})


def names(*columns: StructField) -> dict[int, list[str]]:
    """The names by id, of all depths."""
    found = {}

    def walk(nodes: list[Any]) -> None:
        for node in nodes:
            found[node["field-id"]] = node["names"]
            walk(node.get("fields", []))

    text = name_mapping(Struct(columns))
    parse_mapping_from_json(text)
    walk(msgspec.json.decode(text))
    return found


def test_a_physical_name_belongs_to_its_own_column_alone() -> None:
    assert names(column(1, "b", "a"), column(2, "a", "col-2"), column(3, "c", "col-3")) == {
        1: ["b", "a"],
        2: ["col-2"],
        3: ["c", "col-3"],
    }
    # Columns that have taken each other's names.
    assert names(column(1, "b", "a"), column(2, "a", "b")) == {1: ["a"], 2: ["b"]}


def test_so_it_is_at_every_depth() -> None:
    inner = Struct((column(3, "y", "x"), column(4, "x", "col-4")))
    held = StructField(
        "l",
        Array(inner),
        metadata={
            ID_KEY: 5,
            PHYSICAL_NAME_KEY: "l",
            "delta.columnMapping.nested.ids": {"l.element": 6},
        },
    )
    expected = {3: ["y", "x"], 4: ["col-4"]}

    assert names(column(2, "s", "col-2", inner)) == {2: ["s", "col-2"], **expected}
    assert names(held) == {5: ["l"], 6: ["element"], **expected}


def test_case_tells_names_apart() -> None:
    assert names(column(1, "b", "A"), column(2, "a", "col-2")) == {
        1: ["b", "A"],
        2: ["a", "col-2"],
    }


def test_a_name_with_a_dot_is_no_path_into_another_column() -> None:
    """Readers look a column up by its whole path, with dots."""
    struct = column(1, "s", "s", Struct((column(2, "new", "x"),)))

    assert names(struct, column(3, "s.x", "col-3"))[3] == ["col-3"]
    assert names(column(3, "s.new", "col-3"), struct) == {
        1: ["s"],
        2: ["x"],
        3: ["s.new", "col-3"],
    }
    # By physical names alone one of the two cannot be said; the first one is.
    assert names(struct, column(3, "other", "s.x")) == {1: ["s"], 2: ["new", "x"]}


def test_deep_columns_do_not_double_the_paths_without_end() -> None:
    kind: DataType = INTEGER
    for number in range(40, 1, -1):
        kind = Struct((column(number, f"n{number}", f"col-{number}", kind),))

    found = names(column(1, "n1", "col-1", kind))

    assert found[1] == ["n1", "col-1"]
    assert found[40] == ["col-40"]


def test_files_from_before_the_ids_are_read_by_the_names_they_have(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id INT, a STRING", durable=False)
    table = append(table, tmp_path, [{"id": 1, "a": "old"}])
    table = table.set_properties({"delta.columnMapping.mode": "name"})
    compat = {**table.metadata.configuration, "delta.enableIcebergCompatV2": "true"}
    enabled = replace(table.metadata, configuration=compat)
    model = Table.create(
        tmp_path / "model",
        "id INT",
        properties={"delta.columnMapping.mode": "name", "delta.enableIcebergCompatV2": "true"},
        durable=False,
    )
    commit(table.snapshot.store, table.version + 1, model.protocol, enabled)
    table = table.refresh().rename_column("a", "b").add_column("a INT")
    table = append(table, tmp_path, [{"id": 2, "a": 5, "b": "new"}])

    agree(table, tmp_path)

    rows = {row["id"]: (row["b"], row["a"]) for row in iceberg_rows(tmp_path)}
    assert rows == {1: ("old", None), 2: ("new", 5)}
    listed = [
        name
        for node in parse_mapping_from_json(
            opened(tmp_path).metadata.properties["schema.name-mapping.default"]
        ).root
        for name in node.names
    ]
    assert len(listed) == len(set(listed))
