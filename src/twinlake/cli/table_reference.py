"""The table that a command works on: its path or name, version and store options."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from twinlake.errors import Code, UnsupportedFeature, UserError
from twinlake.log import load_snapshot, version_at
from twinlake.storage import open_store
from twinlake.table import Table, default_catalog_path, open_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.runtime import Runtime
    from twinlake.storage import Store
    from twinlake.table import Names

__all__ = ["TableReference"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReference:
    """A table as the command line names it: by its path or by a registered name."""

    path: str
    options: Mapping[str, str] = field(default_factory=dict)
    policy: str = "bundled"
    version: int | None = None
    timestamp: str | None = None

    def location(self) -> str:
        """The path or URL of the table.

        A text with a slash or a scheme, or that exists in the file system, is a path. Anything
        else is looked up in the catalog of names; a word that it does not have is a path too.
        """
        if _is_path(self.path):
            return self.path
        names = open_names(default_catalog_path(os.environ))
        if "." not in self.path and not _is_registered(names, self.path):
            return self.path
        try:
            return names.locate(self.path)
        except UserError as error:
            error.why = f"{error.why}; the folder {self.path!r} does not exist either"
            raise

    def open(self, runtime: Runtime | None = None) -> Table:
        """The table, if twinlake supports its reader features."""
        return Table.open(
            self.location(),
            self.version,
            self.timestamp,
            policy=self.policy,
            options=self.options or None,
            runtime=runtime,
        )

    def open_metadata(self) -> Table:
        """The table for reading its metadata, also if its reader features are not supported."""
        try:
            return self.open()
        except UnsupportedFeature as error:
            if error.code != Code.FEATURE_READ:
                raise

        store = self.store()
        snapshot = load_snapshot(store, self.version)
        if self.timestamp is not None:
            snapshot = load_snapshot(store, version_at(store, snapshot, self.timestamp))
        return Table(snapshot, policy=self.policy)

    def store(self) -> Store:
        """The store of the table."""
        return open_store(self.location(), options=self.options or None)

    def existing_store(self) -> Store:
        """The store of the table; raises if it has no log."""
        store = self.store()
        if next(iter(store.list_from("_delta_log")), None) is None:
            raise UserError(
                Code.TABLE_NOT_FOUND,
                f"There is no Delta table at {store.url}.",
                why="the folder _delta_log does not exist, or is empty",
                fix="Check the path and the access to it.",
                fields={"url": store.url},
            )
        return store


def _is_path(text: str) -> bool:
    # "delta.`/data/t`" is a name that has a path in it.
    if text.lower().startswith("delta.`"):
        return False
    return "/" in text or os.sep in text or ":" in text or not text.strip(".") or _exists(text)


def _is_registered(names: Names, word: str) -> bool:
    try:
        names.parse(word)
    except UserError:
        return False
    return names.exists(word)


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return True  # too long, or not a path at all: opening it says so
