"""Names that a catalog server has: ``TWINLAKE_CATALOG=http://127.0.0.1:8181``.

A small client of the Iceberg REST protocol: where a table is, whether there is one, and giving a
table a name. What the table holds is read from its log, as ever.
"""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from twinlake.errors import Code, StorageError, UserError
from twinlake.storage import encode_path, parse_location
from twinlake.table.catalog.table_name import TableName, refuse_name, split_name

if TYPE_CHECKING:
    import os

__all__ = ["ServerCatalog"]

_SECONDS: Final = 60.0
_SEPARATOR: Final = "%1F"
_MOST_BYTES: Final = 64 << 20
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_CATALOG: Final = "twinlake"


@dataclass(frozen=True, slots=True)
class ServerCatalog:
    """The tables of one server; a query of its URL, ``?warehouse=NAME``, chooses the warehouse.

    The catalog of a full name is the warehouse it is in.
    """

    url: str
    namespace: str = "default"

    @property
    def place(self) -> str:
        """What errors call it."""
        parts = urlsplit(self.url)
        return f"the server {parts.scheme}://{parts.hostname}:{parts.port or ''}".rstrip(":")

    def missing_namespace(self, namespace: str) -> UserError:
        """The error for a namespace that is not there."""
        return UserError(
            Code.INVALID_ARGUMENT,
            f"There is no namespace {namespace}.",
            why=f"{self.place} does not have it",
            fix=f"Create the namespace {namespace} with an Iceberg client of the server first.",
            delta_class="SCHEMA_NOT_FOUND",
            fields={"namespace": namespace},
        )

    def parse(self, name: str) -> TableName:
        """The full name; ``twinlake`` stands for the warehouse of the URL."""
        return TableName.parse(name, catalog=_CATALOG, namespace=self.namespace)

    def exists(self, name: str) -> bool:
        """Whether a table has that name."""
        full = self.parse(name)
        status, _ = self._send("HEAD", self._table(full))
        return status != _NOT_FOUND

    def locate(self, name: str) -> str:
        """The URL of the table with that name; ``delta.`/path``` names its own location."""
        full = self.parse(name)
        if full.namespace == "delta" and "/" in full.table:
            return parse_location(split_name(name)[-1]).url
        status, found = self._send("GET", f"{self._table(full)}?snapshots=refs")
        if status == _NOT_FOUND:
            raise UserError(
                Code.TABLE_NOT_FOUND,
                f"There is no table named {full}.",
                why=f"{self.place} does not have it",
                fix="Check the spelling, give the path of the table instead, or set "
                "`TWINLAKE_CATALOG` to another catalog.",
                delta_class="TABLE_OR_VIEW_NOT_FOUND",
                fields={"name": str(full), "server": self.place},
            )
        return _as_url(found["metadata"]["location"])

    def register(self, name: str, location: str | os.PathLike[str]) -> TableName:
        """Give the Delta table at a location a name."""
        full = self.parse(name)
        url = parse_location(str(location)).url
        body = {"name": full.table, "metadata-location": unquote(url)}
        path = f"{self._namespace(full.catalog, full.namespace)}/register"
        status, _ = self._send("POST", path, body)
        if status == _NOT_FOUND:
            raise self.missing_namespace(full.namespace)
        return full

    def names(self, namespace: str | None = None) -> tuple[TableName, ...]:
        """The tables of a namespace, or of all of them, in order."""
        wanted = self.namespaces() if namespace is None else (namespace.lower(),)
        found: list[TableName] = []
        for each in wanted:
            status, listed = self._send("GET", f"{self._namespace(_CATALOG, each)}/tables")
            if status == _NOT_FOUND:
                raise self.missing_namespace(each)
            tables = (str(one["name"]).lower() for one in listed["identifiers"])
            found += [TableName(_CATALOG, each, table) for table in tables]
        return tuple(sorted(found))

    def drop(self, name: str, *, missing_ok: bool = False) -> bool:
        """Drop the name; the server keeps the table for as long as it is set to."""
        full = self.parse(name)
        status, _ = self._send("DELETE", self._table(full))
        if status == _NOT_FOUND and not missing_ok:
            raise UserError(
                Code.TABLE_NOT_FOUND,
                f"There is no table named {full}.",
                why=f"{self.place} does not have it",
                fix="Check the spelling, or write `DROP TABLE IF EXISTS`.",
                delta_class="TABLE_OR_VIEW_NOT_FOUND",
                fields={"name": str(full), "server": self.place},
            )
        return status != _NOT_FOUND

    def namespaces(self) -> tuple[str, ...]:
        """The namespaces of the warehouse, nested ones with dots."""
        found: list[str] = []
        open_levels: list[list[str]] = [[]]
        while open_levels:
            above = open_levels.pop()
            query = f"?parent={_SEPARATOR.join(quote(one, safe='') for one in above)}"
            path = f"/v1/{self._prefix(_CATALOG)}/namespaces{query if above else ''}"
            for levels in self._send("GET", path)[1]["namespaces"]:
                found.append(".".join(levels).lower())
                open_levels.append(levels)
        return tuple(sorted(found))

    def _table(self, full: TableName) -> str:
        namespace = self._namespace(full.catalog, full.namespace)
        return f"{namespace}/tables/{quote(full.table, safe='')}"

    def _namespace(self, catalog: str, namespace: str) -> str:
        levels = _SEPARATOR.join(quote(one, safe="") for one in namespace.split("."))
        return f"/v1/{self._prefix(catalog)}/namespaces/{levels}"

    def _prefix(self, catalog: str) -> str:
        """The prefix of a warehouse, as the server says it."""
        asked = parse_qs(urlsplit(self.url).query).get("warehouse", [""])[0]
        warehouse = asked if catalog == _CATALOG else catalog
        query = f"?warehouse={quote(warehouse, safe='')}" if warehouse else ""
        status, found = self._send("GET", f"/v1/config{query}")
        if status == _NOT_FOUND:
            refuse_name(catalog, f"{self.place} has no warehouse {warehouse}")
        return quote(found["overrides"]["prefix"], safe="")

    def _send(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and document of an answer; what is neither done nor "not there" is raised."""
        parts = urlsplit(self.url)
        https = parts.scheme == "https"
        kind = http.client.HTTPSConnection if https else http.client.HTTPConnection
        try:
            connection = kind(parts.hostname or "", parts.port, timeout=_SECONDS)
            try:
                connection.request(
                    method,
                    parts.path.rstrip("/") + path,
                    body=None if body is None else json.dumps(body).encode(),
                    headers={"Content-Type": "application/json"},
                )
                answer = connection.getresponse()
                data = answer.read(_MOST_BYTES)
            finally:
                connection.close()
            found = json.loads(data) if data else {}
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise self._unusable(str(error) or type(error).__name__) from error
        if answer.status >= 300 and answer.status != _NOT_FOUND:
            raise self._refused(answer.status, found)
        return answer.status, found

    def _refused(self, status: int, found: Any) -> UserError | StorageError:
        told = found.get("error") if isinstance(found, dict) else None
        message = told.get("message") if isinstance(told, dict) else None
        if not isinstance(message, str) or status >= 500:
            return self._unusable(message or f"it answers {status}")
        exists = status == _CONFLICT
        return UserError(
            Code.TABLE_EXISTS if exists else Code.INVALID_ARGUMENT,
            f"{self.place.capitalize()} refuses.",
            why=message,
            fix="Change what the server names.",
            delta_class="TABLE_OR_VIEW_ALREADY_EXISTS" if exists else None,
            fields={"server": self.place, "status": status},
        )

    def _unusable(self, why: str) -> StorageError:
        return StorageError(
            Code.STORAGE,
            f"The catalog of names at {self.url.partition('?')[0]} cannot be used.",
            why=why,
            fix="Start it with `twinlake serve`, or set `TWINLAKE_CATALOG` to another catalog.",
            fields={"server": self.place},
        )


def _as_url(location: str) -> str:
    """A literal location of Iceberg as the URL of a store."""
    scheme, mark, rest = location.partition("://")
    if not mark:
        return parse_location(location).url
    authority, slash, key = rest.partition("/")
    return parse_location(f"{scheme}://{authority}{encode_path(slash + key)}").url
