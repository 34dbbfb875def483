"""Namespaces and their properties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlake.errors import Code, UserError
from twinlake.rest.catalog.pages import NamePage
from twinlake.rest.names import NamespaceName

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from twinlake.rest.catalog.database import Connection
    from twinlake.rest.catalog.pages import PageRequest

__all__ = ["NamespaceRow", "Namespaces"]

_IS = "warehouse = ? AND namespace_key = ?"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceRow:
    """A namespace as it was created."""

    name: NamespaceName
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Namespaces:
    """The namespaces of one warehouse."""

    connection: Connection
    warehouse: str

    def exists(self, name: NamespaceName) -> bool:
        """Whether there is one, in whatever case."""
        found = self.connection.row(
            f"SELECT 1 FROM namespaces WHERE {_IS}", self.warehouse, name.key
        )
        return found is not None

    def require(self, name: NamespaceName) -> None:
        """Raise unless there is one."""
        if not self.exists(name):
            raise self._missing(name)

    def create(self, name: NamespaceName, properties: Mapping[str, str]) -> NamespaceName:
        """Make a namespace in one that is there; returns it as it is spelled then."""
        if self.exists(name):
            raise UserError(
                Code.NAMESPACE_EXISTS,
                f"The namespace {name} already exists.",
                why="names that differ only in case are one",
                fix="Use the namespace as it is, or choose another name.",
                delta_class="SCHEMA_ALREADY_EXISTS",
                fields={"namespace": str(name)},
            )
        if name.parent is not None:
            above = self._spelled(name.parent)
            name = NamespaceName((*above.levels, name.levels[-1]))
        self.connection.change(
            "INSERT INTO namespaces (warehouse, namespace_key, parent_key, name) "
            "VALUES (?, ?, ?, ?)",
            self.warehouse,
            name.key,
            "" if name.parent is None else name.parent.key,
            name.text,
        )
        self._set(name, properties)
        return name

    def load(self, name: NamespaceName) -> NamespaceRow:
        """A namespace with its properties."""
        spelled = self._spelled(name)
        found = self.connection.rows(
            f"SELECT property, value FROM namespace_properties WHERE {_IS} ORDER BY property",
            self.warehouse,
            name.key,
        )
        return NamespaceRow(name=spelled, properties=dict(found))

    def page(self, parent: NamespaceName | None, asked: PageRequest) -> NamePage[NamespaceName]:
        """The namespaces right below one, or the outermost."""
        if parent is not None:
            self.require(parent)
        found = self.connection.rows(
            "SELECT namespace_key, name FROM namespaces WHERE warehouse = ? AND parent_key = ? "
            "AND namespace_key > ? ORDER BY namespace_key LIMIT ?",
            self.warehouse,
            "" if parent is None else parent.key,
            asked.after,
            asked.limit,
        )
        return NamePage.of([(key, NamespaceName.parse(text)) for key, text in found], asked.size)

    def drop(self, name: NamespaceName) -> None:
        """Forget a namespace that has no tables and no namespaces."""
        self.require(name)
        below = self.connection.row(
            "SELECT name FROM namespaces WHERE warehouse = ? AND parent_key = ? LIMIT 1",
            self.warehouse,
            name.key,
        )
        table = self.connection.row(
            f"SELECT name FROM tables WHERE {_IS} AND dropped_ms IS NULL LIMIT 1",
            self.warehouse,
            name.key,
        )
        if below is not None or table is not None:
            held = f"table {table[0]}" if table else f"namespace {NamespaceName.parse(below[0])}"
            raise UserError(
                Code.NAMESPACE_NOT_EMPTY,
                f"The namespace {name} is not empty.",
                why=f"it has {held}",
                fix="Drop what is in it first.",
                delta_class="SCHEMA_NOT_EMPTY",
                fields={"namespace": str(name)},
            )
        for table_name in ("namespace_properties", "namespaces"):
            self.connection.change(
                f"DELETE FROM {table_name} WHERE {_IS}", self.warehouse, name.key
            )

    def change_properties(
        self, name: NamespaceName, updates: Mapping[str, str], removals: Iterable[str]
    ) -> tuple[list[str], list[str]]:
        """Set and remove properties; returns what was removed and what was not there."""
        self.require(name)
        gone, missing = list[str](), list[str]()
        for key in dict.fromkeys(removals):
            changed = self.connection.change(
                f"DELETE FROM namespace_properties WHERE {_IS} AND property = ?",
                self.warehouse,
                name.key,
                key,
            )
            (gone if changed else missing).append(key)
        self._set(name, updates)
        return gone, missing

    def _set(self, name: NamespaceName, properties: Mapping[str, str]) -> None:
        for key, value in properties.items():
            self.connection.change(
                "INSERT INTO namespace_properties (warehouse, namespace_key, property, value) "
                "VALUES (?, ?, ?, ?) ON CONFLICT (warehouse, namespace_key, property) "
                "DO UPDATE SET value = excluded.value",
                self.warehouse,
                name.key,
                key,
                value,
            )

    def _spelled(self, name: NamespaceName) -> NamespaceName:
        found = self.connection.row(
            f"SELECT name FROM namespaces WHERE {_IS}", self.warehouse, name.key
        )
        if found is None:
            raise self._missing(name)
        return NamespaceName.parse(found[0])

    def _missing(self, name: NamespaceName) -> UserError:
        return UserError(
            Code.NAMESPACE_NOT_FOUND,
            f"There is no namespace {name}.",
            why=f"the warehouse {self.warehouse} does not have it",
            fix="Check the spelling, or create the namespace first.",
            delta_class="SCHEMA_NOT_FOUND",
            fields={"namespace": str(name), "warehouse": self.warehouse},
        )
