"""The pointer of a name in a catalog, and the errors of moving it.

A pointer moves only from the value its mover has seen, in one step that the catalog decides. Where
a catalog has no such step, publishing is refused: dropping a name and registering it again would
lose the race, and for a moment the table.
"""

from __future__ import annotations

from typing import Protocol

from twinlake.errors import Code, ConflictError, StorageError, UnsupportedFeature, how_to_sync

__all__ = ["Pointer", "overtaken", "refused_catalog", "unusable_catalog"]


class Pointer(Protocol):
    """Where one name of a catalog points."""

    def metadata_location(self) -> str | None:
        """The metadata file it points at; None where nothing is published under it."""
        ...

    def swap(self, expected: str | None, metadata_location: str) -> None:
        """Point at another file if it still points at ``expected``, else a ``ConflictError``."""
        ...


def overtaken(name: str, expected: str | None, found: str | None) -> ConflictError:
    """The error of a writer that lost the race for a name."""
    return ConflictError(
        Code.CONFLICT_WRITE,
        f"{name} was published by another process meanwhile.",
        why=f"expected {expected}, found {found}",
        fix=f"Run {how_to_sync()} again: it starts from the newer metadata.",
        fields={"expected": expected, "found": found},
    )


def unusable_catalog(catalog: str, error: Exception) -> StorageError:
    """The error of a catalog that does not answer."""
    # The first line is what the driver said; further ones may repeat statements and settings.
    said = next(iter(str(error).splitlines()), type(error).__name__)
    return StorageError(
        Code.STORAGE,
        f"The catalog {catalog} cannot be used.",
        why=said,
        fix="Check that its server runs, check its settings, and run `pip install "
        "'twinlake[catalogs]'`.",
        fields={"catalog": catalog},
    )


def refused_catalog(catalog: str, why: str) -> UnsupportedFeature:
    """The error of a catalog that has no conditional update."""
    return UnsupportedFeature(
        Code.NOT_YET,
        f"Tables cannot be published in the catalog {catalog}.",
        why=why,
        fix="Publish in an SQL catalog on PostgreSQL or SQLite.",
        fields={"catalog": catalog},
    )
