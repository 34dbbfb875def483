"""Reads from a table what the checks of a commit look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.commit.checks.check import Draft
from twinlake.commit.checks.compat import CompatFileReader
from twinlake.commit.checks.file_spelling import live_spellings, with_live_spellings
from twinlake.commit.checks.schema import keeps_files
from twinlake.log import CanonicalPaths
from twinlake.protocol import features, keys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.actions import FileKey
    from twinlake.commit.change import Change
    from twinlake.log import Snapshot
    from twinlake.runtime import Executor
    from twinlake.storage import Store

__all__ = ["DraftReader"]


class DraftReader:
    """Makes the drafts of one transaction, one for each attempt; footers are read once."""

    def __init__(
        self,
        store: Store,
        executor: Executor,
        *,
        trusted_files: bool,
        system_domains: frozenset[str],
        waived_rules: frozenset[str],
    ) -> None:
        self._store = store
        self._trusted_files = trusted_files
        self._system_domains = system_domains
        self._waived_rules = waived_rules
        self._compat_files = CompatFileReader(store, executor, trusted=trusted_files)

    def read(self, change: Change, current: Snapshot | None) -> Draft:
        """The draft of a change to the newest known version, its files spelled as in the log."""
        change, spellings = self._spelled(change, current)
        live: dict[str, FileKey] = {}
        untracked = 0
        kept = False
        if current is not None:
            kept = keeps_files(change, current)
            if _may_be_live(change):
                found = current.live_files(change.summary.added_paths)
                live = {path: add.key for path, add in found.items()}
            metadata = change.summary.metadata
            tracked = change.base.metadata.flag(keys.ENABLE_ROW_TRACKING)
            if metadata is not None and metadata.flag(keys.ENABLE_ROW_TRACKING) and not tracked:
                untracked = current.add_files()["base_row_id"].null_count
        return Draft(
            change=change,
            live=live,
            spellings=spellings,
            paths=self._paths(change),
            untracked_files=untracked,
            system_domains=self._system_domains,
            compat_files=self._compat_files.read(change, current, live),
            keeps_files=kept,
            waived_rules=self._waived_rules,
            trusted_files=self._trusted_files,
        )

    def _spelled(
        self, change: Change, current: Snapshot | None
    ) -> tuple[Change, Mapping[str, str]]:
        """The change with files spelled as the log does; and which of them are not."""
        if current is None or self._trusted_files or not change.summary.has_files:
            return change, {}
        spellings = live_spellings(change, current)
        return with_live_spellings(change, spellings), spellings

    def _paths(self, change: Change) -> CanonicalPaths | None:
        """What compares the paths of a commit; None if their text will do."""
        summary = change.summary
        if self._trusted_files or not summary.has_files:
            return None
        usual = CanonicalPaths.are_usual(summary.added_paths | summary.removed_paths)
        return None if usual else CanonicalPaths.of(self._store.url)


def _may_be_live(change: Change) -> bool:
    """Whether added paths must be looked up in the table.

    Plain appends to a table without deletion vectors can neither double a path under two keys nor
    commit a file again, and that is the case that must cost nothing on large tables.
    """
    if not change.summary.adds:
        return False
    again = any(not add.data_change for add in change.summary.adds)
    return again or change.protocol.is_supported(features.DELETION_VECTORS)
