"""The layout of the database, as numbered steps; a step that was released is never edited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from twinlake.rest.catalog.dialect import Dialect

__all__ = ["MIGRATIONS", "migrate"]

_STEPS = """CREATE TABLE IF NOT EXISTS schema_steps (
    number INTEGER PRIMARY KEY
)"""

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        # Keys are names in lower case with levels parted by 0x1F; names keep their spelling.
        """CREATE TABLE namespaces (
            warehouse TEXT NOT NULL,
            namespace_key TEXT NOT NULL,
            parent_key TEXT NOT NULL,
            name TEXT NOT NULL,
            PRIMARY KEY (warehouse, namespace_key)
        )""",
        "CREATE INDEX namespaces_of ON namespaces (warehouse, parent_key, namespace_key)",
        """CREATE TABLE namespace_properties (
            warehouse TEXT NOT NULL,
            namespace_key TEXT NOT NULL,
            property TEXT NOT NULL,
            value TEXT NOT NULL,
            PRIMARY KEY (warehouse, namespace_key, property)
        )""",
        # uuid is NULL until the table is there; dropped_ms is NULL until it is dropped.
        """CREATE TABLE tables (
            id TEXT PRIMARY KEY,
            warehouse TEXT NOT NULL,
            namespace_key TEXT NOT NULL,
            table_key TEXT NOT NULL,
            name TEXT NOT NULL,
            root TEXT NOT NULL,
            uuid TEXT,
            created_ms BIGINT NOT NULL,
            dropped_ms BIGINT,
            purge INTEGER NOT NULL
        )""",
        """CREATE UNIQUE INDEX table_names ON tables (warehouse, namespace_key, table_key)
            WHERE dropped_ms IS NULL""",
        "CREATE INDEX table_roots ON tables (root)",
        """CREATE TABLE answers (
            warehouse TEXT NOT NULL,
            request_key TEXT NOT NULL,
            digest TEXT NOT NULL,
            status INTEGER NOT NULL,
            body TEXT NOT NULL,
            answered_ms BIGINT NOT NULL,
            PRIMARY KEY (warehouse, request_key)
        )""",
    ),
)


def migrate(dialect: Dialect) -> None:
    """Bring the database to the newest layout; servers that start at once do it once."""
    with dialect.writing():
        dialect.execute(_STEPS, ())
        row = dialect.execute("SELECT MAX(number) FROM schema_steps", ()).fetchone()
        done = row[0] or 0
        if done > len(MIGRATIONS):
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"The database {dialect.address} was made by a newer twinlake.",
                why=f"its layout has number {done}, and this release knows {len(MIGRATIONS)}",
                fix="Install the newer release, or give `--database` another file.",
                fields={"found": done, "known": len(MIGRATIONS)},
            )
        for number, statements in enumerate(MIGRATIONS[done:], done + 1):
            for statement in statements:
                dialect.execute(statement, ())
            dialect.execute("INSERT INTO schema_steps (number) VALUES (?)", (number,))
