"""The Iceberg promises of a table, asked of every commit.

A commit that makes a promise is judged in full: the table as it would be, the change, every live
file and its footer. A commit to a table that has made one is refused for what it would newly break:
by its metadata or protocol, or by the files it adds. So a table that somebody else broke is not
locked, and no commit of ours breaks it further.

What has to be read is gathered first (``Witness``); the judgement itself is a pure function.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from twinlake.commit.checks.footers import file_footers
from twinlake.compat import (
    UNIFORM_KEY,
    Profile,
    Report,
    Scope,
    State,
    Subject,
    enabled_compats,
    judge,
    makes_promises,
    profile_of,
    refusal,
    refuse_bare_uniform,
)
from twinlake.errors import CompatViolation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from twinlake.actions import AddFile, FileKey, Metadata, Protocol
    from twinlake.commit.change import Change
    from twinlake.compat import Compat, FileFooter, Violation
    from twinlake.log import Snapshot
    from twinlake.runtime import Executor
    from twinlake.storage import Store

__all__ = ["Evidence", "Promises", "Witness", "compat_refusal"]

_FILES: Final = (Scope.COMMIT, Scope.FOOTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promises:
    """What a commit does to the promises of the table.

    One that another stands on is judged with that one and not named twice.
    """

    made: tuple[Compat, ...] = ()
    kept: tuple[Compat, ...] = ()
    taken_back: tuple[Compat, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.made or self.kept or self.taken_back)

    @classmethod
    def of(cls, change: Change) -> Promises:
        """The promises of a change; for most tables none, after one look."""
        if not makes_promises(change.base.metadata, change.metadata):
            return _NONE
        before = () if change.version == 0 else enabled_compats(change.base.metadata)
        after = enabled_compats(change.metadata)
        bases = {compat.base for compat in after}
        asked = [compat for compat in after if compat.feature not in bases]
        # A table in the place of another has nothing that it could have inherited broken.
        old = () if change.operation.is_replace and change.summary.metadatas else before
        return cls(
            made=tuple(compat for compat in asked if compat not in old),
            kept=tuple(compat for compat in asked if compat in old),
            taken_back=tuple(compat for compat in before if compat not in after),
        )


_NONE: Final = Promises()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The files that the rules look at."""

    adds: tuple[AddFile, ...] = ()
    vectors: int = 0
    """How many of them hide rows by a deletion vector."""
    footers: tuple[FileFooter, ...] = ()


_NOTHING: Final = Evidence()


class Witness:
    """Looks at files for one transaction, at each of them once however often it is tried."""

    def __init__(self, store: Store, executor: Executor, *, trusted: bool) -> None:
        self._store = store
        self._executor = executor
        self._trusted = trusted
        self._footers: dict[str, FileFooter] = {}

    def evidence(
        self, change: Change, current: Snapshot | None, live: Mapping[str, FileKey]
    ) -> Evidence:
        """What is to be judged; ``live`` are the added paths that are in the table already."""
        promises = Promises.of(change)
        if not promises:
            return _NOTHING
        own = change.summary.adds
        written = change.summary.added_paths - live.keys() if self._trusted else frozenset()
        if promises.made:
            adds = tuple(_live_after(change, current))
            unknown = [add for add in adds if add.path not in written]
            vectors = sum(add.deletion_vector is not None for add in adds)
            return Evidence(
                adds=adds, vectors=vectors, footers=self._read(unknown, change.metadata)
            )
        if not promises.kept or not own:
            return _NOTHING
        # What is in the table already was judged when it came, or came past us.
        adds = tuple(a for a in own if a.deletion_vector is None or live.get(a.path) != a.key)
        vectors = sum(add.deletion_vector is not None for add in adds)
        unknown = [add for add in adds if add.path not in live and add.path not in written]
        return Evidence(adds=adds, vectors=vectors, footers=self._read(unknown, change.metadata))

    def _read(self, adds: Iterable[AddFile], metadata: Metadata) -> tuple[FileFooter, ...]:
        wanted = list(adds)
        new = [add for add in wanted if add.path not in self._footers]
        for footer in file_footers(self._store, new, self._executor, metadata):
            self._footers[footer.path] = footer
        # The log may say something else of a file than it did at the last try.
        return tuple(replace(self._footers[add.path], add=add) for add in wanted)


def _live_after(change: Change, current: Snapshot | None) -> Iterator[AddFile]:
    """The live files once the commit is done."""
    summary = change.summary
    if current is not None:
        gone = {remove.key for remove in summary.removes}
        for add in current.adds():
            if add.key not in gone and add.path not in summary.added_paths:
                yield add
    yield from summary.adds


def compat_refusal(change: Change, evidence: Evidence) -> CompatViolation | None:
    """Why the table's promises do not allow the commit, everything at once; None if they do."""
    bare = _bare_uniform(change)
    if bare is not None:
        return bare
    promises = Promises.of(change)
    if not promises:
        return None
    profile = profile_of(change.metadata)
    reports = [
        *(_made(compat, change, evidence, profile) for compat in promises.made),
        *(_kept(compat, change, evidence, profile) for compat in promises.kept),
        *(_taken_back(compat, change, profile) for compat in promises.taken_back),
    ]
    broken = [report for report in reports if not report.ok]
    return refusal(_merged(broken), str(change.operation.name)) if broken else None


def _made(compat: Compat, change: Change, evidence: Evidence, profile: Profile) -> Report:
    return judge(_subject(change, evidence), compat, profile=profile)


def _kept(compat: Compat, change: Change, evidence: Evidence, profile: Profile) -> Report:
    subject = _subject(change, evidence)
    # Without new metadata there is nothing to ask the schema, however wide it is.
    files = judge(subject, compat, profile=profile, scopes=_FILES)
    if not change.summary.metadatas and not change.summary.protocols:
        return files
    changes = judge(subject, compat, profile=profile, scopes=(Scope.CHANGE,))
    before = _standing(change.base.metadata, change.base.protocol, compat, profile)
    after = (
        _standing(change.metadata, change.protocol, compat, profile)
        if profile is Profile.SPEC
        # Other readings look at the version before as well.
        else judge(subject, compat, profile=profile, scopes=(Scope.METADATA,))
    )
    known = {_identity(violation) for violation in before.violations}
    new = tuple(v for v in after.violations if _identity(v) not in known)
    return _merged([replace(after, violations=new), changes, files])


def _taken_back(compat: Compat, change: Change, profile: Profile) -> Report:
    # Of a promise that is given up only the rules about that are asked.
    return judge(_subject(change, _NOTHING), compat, profile=profile)


@lru_cache(maxsize=4)
def _standing(metadata: Metadata, protocol: Protocol, compat: Compat, profile: Profile) -> Report:
    """How a version stands by itself; the version after it will ask again."""
    subject = Subject(after=State(metadata=metadata, protocol=protocol))
    return judge(subject, compat, profile=profile, scopes=(Scope.METADATA,))


def _subject(change: Change, evidence: Evidence) -> Subject:
    base = change.base
    return Subject(
        after=State(metadata=change.metadata, protocol=change.protocol),
        before=None
        if change.version == 0
        else State(metadata=base.metadata, protocol=base.protocol),
        replaces=change.operation.is_replace,
        adds=evidence.adds,
        vectors=evidence.vectors,
        footers=evidence.footers,
    )


def _identity(violation: Violation) -> tuple[str, str, str]:
    return violation.rule, violation.path, violation.found


def _merged(reports: list[Report]) -> Report:
    """Several reports as one; a promise or a rule asked twice is named once."""
    first = reports[0]
    if len(reports) == 1:
        return first
    return replace(
        first,
        compat=" and ".join(dict.fromkeys(report.compat for report in reports)),
        rules=tuple(dict.fromkeys(rule for report in reports for rule in report.rules)),
        violations=tuple(dict.fromkeys(v for report in reports for v in report.violations)),
        files=max(report.files for report in reports),
    )


def _bare_uniform(change: Change) -> CompatViolation | None:
    metadata = change.summary.metadata
    if metadata is None or UNIFORM_KEY not in metadata.configuration:
        return None
    try:
        refuse_bare_uniform(None if change.version == 0 else change.base.metadata, metadata)
    except CompatViolation as error:
        return error
    return None
