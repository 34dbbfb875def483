"""Which table, at which version, through which store: what most commands are told first."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from twinlake.errors import Code, UnsupportedFeature, UserError
from twinlake.table import Names, Table, default_catalog_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.storage import Store

__all__ = ["Place"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A table as it was named on the command line: by its path or by a registered name."""

    path: str
    options: Mapping[str, str] = field(default_factory=dict)
    policy: str = "bundled"
    version: int | None = None
    timestamp: str | None = None

    def where(self) -> str:
        """The path or URL of the table.

        Whatever has a slash or a scheme, or is there, is a path. Anything else is looked up in
        the catalog of names; a single word that it does not know is taken for a path after all.
        """
        if _is_path(self.path):
            return self.path
        names = Names(default_catalog_path(os.environ))
        if "." not in self.path and not _is_known(names, self.path):
            return self.path
        try:
            return names.locate(self.path)
        except UserError as error:
            error.why = f"{error.why}; nor is there a folder {self.path!r}"
            raise

    def open(self) -> Table:
        """The table, if twinlake supports what reading it takes."""
        return Table.open(
            self.where(),
            self.version,
            self.timestamp,
            policy=self.policy,
            options=self.options or None,
        )

    def open_metadata(self) -> Table:
        """The table for a look at its log, also where features keep twinlake from its rows."""
        try:
            return self.open()
        except UnsupportedFeature as error:
            if error.code != Code.FEATURE_READ:
                raise
        from twinlake.log import load_snapshot, version_at

        store = self.store()
        snapshot = load_snapshot(store, self.version)
        if self.timestamp is not None:
            snapshot = load_snapshot(store, version_at(store, snapshot, self.timestamp))
        return Table(snapshot, policy=self.policy)

    def store(self) -> Store:
        """Where the table lives."""
        from twinlake.storage import open_store

        return open_store(self.where(), options=self.options or None)

    def existing_store(self) -> Store:
        """Where the table lives; raises if there is no log at all."""
        store = self.store()
        if next(iter(store.list_from("_delta_log")), None) is None:
            raise UserError(
                Code.TABLE_NOT_FOUND,
                f"There is no Delta table at {store.url}.",
                why="it has no _delta_log folder, or nothing is in it",
                fix="Check the path and the access to it.",
                fields={"url": store.url},
            )
        return store


def _is_path(text: str) -> bool:
    # "delta.`/data/t`" is a name that has a path in it.
    if text.lower().startswith("delta.`"):
        return False
    return "/" in text or os.sep in text or ":" in text or not text.strip(".") or _is_there(text)


def _is_known(names: Names, word: str) -> bool:
    try:
        names.parse(word)
    except UserError:
        return False
    return names.exists(word)


def _is_there(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return True  # too long, or not a path at all: opening it says so
