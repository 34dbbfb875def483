"""What a check of a commit is, and what it looks at.

A check is a pure function of a draft and yields every failure it finds. It runs again after every
rebase, because the winner may have changed what the draft relies on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from twinlake.errors import Code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from twinlake.actions import AddFile, FileKey
    from twinlake.commit.change import Change
    from twinlake.compat import FileFooter
    from twinlake.errors import TwinlakeError
    from twinlake.log import CanonicalPaths

__all__ = ["CheckFailure", "CommitCheck", "CompatFiles", "Draft"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompatFiles:
    """The files that the rules look at, as far as the commit has to answer for them."""

    adds: tuple[AddFile, ...] = ()
    vectors: int = 0
    """How many of them hide rows by a deletion vector."""
    footers: tuple[FileFooter, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A change about to be written, and what is live where it adds files."""

    change: Change
    live: Mapping[str, FileKey] = field(default_factory=dict)
    """Of the added paths, those that are in the table, with their keys."""
    spellings: Mapping[str, str] = field(default_factory=dict)
    """Of its paths, those whose files are live under another spelling, with that spelling."""
    paths: CanonicalPaths | None = None
    """Decides whether two paths name one file; None where their text does."""
    untracked_files: int = 0
    """Live files without row ids; counted when row tracking is switched on."""
    system_domains: frozenset[str] = frozenset()
    """System domains that this transaction may write."""
    compat_files: CompatFiles = field(default_factory=CompatFiles)
    """The files that the rules of the compat features look at."""
    keeps_files: bool = False
    """Whether the columns change under files that stay."""
    waived_rules: frozenset[str] = frozenset()
    """Rules of schema changes and of compat features that the operation answers for."""
    trusted_files: bool = False
    """Whether our own writers made the added files that are not live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFailure:
    """One thing that is wrong with a draft."""

    message: str
    code: Code = Code.COMMIT_INVALID
    delta_class: str | None = None
    fix: str = ""
    path: str = ""
    """The column, where it is about one."""
    rule: str = ""
    """The rule within the check, where it has several."""
    error: TwinlakeError | None = None
    """What to raise, where this is all that is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitCheck:
    """One row of the registry."""

    id: str
    name: str
    run: Callable[[Draft], Iterable[CheckFailure]]
