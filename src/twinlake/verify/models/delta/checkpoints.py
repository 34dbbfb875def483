"""Checkpoints and the clean-up of the log: can every retained version still be rebuilt?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from twinlake.verify.checker import Failure, InitialState, Next, Role, action, always
from twinlake.verify.models.mutation import MutantModel

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

__all__ = ["Checkpoints"]

#: Mutants: the clean-up trusts a checkpoint of which parts are missing; it deletes up to the
#: newest checkpoint although an older version is retained; a reader uses an incomplete one, or
#: the one that the hint names without listing the log; a checkpoint has no tombstones.
CLEANS_TOO_EARLY, CLEANS_TO_NEWEST = "cleans-too-early", "cleans-to-newest"
ACCEPTS_INCOMPLETE, TRUSTS_HINT = "accepts-incomplete", "trusts-hint"
DROPS_TOMBSTONES = "drops-tombstones"

IDLE, PARTS, HINT, CLEANS = "IDLE", "PARTS", "HINT", "CLEANS"


class _Checkpoint(NamedTuple):
    """A checkpoint and how many of its parts have been written."""

    version: int
    parts: int


class _Actor(NamedTuple):
    """A committer, a checkpointer or a cleaner."""

    state: str = IDLE
    version: int = -1
    doomed: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Checkpoints(MutantModel):
    """A committer, one who writes checkpoints part by part, and one who cleans the log up.

    The newest ``retained`` versions must stay readable. The hint to the last checkpoint may be
    missing or old: readers list the log in any case.
    """

    title: ClassVar[str] = "Delta checkpoints"
    mutants: ClassVar[tuple[str | None, ...]] = (
        None,
        CLEANS_TOO_EARLY,
        CLEANS_TO_NEWEST,
        ACCEPTS_INCOMPLETE,
        TRUSTS_HINT,
        DROPS_TOMBSTONES,
    )
    only_grows: ClassVar[tuple[str, ...]] = ("committed",)

    max_versions: int = 4
    parts: int = 2
    retained: int = 2

    @property
    def roles(self) -> tuple[Role, ...]:
        """One of each."""
        return tuple(Role(name=name) for name in ("Committer", "Checkpointer", "Cleaner"))

    def initial(self) -> Iterator[InitialState]:
        """Version 0, and its entry."""
        yield InitialState(
            {"committed": (0,), "entries": frozenset((0,)), "checkpoints": (), "hint": -1},
            (_Actor(),) * 3,
        )

    @action(role="Committer", at=IDLE, writes=("committed", "entries"))
    def commit(
        self, _actor: _Actor, committed: tuple[int], entries: frozenset[int]
    ) -> Iterator[Next]:
        """Put the next entry."""
        version = committed[0] + 1
        if version <= self.max_versions:
            after: dict[str, Hashable] = {"committed": (version,)}
            after["entries"] = entries | {version}
            yield Next(_Actor(), after, {"version": version})

    @action(role="Checkpointer", at=IDLE)
    def begin_checkpoint(
        self, _actor: _Actor, committed: tuple[int], checkpoints: tuple[_Checkpoint, ...]
    ) -> Iterator[Next]:
        """Choose the newest version, if it has no checkpoint yet."""
        if all(one.version < committed[0] for one in checkpoints):
            yield Next(_Actor(PARTS, committed[0]), arguments={"version": committed[0]})

    @action(role="Checkpointer", at=PARTS, writes=("checkpoints",))
    def write_part(self, actor: _Actor, checkpoints: tuple[_Checkpoint, ...]) -> Iterator[Next]:
        """Write one more part; a part is whole, but the parts do not come together."""
        done = next((one.parts for one in checkpoints if one.version == actor.version), 0)
        others = [one for one in checkpoints if one.version != actor.version]
        after = tuple(sorted([*others, _Checkpoint(actor.version, done + 1)]))
        state = HINT if done + 1 == self.parts else PARTS
        yield Next(actor._replace(state=state), {"checkpoints": after}, {"part": done + 1})

    @action(role="Checkpointer", at=HINT, writes=("hint",))
    def write_hint(self, actor: _Actor) -> Iterator[Next]:
        """Point to the checkpoint; a reader may well look before this."""
        yield Next(_Actor(), {"hint": actor.version}, {"version": actor.version})

    @action(role="Cleaner", at=IDLE)
    def plan_cleanup(
        self,
        _actor: _Actor,
        committed: tuple[int],
        entries: frozenset[int],
        checkpoints: tuple[_Checkpoint, ...],
    ) -> Iterator[Next]:
        """Find entries that no retained version needs: those up to a checkpoint before it."""
        oldest = committed[0] if self.mutant == CLEANS_TO_NEWEST else self._oldest(committed[0])
        usable = [
            one.version
            for one in checkpoints
            if one.version <= oldest
            and (one.parts == self.parts or self.mutant == CLEANS_TOO_EARLY)
        ]
        doomed = sorted(version for version in entries if usable and version <= max(usable))
        if doomed:
            yield Next(_Actor(CLEANS, doomed=tuple(doomed)), arguments={"entries": doomed})

    @action(role="Cleaner", at=CLEANS, writes=("entries",))
    def delete_entry(self, actor: _Actor, entries: frozenset[int]) -> Iterator[Next]:
        """Delete one entry."""
        version, *rest = actor.doomed
        after = _Actor(CLEANS, doomed=tuple(rest)) if rest else _Actor()
        yield Next(after, {"entries": entries - {version}}, {"version": version})

    def _oldest(self, newest: int) -> int:
        return max(0, newest - self.retained + 1)

    def _base(self, version: int, checkpoints: tuple[_Checkpoint, ...], hint: int) -> int:
        """The checkpoint from which a reader rebuilds a version; -1 for none."""
        if self.mutant == TRUSTS_HINT:
            return hint if hint <= version else -1
        usable = (
            one.version
            for one in checkpoints
            if one.version <= version
            and (one.parts == self.parts or self.mutant == ACCEPTS_INCOMPLETE)
        )
        return max(usable, default=-1)

    @always
    def retained_versions_can_be_rebuilt(
        self,
        committed: tuple[int],
        entries: frozenset[int],
        checkpoints: tuple[_Checkpoint, ...],
        hint: int,
    ) -> Failure | None:
        """Every retained version is a checkpoint and the entries after it, without a gap."""
        for version in range(self._oldest(committed[0]), committed[0] + 1):
            base = self._base(version, checkpoints, hint)
            gap = [one for one in range(base + 1, version + 1) if one not in entries]
            if gap:
                return Failure(
                    f"version {version} needs entry {gap[0]}, which is gone",
                    {"version": version, "checkpoint": base, "missing": gap},
                )
            torn = [one for one in checkpoints if one.version == base and one.parts < self.parts]
            if torn:
                return Failure(
                    f"version {version} is read from {torn[0].parts} of {self.parts} parts",
                    {"version": version, "checkpoint": base},
                )
        return None

    @always
    def tombstones_of_retained_versions_survive(
        self, committed: tuple[int], checkpoints: tuple[_Checkpoint, ...], hint: int
    ) -> Failure | None:
        """A vacuum of the newest version knows when each file of a retained one was removed.

        Version ``v`` removes the file of the version before it. Files without a tombstone look
        as if nobody had ever needed them.
        """
        newest = committed[0]
        base = self._base(newest, checkpoints, hint)
        kept = 0 if self.mutant == DROPS_TOMBSTONES else self.retained
        known = {version for version in range(newest + 1) if version > base}
        known |= {version for version in range(base + 1) if version > base - kept}
        lost = [one for one in range(self._oldest(newest) + 1, newest + 1) if one not in known]
        if not lost:
            return None
        return Failure(
            f"the tombstone of version {lost[0]} is not in the checkpoint of version {base}",
            {"checkpoint": base, "missing": lost},
        )
