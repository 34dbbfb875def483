"""Which catalog of names a text means: a file, or a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from twinlake.errors import Code, UserError
from twinlake.table.catalog.server_catalog import ServerCatalog
from twinlake.table.catalog.sqlite_catalog import Catalog

if TYPE_CHECKING:
    import os

    from twinlake.table.catalog.table_name import TableName

__all__ = ["Names", "names_file", "open_names"]


class Names(Protocol):
    """What resolving names takes of a catalog."""

    @property
    def place(self) -> str:
        """What errors call the catalog."""
        ...

    def missing_namespace(self, namespace: str) -> UserError:
        """The error for a namespace that is not there."""
        ...

    def parse(self, name: str) -> TableName:
        """The full name."""
        ...

    def exists(self, name: str) -> bool:
        """Whether a table has that name."""
        ...

    def locate(self, name: str) -> str:
        """The URL of the table with that name."""
        ...

    def register(self, name: str, location: str | os.PathLike[str]) -> TableName:
        """Give the Delta table at a location a name."""
        ...

    def names(self, namespace: str | None = None) -> tuple[TableName, ...]:
        """The tables of a namespace, or of all."""
        ...

    def drop(self, name: str, *, missing_ok: bool = False) -> bool:
        """Forget a name; the table stays where it is."""
        ...

    def namespaces(self) -> tuple[str, ...]:
        """The namespaces of the catalog."""
        ...


def open_names(place: str, *, namespace: str = "default") -> Names:
    """The catalog at a path, or of the server at a URL.

    >>> open_names("http://127.0.0.1:8181").place
    'the server http://127.0.0.1:8181'
    """
    if _is_server(place):
        return ServerCatalog(place, namespace)
    return Catalog(place, namespace=namespace)


def names_file(place: str) -> Catalog:
    """The catalog at a path; a server has no file that pointers are moved in."""
    if _is_server(place):
        raise UserError(
            Code.INVALID_ARGUMENT,
            "A table cannot be published in the catalog of a server.",
            why=f"{ServerCatalog(place).place} serves the newest version of its tables by itself",
            fix="Unset `TWINLAKE_CATALOG`, or give it a file, to publish a name there.",
        )
    return Catalog(place)


def _is_server(place: str) -> bool:
    return place.startswith(("http://", "https://"))
