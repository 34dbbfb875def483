"""Publishing the Iceberg metadata of a table under a name, and keeping that name up with it.

The name is a property of the table, so that whoever commits, or syncs, moves its pointer. A pointer
that cannot be moved is a warning: the next who can moves it to where it belongs.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from twinlake.commit import PostCommitHook
from twinlake.errors import Code, ConflictError, UserError, how_to_sync
from twinlake.iceberg import ICEBERG_HOOKS, syncs_with_commit
from twinlake.iceberg.catalogs import open_pointer, overtaken
from twinlake.iceberg.sync import MetadataFiles, is_metadata_name
from twinlake.protocol import keys
from twinlake.storage import parse_location
from twinlake.table.catalog.names import names_file
from twinlake.table.catalog.sqlite_catalog import Catalog, default_catalog_path
from twinlake.table.catalog.table_name import split_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.commit import HookContext
    from twinlake.iceberg.catalogs import Pointer
    from twinlake.log import Snapshot
    from twinlake.storage import Store

__all__ = ["PUBLISH_HOOK", "TABLE_HOOKS", "PublishedName", "follow", "full_name", "point"]

_EMBEDDED: Final = "twinlake"
_FOLDER: Final = "/_iceberg/"
_ATTEMPTS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedName:
    """Where a name points."""

    name: str
    metadata_location: str


def full_name(name: str) -> str:
    """A name with its catalog: the catalog of names unless another stands before a namespace."""
    parts = split_name(name)
    if len(parts) > 2 and parts[0].lower() != _EMBEDDED:
        return name
    return str(_names().parse(name))


def follow(snapshot: Snapshot) -> PublishedName | None:
    """Move the pointer of a published table to its newest metadata; None if it has no name."""
    name = snapshot.metadata.get(keys.ICEBERG_PUBLISH)
    return point(snapshot.store, name, only_from_ours=True) if name else None


def point(store: Store, name: str, *, only_from_ours: bool = False) -> PublishedName:
    """Let a name point at the newest Iceberg metadata of a table.

    With ``only_from_ours`` a pointer that an Iceberg client moved to a commit of its own stays.
    """
    files = MetadataFiles(store)
    with _pointer(name, store.url) as pointer:
        for attempt in range(_ATTEMPTS):
            found = pointer.metadata_location()
            # Looked up after the pointer: unless it was rebuilt it is never older than it.
            newest = files.newest()
            if newest is None:
                raise _nothing_yet(name)
            wanted = files.metadata_location(newest)
            _check_same_table(name, found, wanted)
            if found == wanted:
                break
            if only_from_ours and found is not None and not is_metadata_name(found):
                raise _committed_elsewhere(name, found, wanted)
            try:
                pointer.swap(found, wanted)
                break
            except ConflictError:
                if attempt == _ATTEMPTS - 1:
                    raise
    return PublishedName(name=name, metadata_location=wanted)


@contextlib.contextmanager
def _pointer(name: str, root: str) -> Iterator[Pointer]:
    parts = split_name(name)
    if len(parts) < 3 or parts[0].lower() == _EMBEDDED:
        yield _NamedPointer(_names(), name, root)
        return
    # Catalogs of PyIceberg's configuration have lower-case names; the rest is theirs to spell.
    with open_pointer((parts[0].lower(), *parts[1:])) as pointer:
        yield pointer


def _names() -> Catalog:
    return names_file(default_catalog_path(os.environ))


@dataclass(frozen=True, slots=True)
class _NamedPointer:
    """A name in the catalog of names, which needs no PyIceberg."""

    names: Catalog
    name: str
    root: str

    def metadata_location(self) -> str | None:
        return self.names.metadata_location(self.name) if self.names.exists(self.name) else None

    def swap(self, expected: str | None, metadata_location: str) -> None:
        if expected is None and not self.names.exists(self.name):
            self._register()
        self.names.swap(self.name, expected, metadata_location)

    def _register(self) -> None:
        try:
            self.names.register(self.name, self.root)
        except UserError as error:
            # Somebody was faster. If it was for another table, it cannot be shared.
            if error.code is not Code.TABLE_EXISTS:
                raise
            if self.names.locate(self.name) != parse_location(self.root).url:
                raise
            raise overtaken(self.name, None, self.metadata_location()) from error


def _check_same_table(name: str, found: str | None, wanted: str) -> None:
    if found is None or found.rpartition(_FOLDER)[0] == wanted.rpartition(_FOLDER)[0]:
        return
    raise UserError(
        Code.TABLE_EXISTS,
        f"{name} is the name of another table.",
        why=f"it points at {found}",
        fix="Choose another name, or drop that one with the client that made it.",
        delta_class="TABLE_OR_VIEW_ALREADY_EXISTS",
        fields={"name": name, "found": found},
    )


def _committed_elsewhere(name: str, found: str, wanted: str) -> ConflictError:
    return ConflictError(
        Code.CONFLICT_WRITE,
        f"An Iceberg client has committed to {name}.",
        why=f"The name points at {found}, which twinlake did not write. A table is written through "
        "its Delta log, which knows nothing of that commit.",
        fix="Write those rows through twinlake or Delta, then point the name back at "
        f"{wanted} with `twinlake sync PATH --publish {name}`.",
        fields={"name": name, "found": found, "wanted": wanted},
    )


def _nothing_yet(name: str) -> UserError:
    return UserError(
        Code.INVALID_ARGUMENT,
        f"There is nothing to publish as {name}.",
        why="the table has no Iceberg metadata yet",
        fix=f"Run {how_to_sync()} first.",
        fields={"name": name},
    )


def _after_commit(context: HookContext) -> None:
    if syncs_with_commit(context.snapshot.metadata):
        follow(context.snapshot)


PUBLISH_HOOK: Final = PostCommitHook(name="publish", run=_after_commit)
TABLE_HOOKS: Final[tuple[PostCommitHook, ...]] = (*ICEBERG_HOOKS, PUBLISH_HOOK)
"""What runs after a commit to a table, in this order: Delta's hooks, the conversion, the name."""
