"""Paths of a commit that name a file in another spelling than the log does.

Readers do not agree on which spellings are one file, and some compare nothing but text. So a commit
spells a file as the log does, and brings no file in under a second spelling.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from twinlake.actions import AddFile, RemoveFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.commit.change import Change
    from twinlake.commit.summary import Winner
    from twinlake.log import CanonicalPaths, Snapshot

__all__ = ["live_spellings", "with_live_spellings", "with_our_spellings"]


def live_spellings(change: Change, current: Snapshot) -> dict[str, str]:
    """The paths of a commit whose files are live under another spelling, and that spelling."""
    paths, summary = current.paths, change.summary
    named = summary.added_paths | summary.removed_paths
    if current.state.has_odd_paths:
        # The table has spellings of its own; known without a read, so it is not passed over.
        wanted = {path: paths.file(path) for path in named}
    elif paths.are_usual(named):
        return {}
    else:
        wanted = {path: file for path in named if (file := paths.file(path)) != path}
    if not wanted:
        return {}
    import pyarrow as pa
    import pyarrow.compute as pc

    live = current.add_files()["path"]
    files = paths.files(live)
    found = pc.is_in(files, value_set=pa.array(set(wanted.values()), pa.string()))
    spelled: dict[str, set[str]] = {}
    for file, path in zip(
        files.filter(found).to_pylist(), live.filter(found).to_pylist(), strict=True
    ):
        spelled.setdefault(file, set()).add(path)
    others = {path: spelled.get(file, set()) for path, file in wanted.items()}
    return {path: min(known) for path, known in others.items() if known and path not in known}


def with_live_spellings(change: Change, spellings: Mapping[str, str]) -> Change:
    """The change with its removes spelled as the files they remove."""
    if not spellings.keys() & change.summary.removed_paths:
        return change
    return change.with_actions(
        [
            msgspec.structs.replace(action, path=spellings.get(action.path, action.path))
            if isinstance(action, RemoveFile)
            else action
            for action in change.actions
        ]
    )


def with_our_spellings(winner: Winner, ours: Change, paths: CanonicalPaths) -> Winner:
    """The winner with files spelled as in our change, so that the conflict rules see them meet."""
    theirs = winner.summary.added_paths | winner.summary.removed_paths
    if not theirs:
        return winner
    files = {paths.file(path): path for path in theirs}
    mine = ours.summary.added_paths | ours.summary.removed_paths | ours.reads.files
    spelled = {
        files[file]: path
        for path in mine
        if path not in theirs and (file := paths.file(path)) in files
    }
    if not spelled:
        return winner
    actions = tuple(
        msgspec.structs.replace(action, path=spelled.get(action.path, action.path))
        if isinstance(action, AddFile | RemoveFile)
        else action
        for action in winner.actions
    )
    return replace(winner, actions=actions)
