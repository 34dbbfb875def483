"""The database: made once, brought to the newest layout, shared, and its failures."""

from __future__ import annotations

import sqlite3
import threading
from typing import TYPE_CHECKING

import pytest

from twinlake.errors import Code, StorageError, UserError
from twinlake.rest import open_database
from twinlake.rest.catalog import Namespaces
from twinlake.rest.catalog.migrations import MIGRATIONS
from twinlake.rest.names import NamespaceName

if TYPE_CHECKING:
    from pathlib import Path


def test_servers_that_start_at_once_make_the_layout_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'deep' / 'server.db'}"
    errors: list[BaseException] = []

    def start() -> None:
        try:
            open_database(url).close()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert errors == []
    with sqlite3.connect(tmp_path / "deep" / "server.db") as connection:
        steps = connection.execute("SELECT number FROM schema_steps").fetchall()
        mode = connection.execute("PRAGMA journal_mode").fetchone()
    connection.close()
    assert steps == [(n,) for n in range(1, len(MIGRATIONS) + 1)]
    assert mode == ("wal",)


def test_a_database_of_a_newer_release_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "server.db"
    open_database(str(file)).close()
    with sqlite3.connect(file) as connection:
        connection.execute("INSERT INTO schema_steps (number) VALUES (99)")
    connection.close()
    with pytest.raises(UserError, match="newer twinlake"):
        open_database(str(file))


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("postgresql://user:secret@host/db", Code.NOT_YET),
        ("mysql://user:secret@host/db", Code.INVALID_ARGUMENT),
        ("sqlite://", Code.INVALID_ARGUMENT),
        (":memory:", Code.INVALID_ARGUMENT),
        ("", Code.INVALID_ARGUMENT),
    ],
)
def test_what_is_no_file_is_refused_without_its_password(url: str, code: Code) -> None:
    with pytest.raises(UserError) as caught:
        open_database(url)
    assert caught.value.code is code
    assert "secret" not in str(caught.value)


def test_a_file_that_is_no_database_is_an_error_of_the_store(tmp_path: Path) -> None:
    (tmp_path / "server.db").write_bytes(b"x" * 5000)
    with pytest.raises(StorageError, match="cannot be used"):
        open_database(str(tmp_path / "server.db"))


def test_a_change_that_fails_leaves_nothing(tmp_path: Path) -> None:
    database = open_database(str(tmp_path / "server.db"))
    name = NamespaceName(("n",))
    with pytest.raises(ZeroDivisionError), database.changing() as connection:
        Namespaces(connection, "lake").create(name, {"a": "1"})
        _ = 1 / 0
    with database.reading() as connection:
        assert not Namespaces(connection, "lake").exists(name)
    with database.changing() as connection:
        Namespaces(connection, "lake").create(name, {})
    database.close()


def test_a_look_that_must_not_wait_fails_where_another_writes(tmp_path: Path) -> None:
    database = open_database(str(tmp_path / "server.db"))
    glance = database.glance()
    assert glance is not None
    with database.changing() as connection:
        Namespaces(connection, "lake").create(NamespaceName(("n",)), {})
        # Readers of a write-ahead log see the state before.
        assert glance.row("SELECT COUNT(*) FROM namespaces") == (0,)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            glance.change("DELETE FROM namespaces")
    assert glance.row("SELECT COUNT(*) FROM namespaces") == (1,)
    database.close()
