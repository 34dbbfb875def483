"""The history that judges a run: what was promised to whom, and what the table says.

Checked after every call that changed the store: versions without gaps, no commit replaced, every
operation in the log at most once, the rows of every version those that the operations believed to
make (each placed at its version), and every version that is to be kept readable by the shipped
reader with the same result. Checked at the end: what each caller was told, and that the rows fit
some serial order of the statements.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import permutations
from typing import TYPE_CHECKING, Any

import msgspec

from twinlake.errors import TwinlakeError
from twinlake.log import load_snapshot, read_checksum, verify_checksum
from twinlake.verify.code.execution import is_commit
from twinlake.verify.code.faces import judge_face, pointed_to
from twinlake.verify.code.folding import (
    Version,
    descriptor_of,
    files_of,
    fold,
    number_of,
    rows_at,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from twinlake.storage import MemoryStore
    from twinlake.verify.code.bench import Effect, Row, Rows
    from twinlake.verify.code.execution import Execution
    from twinlake.verify.code.workload import Workload

__all__ = ["Finding", "Judge"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A property that does not hold: a sentence, and the compared values by name."""

    property: str
    message: str
    fields: Mapping[str, Any] = field(default_factory=dict)


class Judge:
    """Judges runs of one workload, and remembers what it has judged before."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._start = workload.rows()
        self._first = len(fold(dict(workload.table()[0].snapshot()))) - 1
        self._judged: dict[Any, Finding | None] = {}
        self._read: dict[tuple[int, int], tuple[Finding, ...]] = {}

    def moment(self, run: Execution) -> Finding | None:
        """What is wrong with the table as it is now."""
        effects = {bench.tag: bench.effect for bench in run.benches if bench.effect is not None}
        key = (run.print, run.floor, *sorted(effects.items(), key=lambda pair: pair[0]))
        if key not in self._judged:
            found = next(self._moment(run, effects), None)
            self._judged[key] = found
        return self._judged[key]

    def _moment(self, run: Execution, effects: Mapping[str, Effect]) -> Iterator[Finding]:
        if run.replaced is not None:
            event = run.replaced
            yield Finding(
                "VersionsAreImmutable",
                f"{event.call.key} was written again by {run.actors[event.actor].name}",
                {"key": event.call.key},
            )
        view = run.view()
        stored = sorted(
            number_of(item.key) for item in view.list_from("_delta_log") if is_commit(item.key)
        )
        if stored and stored != list(range(stored[0], stored[-1] + 1)):
            yield Finding(
                "VersionsAreContiguous", f"the log holds versions {stored}", {"versions": stored}
            )
        try:
            versions = fold(run.bodies)
        except (msgspec.DecodeError, KeyError) as error:
            yield Finding("LogIsReadable", f"a commit cannot be read: {error}")
            return
        yield from _sound(versions)
        yield from self._present(view, versions)
        yield from self._rows(run, versions, effects)
        key = (run.log_print, run.floor)
        if key not in self._read:
            self._read[key] = tuple(_readable(view, versions, run.floor))
        yield from self._read[key]
        yield from (Finding(*one) for one in judge_face(view, versions, self._workload.keeps_from))

    def _rows(
        self, run: Execution, versions: Sequence[Version], effects: Mapping[str, Effect]
    ) -> Iterator[Finding]:
        """ConsistentRead: each version has the rows of the one before, changed as told."""
        expected: Rows = Counter(self._start)
        for version in versions[self._first :]:
            effect = effects.get(version.tag)
            if effect is not None:
                gone: Rows = Counter(effect.removed)
                if gone - expected:
                    yield _inconsistent(version, effect, "removed", gone - expected, expected)
                expected = expected - gone + Counter(effect.added)
            actual = rows_at(run.bodies, version)
            if actual != expected:
                yield Finding(
                    "ConsistentRead",
                    f"version {version.number}: expected {_shown(expected)}, read {_shown(actual)}",
                    {
                        "version": version.number,
                        "expected": _shown(expected),
                        "actual": _shown(actual),
                    },
                )

    def _present(self, view: MemoryStore, versions: Sequence[Version]) -> Iterator[Finding]:
        """Every data file of every version that is to be kept is there."""
        there = {item.key for item in view.list_from("")}
        for version in versions[self._workload.keeps_from :]:
            lost = sorted(key for key in files_of(version) if key not in there)
            if lost:
                yield Finding(
                    "FilesAreKept",
                    f"version {version.number} names files that are gone: {', '.join(lost)}",
                    {"version": version.number, "files": lost},
                )

    # At the end

    def end(self, run: Execution) -> Finding | None:
        """What is wrong with what the callers were told, once all is over."""
        return next(self._end(run), None)

    def _end(self, run: Execution) -> Iterator[Finding]:
        versions = fold(run.bodies)
        at: dict[str, list[int]] = {}
        for version in versions:
            at.setdefault(version.tag, []).append(version.number)
        for name, reply in run.replies().items():
            found = at.get(name, [])
            fields = {"actor": name, "reply": str(reply), "versions": found}
            match reply.kind:
                case "broken":
                    yield Finding("ErrorsAreOurs", f"{name}: {reply.text}", fields)
                case "committed" if found != [reply.version]:
                    yield Finding(
                        "CommittedMeansOnce",
                        f"{name} was told version {reply.version}; the log has it at {found}",
                        fields,
                    )
                case "already" if len(found) != 1:
                    yield Finding(
                        "CommittedMeansOnce",
                        f"{name} was told that it is there already; the log has it at {found}",
                        fields,
                    )
                case "refused" | "failed" | "nothing" if found:
                    yield Finding(
                        "FailedMeansNotAtAll",
                        f"{name} was told {reply.kind}; the log has it at {found}",
                        fields,
                    )
        yield from self._serial(run, versions)
        replies = run.replies().values()
        if run.met_faults():
            return
        pointer = pointed_to(run.view()) if self._workload.layout.twin else versions[-1].number
        if pointer != versions[-1].number:
            yield Finding(
                "FaceKeepsUp",
                f"all is done, but Iceberg is at version {pointer} of {versions[-1].number}",
                {"expected": versions[-1].number, "actual": pointer},
            )
        if self._workload.somebody_wins and not any(
            reply.kind in ("committed", "done", "nothing") for reply in replies
        ):
            yield Finding("SomebodyWins", "every operation was refused though nothing failed")

    def _serial(self, run: Execution, versions: Sequence[Version]) -> Iterator[Finding]:
        committed = [version.tag for version in versions if version.tag]
        final = rows_at(run.bodies, versions[-1])
        key = (tuple(committed), frozenset(final.items()))
        if key not in self._judged:
            self._judged[key] = self._order(committed, final)
        found = self._judged[key]
        if found is not None:
            yield found

    def _order(self, committed: Sequence[str], final: Rows) -> Finding | None:
        """Some order of the statements explains the rows; of a serializable table, the log's."""
        strict = self._workload.layout.serializable
        results = []
        for order in [tuple(committed)] if strict else permutations(committed):
            rows: Rows = Counter(self._start)
            for tag in order:
                rows = self._workload.statement(tag).apply(rows)
            if rows == final:
                return None
            results.append(f"{' then '.join(order)}: {_shown(rows)}")
        return Finding(
            "Serializable" if strict else "WriteSerializable",
            f"no serial order of {', '.join(committed)} gives {_shown(final)}",
            {"actual": _shown(final), "orders": results},
        )


# What the shipped reader says


def _sound(versions: Sequence[Version]) -> Iterator[Finding]:
    tags = Counter(version.tag for version in versions if version.tag)
    for tag, count in tags.items():
        if count > 1:
            found = [version.number for version in versions if version.tag == tag]
            yield Finding(
                "CommittedAtMostOnce",
                f"{tag} is in the log at versions {found}",
                {"actor": tag, "versions": found},
            )
    for version in versions:
        if version.twice:
            paths = ", ".join(version.twice)
            yield Finding(
                "FilesComeAndGoOnce",
                f"version {version.number} adds what is live or removes what is not: {paths}",
                {"version": version.number, "files": list(version.twice)},
            )
        every = [number for given in version.ids.values() for number in given]
        if len(set(every)) != len(every) or max(every, default=-1) > version.mark:
            yield Finding(
                "RowIdsAreUnique",
                f"version {version.number} has the row ids {sorted(every)} up to {version.mark}",
                {"version": version.number, "ids": sorted(every), "mark": version.mark},
            )
    first = versions[0]
    for version in versions:
        same = version.protocol == first.protocol and version.metadata == first.metadata
        if not same:
            yield Finding("TableStaysItself", f"version {version.number} has another metadata")


def _readable(view: MemoryStore, versions: Sequence[Version], floor: int) -> Iterator[Finding]:
    """Every version from the floor on can be rebuilt, from checkpoints or not, as the log says."""
    try:
        latest = load_snapshot(view)
        if latest.version != versions[-1].number:
            yield Finding(
                "NewestIsSeen",
                f"a reader finds version {latest.version}, the log ends at {versions[-1].number}",
            )
        for version in versions[floor:]:
            snapshot = load_snapshot(view, version.number)
            found = {add.path: add.key[1] for add in snapshot.adds()}
            expected = {
                path: None if vector is None else descriptor_of(vector).unique_id
                for path, vector in version.live.items()
            }
            if found != expected:
                yield Finding(
                    "ReplayEqualsLog",
                    f"version {version.number}: read {found}, the log says {expected}",
                    {"version": version.number, "expected": expected, "actual": found},
                )
            checksum = read_checksum(view, version.number)
            wrong = [] if checksum is None else verify_checksum(snapshot, checksum)
            if wrong:
                yield Finding("ChecksumsAreTrue", f"version {version.number}: {wrong[0]}")
    except TwinlakeError as error:
        yield Finding("VersionsCanBeRebuilt", error.what, {"code": str(error.code)})


def _inconsistent(
    version: Version, effect: Effect, verb: str, odd: Rows, expected: Rows
) -> Finding:
    return Finding(
        "ConsistentRead",
        f"version {version.number}: {version.tag} {verb} {_shown(odd)}, which is not there",
        {
            "version": version.number,
            "actor": version.tag,
            "read_version": effect.read_version,
            "expected": _shown(expected),
            verb: _shown(odd),
        },
    )


def _shown(rows: Rows) -> list[Row]:
    return sorted(rows.elements())
