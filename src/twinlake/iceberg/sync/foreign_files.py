"""Data files that other engines committed, judged by their footers before they are published.

A commit of twinlake is held to the rules about footers as it is made. One of another engine is
not: what is wrong with its files would be wrong rows of the Iceberg table. So their footers are
read when their commit is converted, and a file that Iceberg would misread stops the conversion.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from twinlake.actions import AddFile, Metadata
from twinlake.commit import file_footers
from twinlake.compat import (
    Profile,
    State,
    Trait,
    divergent_files,
    enabled_compats,
    profile_of,
    rules_with,
)
from twinlake.errors import Code, CompatViolation, listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from twinlake.actions import Action, CommitInfo, Protocol
    from twinlake.compat import Violation
    from twinlake.log import CommitTimes
    from twinlake.runtime import Executor
    from twinlake.storage import Store

__all__ = ["ForeignFiles", "is_judged", "unjudged_paths"]

_OWN: Final = "twinlake/"
#: Operations by which twinlake enables a compat feature; under others it need not be looked for.
_ENABLING: Final = ("CREATE", "REPLACE", "SET TBLPROPERTIES", "REORG TABLE UPGRADE", "CONVERT")
_BATCH: Final = 2048
_NAMED: Final = 3


def is_judged(info: CommitInfo | None, metadata: Metadata) -> bool:
    """Whether the files of a commit were held to all rules about footers as it was made.

    Twinlake holds its own to them, unless the table asks for the reading of another implementation.
    """
    return _is_own(info) and profile_of(metadata) is Profile.SPEC


def _is_own(info: CommitInfo | None) -> bool:
    return info is not None and (info.engine_info or "").startswith(_OWN)


def unjudged_paths(
    version: int,
    times: CommitTimes,
    read: Callable[[int], Sequence[Action]],
    metadata_at: Callable[[int], Metadata],
) -> frozenset[str] | None:
    """The paths of files that came past twinlake, among those live at a version; None: any of them.

    It goes back to where twinlake enabled a compat feature, as all live files were judged there.
    Where the log does not go back that far, a table with a writer feature has no others: the
    protocol keeps out the engines that do not know the feature.
    """
    metadata = metadata_at(version)
    if profile_of(metadata) is not Profile.SPEC:
        return None
    found: set[str] = set()
    first = times.versions.start
    for number in range(version, first - 1, -1):
        info = times.info(number)
        own = _is_own(info)
        if own and info is not None and not (info.operation or "").startswith(_ENABLING):
            continue
        actions = read(number)
        if not own:
            found.update(action.path for action in actions if isinstance(action, AddFile))
        after = next((action for action in actions if isinstance(action, Metadata)), None)
        if after is None or number == first:
            continue
        if set(enabled_compats(after)) - set(enabled_compats(metadata_at(number - 1))):
            return frozenset(found) if own else None
    strict = any(compat.is_writer for compat in enabled_compats(metadata))
    return frozenset(found) if strict or not first else None


class ForeignFiles:
    """Judges files of other engines, each once for as long as the conversion takes."""

    def __init__(self, store: Store, protocol: Protocol, executor: Executor) -> None:
        self._store = store
        self._protocol = protocol
        self._executor = executor
        self._sound: set[str] = set()

    def judge(self, adds: Iterable[AddFile], metadata: Metadata, version: int) -> None:
        """Read the footers of files of a version.

        Raises:
            CompatViolation: Iceberg readers would return other rows of some files; it names them.
        """
        state = State(metadata=metadata, protocol=self._protocol)
        new = (add for add in adds if add.path not in self._sound)
        footers = file_footers(self._store, new, self._executor, metadata)
        broken: dict[str, Violation] = {}
        while batch := tuple(islice(footers, _BATCH)):
            broken.update((footer.path, wrong) for footer, wrong in divergent_files(batch, state))
            self._sound.update(footer.path for footer in batch if footer.path not in broken)
        if broken:
            raise self._refusal(broken, metadata, version)

    def _refusal(
        self, broken: dict[str, Violation], metadata: Metadata, version: int
    ) -> CompatViolation:
        first = next(iter(broken.values()))
        named = [f"{one.rule}: {one.message}" for one in islice(broken.values(), _NAMED)]
        if len(broken) > _NAMED:
            named.append(f"and {len(broken) - _NAMED} more files")
        return CompatViolation(
            Code.COMPAT,
            f"Iceberg metadata stops before version {version}: {first.message}.",
            why=listed(named) + ".",
            fix=" ".join(dict.fromkeys(self._fix(one, metadata) for one in broken.values())),
            rule=first.rule,
            delta_class=first.delta_class,
            fields={"path": next(iter(broken)), "paths": list(broken), "version": version},
        )

    def _fix(self, violation: Violation, metadata: Metadata) -> str:
        if violation.rule in rules_with(Trait.UNREADABLE):
            return violation.fix
        feature = enabled_compats(metadata)[0].feature
        return (
            f"Run `twinlake upgrade {self._store.url} --to {feature} --yes` to write the files "
            "again that break a rule."
        )
