"""The rules of a table's compat features, evaluated for every commit.

A commit that enables a compat feature is checked in full: the table as it would be, the change,
every live file and its footer. A commit to a table with an enabled one is refused for what it newly
breaks: by its metadata or protocol, or by the files it adds. So a table that another writer broke
still accepts commits, and none of them breaks it further.

``CompatFileReader`` reads the files and footers first; the check itself is a pure function.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from twinlake.commit.checks.check import CheckFailure, CompatFiles
from twinlake.commit.checks.footers import file_footers
from twinlake.compat import (
    Profile,
    Report,
    Scope,
    State,
    Subject,
    enabled_compats,
    evaluate_rules,
    has_compat_keys,
    profile_of,
    refusal,
    require_compat_for_uniform,
)
from twinlake.errors import CompatViolation
from twinlake.protocol import keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from twinlake.actions import AddFile, FileKey, Metadata, Protocol
    from twinlake.commit.change import Change
    from twinlake.commit.checks.check import Draft
    from twinlake.compat import Compat, FileFooter, Violation
    from twinlake.log import Snapshot
    from twinlake.runtime import Executor
    from twinlake.storage import Store

__all__ = ["CompatChange", "CompatFileReader", "compat_refusal", "compat_rules"]

_FILES: Final = (Scope.COMMIT, Scope.FOOTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompatChange:
    """What a commit does to the compat features of the table.

    The base of an enabled writer feature is checked with the writer feature and not listed.
    """

    enabled: tuple[Compat, ...] = ()
    kept: tuple[Compat, ...] = ()
    disabled: tuple[Compat, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.enabled or self.kept or self.disabled)

    @classmethod
    def of(cls, change: Change) -> CompatChange:
        """The compat features of a change; most tables have none, which takes one look."""
        if not has_compat_keys(change.base.metadata, change.metadata):
            return _NONE
        before = () if change.version == 0 else enabled_compats(change.base.metadata)
        after = enabled_compats(change.metadata)
        bases = {compat.base for compat in after}
        asked = [compat for compat in after if compat.feature not in bases]
        # A table in the place of another has nothing that it could have inherited broken.
        old = () if change.operation.is_replace and change.summary.metadatas else before
        return cls(
            enabled=tuple(compat for compat in asked if compat not in old),
            kept=tuple(compat for compat in asked if compat in old),
            disabled=tuple(compat for compat in before if compat not in after),
        )


_NONE: Final = CompatChange()


_NOTHING: Final = CompatFiles()


class CompatFileReader:
    """Reads the footers for one transaction, each once in all attempts."""

    def __init__(self, store: Store, executor: Executor, *, trusted: bool) -> None:
        self._store = store
        self._executor = executor
        self._trusted = trusted
        self._footers: dict[str, FileFooter] = {}

    def read(
        self, change: Change, current: Snapshot | None, live: Mapping[str, FileKey]
    ) -> CompatFiles:
        """The files to check; ``live`` are the added paths that are in the table already."""
        features = CompatChange.of(change)
        if not features:
            return _NOTHING
        own = change.summary.adds
        written = change.summary.added_paths - live.keys() if self._trusted else frozenset()
        if features.enabled:
            adds = tuple(_live_after(change, current))
            unknown = [add for add in adds if add.path not in written]
            vectors = sum(add.deletion_vector is not None for add in adds)
            return CompatFiles(
                adds=adds, vectors=vectors, footers=self._read(unknown, change.metadata)
            )
        if not features.kept or not own:
            return _NOTHING
        # A live file was checked when it was added, or another writer added it.
        adds = tuple(a for a in own if a.deletion_vector is None or live.get(a.path) != a.key)
        vectors = sum(add.deletion_vector is not None for add in adds)
        unknown = [add for add in adds if add.path not in live and add.path not in written]
        return CompatFiles(adds=adds, vectors=vectors, footers=self._read(unknown, change.metadata))

    def _read(self, adds: Iterable[AddFile], metadata: Metadata) -> tuple[FileFooter, ...]:
        wanted = list(adds)
        new = [add for add in wanted if add.path not in self._footers]
        for footer in file_footers(self._store, new, self._executor, metadata):
            self._footers[footer.path] = footer
        # A winner may have changed the add action of a file since the last attempt.
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


def compat_rules(draft: Draft) -> Iterator[CheckFailure]:
    """The rules of the table's compat features hold."""
    error = compat_refusal(draft.change, draft.compat_files)
    if error is None:
        return
    broken = {violation["rule"] for violation in error.report.get("violations", ())}
    # A refusal that names no rule, such as UniForm without its compat feature, cannot be waived.
    if not broken or broken - draft.waived_rules:
        yield CheckFailure(
            message=f"{error.what.rstrip('.')}: {error.why.rstrip('.')}",
            code=error.code,
            delta_class=error.delta_class,
            fix=error.fix,
            error=error,
        )


def compat_refusal(change: Change, files: CompatFiles) -> CompatViolation | None:
    """All rules of the table's compat features that the commit breaks; None if it breaks none."""
    bare = _bare_uniform(change)
    if bare is not None:
        return bare
    features = CompatChange.of(change)
    if not features:
        return None
    profile = profile_of(change.metadata)
    reports = [
        *(_enabled(compat, change, files, profile) for compat in features.enabled),
        *(_kept(compat, change, files, profile) for compat in features.kept),
        *(_disabled(compat, change, profile) for compat in features.disabled),
    ]
    broken = [report for report in reports if not report.ok]
    return refusal(_merged(broken), str(change.operation.name)) if broken else None


def _enabled(compat: Compat, change: Change, files: CompatFiles, profile: Profile) -> Report:
    return evaluate_rules(_subject(change, files), compat, profile=profile)


def _kept(compat: Compat, change: Change, files: CompatFiles, profile: Profile) -> Report:
    subject = _subject(change, files)
    # Without new metadata the schema is not evaluated, however wide it is.
    added = evaluate_rules(subject, compat, profile=profile, scopes=_FILES)
    if not change.summary.metadatas and not change.summary.protocols:
        return added
    changes = evaluate_rules(subject, compat, profile=profile, scopes=(Scope.CHANGE,))
    before = _standing(change.base.metadata, change.base.protocol, compat, profile)
    after = (
        _standing(change.metadata, change.protocol, compat, profile)
        if profile is Profile.SPEC
        # Other readings look at the version before as well.
        else evaluate_rules(subject, compat, profile=profile, scopes=(Scope.METADATA,))
    )
    known = {_identity(violation) for violation in before.violations}
    new = tuple(v for v in after.violations if _identity(v) not in known)
    return _merged([replace(after, violations=new), changes, added])


def _disabled(compat: Compat, change: Change, profile: Profile) -> Report:
    # The rules about disabling it are the only ones that are evaluated.
    return evaluate_rules(_subject(change, _NOTHING), compat, profile=profile)


@lru_cache(maxsize=4)
def _standing(metadata: Metadata, protocol: Protocol, compat: Compat, profile: Profile) -> Report:
    """The report on one version by itself; cached, as the next commit needs it again."""
    subject = Subject(after=State(metadata=metadata, protocol=protocol))
    return evaluate_rules(subject, compat, profile=profile, scopes=(Scope.METADATA,))


def _subject(change: Change, files: CompatFiles) -> Subject:
    base = change.base
    return Subject(
        after=State(metadata=change.metadata, protocol=change.protocol),
        before=None
        if change.version == 0
        else State(metadata=base.metadata, protocol=base.protocol),
        replaces=change.operation.is_replace,
        adds=files.adds,
        vectors=files.vectors,
        footers=files.footers,
    )


def _identity(violation: Violation) -> tuple[str, str, str]:
    return violation.rule, violation.path, violation.found


def _merged(reports: list[Report]) -> Report:
    """Several reports as one; a compat feature or a rule in several is named once."""
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
    if metadata is None or keys.ENABLED_FORMATS not in metadata.configuration:
        return None
    try:
        require_compat_for_uniform(None if change.version == 0 else change.base.metadata, metadata)
    except CompatViolation as error:
        return error
    return None
