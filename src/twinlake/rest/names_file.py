"""Taking over the tables of the catalog of names when a server starts.

Each table that may be served gets a row in the first warehouse whose policy allows its location;
what has a row, by its name or by its place, is left alone. The file stays as it is.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, TwinlakeError, UserError
from twinlake.log import has_table
from twinlake.rest.catalog import Namespaces, TableRow, Tables
from twinlake.rest.location_policy import table_store
from twinlake.rest.names import NamespaceName, TableIdentity
from twinlake.storage import parse_location
from twinlake.table import Catalog

if TYPE_CHECKING:
    from twinlake.rest.served_tables import ServedTables
    from twinlake.table import TableName

__all__ = ["import_names"]

_LOG: Final = logging.getLogger("twinlake.server")


def import_names(tables: ServedTables, names_file: str) -> list[TableIdentity]:
    """Add rows for the tables of a catalog of names; returns those that are new."""
    if not Path(names_file).expanduser().exists():
        return []
    added: list[TableIdentity] = []
    try:
        names = Catalog(names_file)
        found = names.names()
    except TwinlakeError as error:
        _LOG.warning("The tables of %s are not served: %s", names_file, error.what)
        return []
    for name in found:
        try:
            row = _import(tables, names, name)
        except TwinlakeError as error:
            _LOG.warning("%s of %s is not served: %s", name, names_file, error.what)
            continue
        if row is not None:
            added.append(row.identity)
    return added


def _import(tables: ServedTables, names: Catalog, name: TableName) -> TableRow | None:
    location = names.locate(str(name))
    identity = TableIdentity.of(name.namespace.split("."), name.table)
    warehouse, root = _home(tables, location)
    with tables.database.reading() as connection:
        rows = Tables(connection, warehouse)
        if rows.find(identity) is not None or rows.at(root) is not None:
            return None
    store = table_store(root)
    if not has_table(store):
        raise UserError(Code.TABLE_NOT_FOUND, f"There is no Delta table at {location}.")
    row = tables.new_row(identity, root, uuid=tables.commits.load(store).uuid)
    with tables.database.changing() as connection:
        rows, namespaces = Tables(connection, warehouse), Namespaces(connection, warehouse)
        if rows.find(identity) is not None or rows.at(root) is not None:
            return None
        levels = identity.namespace.levels
        for depth in range(1, len(levels) + 1):
            above = NamespaceName(levels[:depth])
            if not namespaces.exists(above):
                namespaces.create(above, {})
        rows.add(row)
    return row


def _home(tables: ServedTables, location: str) -> tuple[str, str]:
    """The warehouse that a location may be served in, and the root it has there."""
    # Roots of the catalog of names are encoded URLs, and what policies resolve is literal text.
    place = parse_location(location)
    literal = f"{place.scheme}://{place.authority}/{place.path}"
    refusal: UserError | None = None
    for warehouse, policy in tables.policies.items():
        try:
            return warehouse, policy.resolve(literal)
        except UserError as error:
            refusal = refusal or error
    raise refusal or UserError(Code.WAREHOUSE_NOT_FOUND, "The server has no warehouse.")
