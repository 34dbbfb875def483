"""Judging a table that is there: its metadata, what the log says of its files, their footers.

The rules are those that every commit is held to (``twinlake.compat``). A table may be judged by a
compat feature that it does not have, and by whoever it was written.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

from twinlake.commit import file_footers
from twinlake.compat import (
    Profile,
    Report,
    Scope,
    State,
    Subject,
    evaluate_rules,
    find_compat,
    profile_of,
)
from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from twinlake.actions import AddFile
    from twinlake.compat import Compat, Violation
    from twinlake.log import Snapshot
    from twinlake.protocol import Metadata
    from twinlake.runtime import Executor, Progress
    from twinlake.table.operations.context import OperationContext

__all__ = ["check_snapshot", "chosen_profile"]

T = TypeVar("T")

_BATCH: Final = 2048
"""Files that are judged together."""
_KEPT: Final = 10_000
"""Violations of one rule that are listed one by one; a table of many bad files has more."""


def check_snapshot(
    context: OperationContext,
    snapshot: Snapshot,
    name: str,
    *,
    files: bool = False,
    profile: str | Profile | None = None,
) -> Report:
    """The report under a compat feature; with ``files`` the footer of every live file is read."""
    check = _Checking(snapshot, find_compat(name), chosen_profile(profile, snapshot.metadata))
    check.judge_log()
    if files:
        check.judge_footers(context.executor, context.progress)
    return check.report()


def chosen_profile(given: str | Profile | None, metadata: Metadata) -> Profile:
    """The profile of that name; without one the table's own, else the specification's."""
    if given is None:
        return profile_of(metadata)
    try:
        return Profile(given.strip().lower())
    except ValueError:
        known = ", ".join(Profile)
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"There is no profile {given!r}.",
            why=f"the profiles are {known}",
            fix=f"Give one of {known}.",
            fields={"profile": given, "known": list(Profile)},
        ) from None


class _Checking:
    """One check: what was asked so far, and what came of it."""

    def __init__(self, snapshot: Snapshot, compat: Compat, profile: Profile) -> None:
        self._snapshot = snapshot
        self._compat = compat
        self._profile = profile
        self._state = State(metadata=snapshot.metadata, protocol=snapshot.protocol)
        self._rules: dict[str, None] = {}
        self._kept: dict[str, list[Violation]] = {}
        self._omitted: dict[str, int] = {}
        self._files = 0

    def judge_log(self) -> None:
        """Metadata, protocol, and what the log says of every live file."""
        vectors = self._snapshot.files()["deletion_vector"]
        table = Subject(after=self._state, vectors=len(vectors) - vectors.null_count)
        self._ask(table, Scope.METADATA)
        self._ask(Subject(after=self._state), Scope.COMMIT)
        for adds in _batched(self._suspects()):
            self._ask(Subject(after=self._state, adds=adds), Scope.COMMIT)

    def _suspects(self) -> Iterable[AddFile]:
        """The files that rules about the log can mind, found in columns: most tables have none."""
        import pyarrow.compute as pc

        view = self._snapshot.files()
        counted = pc.fill_null(pc.greater_equal(view["num_records"], 0), False)
        mask = pc.or_(pc.invert(counted), pc.is_valid(view["deletion_vector"]))
        paths = view["path"].filter(mask)
        return self._snapshot.live_files(paths.to_pylist()).values() if len(paths) else ()

    def judge_footers(self, executor: Executor, progress: Progress) -> None:
        """Every live file, some thousand at a time."""
        snapshot = self._snapshot
        total = snapshot.num_files
        found = file_footers(snapshot.store, snapshot.adds(), executor, snapshot.metadata)
        self._ask(Subject(after=self._state), Scope.FOOTER)
        for footers in _batched(found):
            self._ask(Subject(after=self._state, footers=footers), Scope.FOOTER)
            self._files += len(footers)
            progress("check", self._files, total)

    def _ask(self, subject: Subject, *scopes: Scope) -> None:
        report = evaluate_rules(subject, self._compat, profile=self._profile, scopes=scopes)
        self._rules.update(dict.fromkeys(report.rules))
        for violation in report.violations:
            kept = self._kept.setdefault(violation.rule, [])
            if len(kept) < _KEPT:
                kept.append(violation)
            else:
                self._omitted[violation.rule] = self._omitted.get(violation.rule, 0) + 1

    def report(self) -> Report:
        """All of it, by rule."""
        return Report(
            compat=self._compat.feature,
            table=self._snapshot.label,
            profile=self._profile,
            rules=tuple(self._rules),
            violations=tuple(v for rule in self._rules for v in self._kept.get(rule, ())),
            files=self._files,
            enabled=self._compat.is_enabled(self._snapshot.metadata),
            omitted=self._omitted,
        )


def _batched(items: Iterable[T]) -> Iterator[tuple[T, ...]]:
    rest = iter(items)
    return iter(lambda: tuple(islice(rest, _BATCH)), ())
