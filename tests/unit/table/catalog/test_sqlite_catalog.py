"""The catalog of names: one SQLite file in the layout of PyIceberg's SQL catalog."""

from __future__ import annotations

import multiprocessing
import sqlite3
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.fix_texts import pieces
from tests.support.not_run import not_run
from twinlake.errors import Code, ConflictError, StorageError, TwinlakeError, UserError
from twinlake.table import Catalog, Table, TableName, default_catalog_path

#: What PyIceberg 0.12 creates: name, type, not null, place in the primary key.
PYICEBERG_LAYOUT = {
    "iceberg_tables": [
        ("catalog_name", "VARCHAR(255)", 1, 1),
        ("table_namespace", "VARCHAR(255)", 1, 2),
        ("table_name", "VARCHAR(255)", 1, 3),
        ("metadata_location", "VARCHAR(1000)", 0, 0),
        ("previous_metadata_location", "VARCHAR(1000)", 0, 0),
        ("iceberg_type", "VARCHAR(5)", 0, 0),
    ],
    "iceberg_namespace_properties": [
        ("catalog_name", "VARCHAR(255)", 1, 1),
        ("namespace", "VARCHAR(255)", 1, 2),
        ("property_key", "VARCHAR(255)", 1, 3),
        ("property_value", "VARCHAR(1000)", 1, 0),
    ],
}


@pytest.fixture
def names(tmp_path: Path) -> Catalog:
    return Catalog(tmp_path / "conf" / "catalog.db")


def rows(names: Catalog, statement: str, *values: Any) -> list[Any]:
    """What another client of the file sees or does."""
    with closing(sqlite3.connect(names.file.path)) as database, database:
        return database.execute(statement, values).fetchall()


def raised(expected: type[TwinlakeError], *call: Any) -> TwinlakeError:
    with pytest.raises(expected) as caught:
        call[0](*call[1:])
    assert caught.value.why
    assert caught.value.fix
    return caught.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders", ("twinlake", "default", "orders")),
        ("Sales.Orders", ("twinlake", "sales", "orders")),
        ("Prod.Sales.Orders", ("prod", "sales", "orders")),
        ("prod.eu.sales.orders", ("prod", "eu.sales", "orders")),
        ("`Sales`.`odd.name`", ("twinlake", "sales", "odd.name")),
        ("`back``tick`", ("twinlake", "default", "back`tick")),
        ("ÜBER.Straße", ("twinlake", "über", "straße")),
    ],
)
def test_a_name_is_parsed_folded_and_printed_so_that_it_parses_again(
    text: str, expected: tuple[str, str, str]
) -> None:
    name = TableName.parse(text)
    assert (name.catalog, name.namespace, name.table) == expected
    assert TableName.parse(str(name)) == name


@pytest.mark.parametrize(
    "text", ["", " ", "a.", ".a", "a..b", "`a", "a b", "a/b", "``", "`a`b", "`x.y`.t", "a\nb"]
)
def test_a_text_that_is_no_name_is_refused(text: str) -> None:
    error = raised(UserError, TableName.parse, text)
    assert error.code == Code.INVALID_ARGUMENT


def test_a_registered_table_is_found_in_any_case_and_opens(names: Catalog, tmp_path: Path) -> None:
    made = Table.create(tmp_path / "a b%", "id INT", durable=False)
    assert str(names.register("Orders", tmp_path / "a b%")) == "twinlake.default.orders"
    located = names.locate("TWINLAKE.default.`oRDERS`")
    assert Table.open(located).metadata.id == made.metadata.id
    assert names.exists("orders")
    assert names.metadata_location("orders") is None
    assert [str(name) for name in names.names()] == ["twinlake.default.orders"]


def test_a_path_identifier_names_its_own_place(names: Catalog) -> None:
    assert names.locate("delta.`/Data/T`") == "file:///Data/T"
    assert names.locate("delta.`s3://b/T`") == "s3://b/T"


def test_looking_makes_no_file(names: Catalog) -> None:
    assert names.names() == ()
    assert names.namespaces() == ("default",)
    assert not names.exists("t")
    raised(UserError, names.locate, "t")
    assert not names.file.path.exists()


def test_a_missing_name_tells_which_catalog_was_asked(names: Catalog) -> None:
    for call in (names.locate, names.drop, names.metadata_location):
        error = raised(UserError, call, "sales.orders")
        assert error.code == Code.TABLE_NOT_FOUND
        assert error.delta_class == "TABLE_OR_VIEW_NOT_FOUND"
        assert error.fields["name"] == "twinlake.sales.orders"
        assert str(names.file.path) in error.why
    assert names.drop("sales.orders", missing_ok=True) is False


def test_a_taken_name_is_refused_in_any_case(names: Catalog) -> None:
    names.register("t", "memory://a")
    error = raised(UserError, names.register, "T", "memory://b")
    assert (error.code, error.delta_class) == (Code.TABLE_EXISTS, "TABLE_OR_VIEW_ALREADY_EXISTS")
    assert names.locate("t") == "memory://a"


def test_what_the_fixes_name_can_be_run(names: Catalog) -> None:
    import twinlake

    here = {"twinlake": twinlake, "PATH": "memory://a"}
    missing = raised(UserError, names.register, "shop.t", "memory://a")
    eval(pieces(missing.fix)[0], here)
    unknown = raised(UserError, names.locate, "shop.t")
    eval(pieces(unknown.fix)[-1], here)
    assert names.locate("shop.t") == "memory://a"


def test_namespaces_are_made_first_and_hold_their_tables(names: Catalog) -> None:
    error = raised(UserError, names.register, "sales.t", "memory://a")
    assert error.delta_class == "SCHEMA_NOT_FOUND"
    names.create_namespace("Sales")
    names.create_namespace("twinlake.sales", exist_ok=True)
    error = raised(UserError, names.create_namespace, "SALES")
    assert error.delta_class == "SCHEMA_ALREADY_EXISTS"
    names.register("sales.t", "memory://a")
    names.register("u", "memory://b")
    assert names.namespaces() == ("default", "sales")
    assert [name.table for name in names.names("sales")] == ["t"]
    assert [name.table for name in names.names()] == ["u", "t"]
    assert raised(UserError, names.names, "nope").delta_class == "SCHEMA_NOT_FOUND"


def test_rename_moves_the_row_and_drop_forgets_it(names: Catalog) -> None:
    names.register("a", "memory://a")
    names.register("b", "memory://b")
    assert raised(UserError, names.rename, "a", "B").code == Code.TABLE_EXISTS
    assert raised(UserError, names.rename, "zz", "c").code == Code.TABLE_NOT_FOUND
    assert raised(UserError, names.rename, "a", "nope.c").delta_class == "SCHEMA_NOT_FOUND"
    raised(UserError, names.rename, "a", "other.default.a")
    names.create_namespace("s")
    names.rename("a", "s.c")
    assert names.locate("s.c") == "memory://a"
    assert not names.exists("a")
    assert names.drop("S.C") is True
    assert [str(name) for name in names.names()] == ["twinlake.default.b"]


@pytest.mark.parametrize(
    ("root", "metadata"),
    [
        ("/lake/t", "/lake/t/_iceberg/metadata/v1.metadata.json"),
        ("/lake/t", "file:/lake/t/_iceberg/metadata/v1.metadata.json"),
        ("/lake/a b%25", "file:///lake/a b%25/_iceberg/metadata/v1.metadata.json"),
        ("s3a://b/a%20b", "s3://b/a b/_iceberg/metadata/v1.metadata.json"),
        ("memory://m/_iceberg/t", "memory://m/_iceberg/t/_iceberg/metadata/v1.json"),
    ],
)
def test_publishing_keeps_the_place_of_the_delta_table(
    names: Catalog, root: str, metadata: str
) -> None:
    names.register("t", root)
    before = names.locate("t")
    names.swap("t", None, metadata)
    assert names.metadata_location("t") == metadata
    assert names.locate("t") == before


def test_a_pointer_moves_only_from_the_value_its_mover_saw(names: Catalog) -> None:
    names.register("t", "/lake/t")
    one, two, three = (f"/lake/t/_iceberg/metadata/{n}.json" for n in (1, 2, 3))
    names.swap("t", None, one)
    names.swap("t", one, two)
    error = raised(ConflictError, names.swap, "t", one, three)
    assert error.fields == {"expected": one, "found": two}
    raised(ConflictError, names.swap, "t", None, three)
    assert rows(
        names, "SELECT metadata_location, previous_metadata_location FROM iceberg_tables"
    ) == [(two, one)]


def test_metadata_of_another_table_is_refused(names: Catalog) -> None:
    names.register("t", "/lake/t")
    for other in ("/lake/u/_iceberg/metadata/1.json", "/lake/t/metadata/1.json"):
        assert raised(UserError, names.swap, "t", None, other).code == Code.INVALID_ARGUMENT


def test_rows_of_other_clients_are_understood(names: Catalog) -> None:
    names.register("t", "/lake/t")
    insert = "INSERT INTO iceberg_tables VALUES ('twinlake', 'default', ?, ?, NULL, ?)"
    rows(names, insert, "Foreign", "s3://b/foreign/metadata/1.json", "TABLE")
    rows(names, insert, "a_view", "s3://b/view/1.json", "VIEW")
    error = raised(UserError, names.locate, "foreign")
    assert error.delta_class == "DELTA_MISSING_DELTA_TABLE"
    assert [name.table for name in names.names()] == ["Foreign", "t"]
    assert not names.exists("a_view")
    assert raised(UserError, names.register, "A_VIEW", "/x").code == Code.TABLE_EXISTS
    rows(names, insert, "T", None, None)
    assert "ambiguous" in raised(UserError, names.locate, "t").what


def test_a_catalog_of_an_older_layout_keeps_working(names: Catalog) -> None:
    names.register("old", "/lake/old")
    rows(names, "ALTER TABLE iceberg_tables DROP COLUMN iceberg_type")
    names.register("new", "/lake/new")
    assert [names.locate(name) for name in ("old", "new")] == [
        "file:///lake/old",
        "file:///lake/new",
    ]


def test_the_layout_is_pyicebergs(names: Catalog) -> None:
    names.register("t", "/lake/t")
    made = {
        table: rows(names, 'SELECT name, type, "notnull", pk FROM pragma_table_info(?)', table)
        for (table,) in rows(names, "SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    assert made == PYICEBERG_LAYOUT


def test_a_file_that_is_no_catalog_is_an_error_in_words(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    path.write_text("something else, and long enough to be taken for a page" * 20)
    for call in (Catalog(path).names, lambda: Catalog(path).register("t", "/x")):
        assert raised(StorageError, call).code == Code.STORAGE
    raised(StorageError, lambda: Catalog(path / "below").register("t", "/x"))


@pytest.mark.parametrize("text", ["", "sqlite:///", "sqlite:///:memory:", "postgresql://h/db"])
def test_only_a_file_can_be_the_catalog(text: str) -> None:
    assert raised(UserError, Catalog, text).code == Code.INVALID_ARGUMENT


def test_the_file_is_named_by_path_url_or_environment(tmp_path: Path) -> None:
    file = tmp_path / "c.db"
    assert Catalog(f"sqlite:///{file}").file.path == Catalog(file).file.path == file
    assert default_catalog_path({"TWINLAKE_CATALOG": str(file), "HOME": "/h"}) == str(file)
    assert default_catalog_path({"HOME": "/h"}) == "/h/.twinlake/catalog.db"


def _register_many(path: Path, process: int) -> list[str]:
    """Five names of its own, and five that everybody wants; returns those it got."""
    names = Catalog(path)
    names.create_namespace("shared", exist_ok=True)
    won = []
    for number in range(5):
        names.register(f"own_{process}_{number}", f"memory://m/{process}/{number}")
        try:
            names.register(f"shared.t{number}", f"memory://m/{process}")
        except UserError as error:
            assert error.code == Code.TABLE_EXISTS
        else:
            won.append(f"shared.t{number}")
    return won


@pytest.mark.process
def test_eight_processes_register_at_once(names: Catalog) -> None:
    with ProcessPoolExecutor(8, mp_context=multiprocessing.get_context("spawn")) as pool:
        won = list(pool.map(_register_many, [names.file.path] * 8, range(8)))
    assert sorted(name for each in won for name in each) == [f"shared.t{n}" for n in range(5)]
    assert len(names.names("default")) == 40
    for process, each in enumerate(won):
        assert all(names.locate(name) == f"memory://m/{process}" for name in each)


def test_pyiceberg_lists_our_tables_and_we_read_its_changes(names: Catalog, tmp_path: Path) -> None:
    try:
        from pyiceberg.catalog.sql import SqlCatalog
    except ImportError:
        not_run(
            "PyIceberg's SQL catalog is not installed (pyiceberg[sql-sqlite])",
            required_by="TWINLAKE_REQUIRE_PYICEBERG_SQL",
        )
    from pyiceberg.exceptions import NoSuchTableError
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    root = tmp_path / "orders"
    names.register("orders", root)
    names.create_namespace("sales")
    peer = SqlCatalog("twinlake", uri=f"sqlite:///{names.file.path}")
    try:
        assert peer.list_tables("default") == [("default", "orders")]
        assert set(peer.list_namespaces()) == {("default",), ("sales",)}
        assert not peer.table_exists("default.orders")
        with pytest.raises(NoSuchTableError, match="metadata_location is missing"):
            peer.load_table("default.orders")
        schema = Schema(NestedField(1, "id", LongType(), required=False))
        made = peer.create_table("sales.made", schema, location=f"file://{root}/_iceberg")
        assert names.locate("sales.made") == root.as_uri()
        names.swap("orders", None, made.metadata_location)
        assert peer.load_table("default.orders").metadata == made.metadata
        with peer.load_table("default.orders").transaction() as transaction:
            transaction.set_properties(a="b")
        assert names.locate("orders") == root.as_uri()
        peer.rename_table("default.orders", "sales.renamed")
        assert names.locate("sales.renamed") == root.as_uri()
    finally:
        peer.close()
