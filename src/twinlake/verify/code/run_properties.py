"""The properties of a run: of the table after every call, and of the replies at the end.

Checked after every call that changed the store: versions without gaps, no commit replaced, every
operation in the log at most once, the rows of every version those that the operations
intended (each placed at its version), and every version that is to be kept readable by the shipped
reader with the same result. Checked at the end: the reply to each caller, and that the rows fit
some serial order of the statements.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, permutations
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.errors import TwinlakeError
from twinlake.log import load_snapshot, read_checksum, removes_from, verify_checksum
from twinlake.verify.code.execution import RunFailure, is_commit
from twinlake.verify.code.iceberg_metadata import check_iceberg_metadata, hinted_version
from twinlake.verify.code.log_replay import (
    LogVersion,
    descriptor_of,
    files_of,
    number_of,
    replay_log,
    rows_at,
)
from twinlake.verify.code.server import check_exchanges

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from twinlake.log import Snapshot
    from twinlake.storage import MemoryStore
    from twinlake.verify.code.execution import Execution
    from twinlake.verify.code.row_engine import Row, RowEffect, Rows
    from twinlake.verify.code.workload import Workload

__all__ = ["RunChecker"]

DOMAINS: Final = "domainMetadata"
NOTES: Final = "team.notes"
_WEEK: Final = 7 * 86_400_000
"""How long removals are remembered where a table says nothing else."""


class RunChecker:
    """Evaluates runs of one workload, and remembers what it has evaluated before."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._start = workload.rows()
        self._first = len(replay_log(dict(workload.table()[0].snapshot()))) - 1
        self._checked: dict[Any, RunFailure | None] = {}
        self._read: dict[tuple[int, int], tuple[RunFailure, ...]] = {}

    def check_state(self, run: Execution) -> RunFailure | None:
        """What is wrong with the table as it is now."""
        effects = {engine.tag: engine.effect for engine in run.engines if engine.effect is not None}
        key = (run.fingerprint, run.floor, *sorted(effects.items(), key=lambda pair: pair[0]))
        if key not in self._checked:
            found = next(self._check_state(run, effects), None)
            self._checked[key] = found
        return self._checked[key]

    def _check_state(
        self, run: Execution, effects: Mapping[str, RowEffect]
    ) -> Iterator[RunFailure]:
        if run.replaced is not None:
            event = run.replaced
            yield RunFailure(
                "VersionsAreImmutable",
                f"{event.call.key} was rewritten by {run.actors[event.actor].name}",
                {"key": event.call.key},
            )
        view = run.view()
        stored = sorted(
            number_of(item.key) for item in view.list_from("_delta_log") if is_commit(item.key)
        )
        if stored and stored != list(range(stored[0], stored[-1] + 1)):
            yield RunFailure(
                "VersionsAreContiguous", f"the log holds versions {stored}", {"versions": stored}
            )
        try:
            versions = replay_log(run.bodies)
        except (msgspec.DecodeError, KeyError) as error:
            yield RunFailure("LogIsReadable", f"a commit cannot be read: {error}")
            return
        yield from _check_versions(versions)
        yield from self._table(versions)
        yield from self._missing_files(view, versions)
        yield from self._rows(run, versions, effects)
        key = (run.log_fingerprint, run.floor)
        if key not in self._read:
            self._read[key] = tuple(_unreadable_versions(view, versions, run.floor))
        yield from self._read[key]
        yield from check_iceberg_metadata(view, versions, self._workload.retained_from)

    def _rows(
        self, run: Execution, versions: Sequence[LogVersion], effects: Mapping[str, RowEffect]
    ) -> Iterator[RunFailure]:
        """ConsistentRead: each version has the rows of the one before, changed as intended."""
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
                wanted, found = _sorted_rows(expected), _sorted_rows(actual)
                yield RunFailure(
                    "ConsistentRead",
                    f"version {version.number}: expected {wanted}, read {found}",
                    {"version": version.number, "expected": wanted, "actual": found},
                )

    def _table(self, versions: Sequence[LogVersion]) -> Iterator[RunFailure]:
        """Each version has the settings, features and notes of the statements before it."""
        intents = {name: getattr(one, "intent", None) for name, one in self._workload.actors}
        first = versions[self._first]
        # Only what a statement has set: others may change on the way what they keep of themselves.
        settings: dict[str, str] = {}
        wanted = set(first.protocol.get("writerFeatures", ()))
        notes = ""
        for version in versions[self._first :]:
            intent = intents.get(version.tag)
            if intent is not None:
                settings = {**({} if intent.restores else settings), **intent.settings}
                wanted |= intent.features
                notes += intent.note
            lost = {
                key: value
                for key, value in settings.items()
                if version.metadata.get("configuration", {}).get(key) != value
            }
            there = set(version.protocol.get("writerFeatures", ()))
            if not self._workload.changes_table and (
                version.protocol != first.protocol or version.metadata != first.metadata
            ):
                yield RunFailure(
                    "TableStaysItself", f"version {version.number} has another metadata"
                )
            if lost:
                yield RunFailure(
                    "ChangesAreKept",
                    f"version {version.number} has lost the properties {', '.join(sorted(lost))}",
                    {"version": version.number, "expected": lost},
                )
            if not self._workload.drops_features and wanted - there:
                yield RunFailure(
                    "ChangesAreKept",
                    f"version {version.number} has lost the features {sorted(wanted - there)}",
                    {"version": version.number, "expected": sorted(wanted - there)},
                )
            if set(notes) - set(version.domains.get(NOTES, "")):
                yield RunFailure(
                    "ChangesAreKept",
                    f"version {version.number} has lost a note of {notes!r}",
                    {"version": version.number, "expected": notes},
                )

    def _missing_files(
        self, view: MemoryStore, versions: Sequence[LogVersion]
    ) -> Iterator[RunFailure]:
        """Every data file of every version that is to be kept is there."""
        there = {item.key for item in view.list_from("")}
        for version in versions[self._workload.retained_from :]:
            lost = sorted(key for key in files_of(version) if key not in there)
            if lost:
                yield RunFailure(
                    "FilesAreKept",
                    f"version {version.number} names files that are gone: {', '.join(lost)}",
                    {"version": version.number, "files": lost},
                )

    def step(self, run: Execution, actor: int) -> RunFailure | None:
        """Let an actor make its call; what is wrong after it, where a reader could notice it."""
        return self.check_state(run) if run.step(actor).is_visible else None

    # At the end

    def check_end(self, run: Execution) -> RunFailure | None:
        """What is wrong with the replies to the callers, once every actor is done."""
        return next(self._check_end(run), None)

    def _check_end(self, run: Execution) -> Iterator[RunFailure]:
        versions = replay_log(run.bodies)
        at: dict[str, list[int]] = {}
        for version in versions:
            at.setdefault(version.tag, []).append(version.number)
        for name, reply in run.replies().items():
            found = at.get(self._workload.tag(name), [])
            fields = {"actor": name, "reply": str(reply), "versions": found}
            match reply.kind:
                case "broken":
                    yield RunFailure("ErrorsAreOurs", f"{name}: {reply.text}", fields)
                case "committed" if found != [reply.version]:
                    yield RunFailure(
                        "CommittedMeansOnce",
                        f"{name} got version {reply.version} as reply; the log has it at {found}",
                        fields,
                    )
                case "already" if not self._is_there(name, found, versions):
                    yield RunFailure(
                        "CommittedMeansOnce",
                        f"{name} got the reply that it is there already; the log has it at {found}",
                        fields,
                    )
                case "refused" | "failed" | "nothing" if found:
                    yield RunFailure(
                        "FailedMeansNotAtAll",
                        f"{name} got {reply.kind} as reply; the log has it at {found}",
                        fields,
                    )
        yield from self._serial(run, versions)
        yield from check_exchanges(run, versions)
        replies = run.replies().values()
        if run.met_faults():
            return
        pointer = hinted_version(run.view()) if self._workload.layout.twin else versions[-1].number
        if pointer != versions[-1].number:
            yield RunFailure(
                "IcebergIsInSync",
                f"all is done, but Iceberg is at version {pointer} of {versions[-1].number}",
                {"expected": versions[-1].number, "actual": pointer},
            )
        if self._workload.requires_commit and not any(
            reply.kind in ("committed", "done", "nothing") for reply in replies
        ):
            yield RunFailure("SomebodyWins", "every operation was refused though nothing failed")

    def _is_there(self, name: str, found: Sequence[int], versions: Sequence[LogVersion]) -> bool:
        """Whether the log has what somebody was told it has: once, by whoever it was."""
        if len(found) == 1:
            return True
        statement = dict(self._workload.actors).get(name)
        application = getattr(statement, "application", "") or getattr(
            getattr(statement, "statement", None), "application", ""
        )
        return application in versions[-1].applications

    def _serial(self, run: Execution, versions: Sequence[LogVersion]) -> Iterator[RunFailure]:
        committed = [version.tag for version in versions if version.tag]
        final = rows_at(run.bodies, versions[-1])
        key = (tuple(committed), frozenset(final.items()))
        if key not in self._checked:
            self._checked[key] = self._order(committed, final)
        found = self._checked[key]
        if found is not None:
            yield found

    def _order(self, committed: Sequence[str], final: Rows) -> RunFailure | None:
        """Some order of the statements explains the rows; of a serializable table, the log's."""
        strict = self._workload.layout.serializable
        results = []
        for order in [tuple(committed)] if strict else permutations(committed):
            rows: Rows = Counter(self._start)
            for tag in order:
                rows = self._workload.statement(tag).apply(rows)
            if rows == final:
                return None
            results.append(f"{' then '.join(order)}: {_sorted_rows(rows)}")
        return RunFailure(
            "Serializable" if strict else "WriteSerializable",
            f"no serial order of {', '.join(committed)} gives {_sorted_rows(final)}",
            {"actual": _sorted_rows(final), "orders": results},
        )


# What the shipped reader says


def _check_versions(versions: Sequence[LogVersion]) -> Iterator[RunFailure]:
    tags = Counter(version.tag for version in versions if version.tag)
    for tag, count in tags.items():
        if count > 1:
            found = [version.number for version in versions if version.tag == tag]
            yield RunFailure(
                "CommittedAtMostOnce",
                f"{tag} is in the log at versions {found}",
                {"actor": tag, "versions": found},
            )
    for version in versions:
        if version.twice:
            paths = ", ".join(version.twice)
            yield RunFailure(
                "FilesComeAndGoOnce",
                f"version {version.number} adds what is live or removes what is not: {paths}",
                {"version": version.number, "files": list(version.twice)},
            )
        every = [number for given in version.ids.values() for number in given]
        if len(set(every)) != len(every) or max(every, default=-1) > version.mark:
            yield RunFailure(
                "RowIdsAreUnique",
                f"version {version.number} has the row ids {sorted(every)} up to {version.mark}",
                {"version": version.number, "ids": sorted(every), "mark": version.mark},
            )
        if version.again:
            yield RunFailure(
                "ApplicationsCommitOnce",
                f"version {version.number} repeats what {', '.join(version.again)} wrote before",
                {"version": version.number, "applications": list(version.again)},
            )
        if version.domains and DOMAINS not in version.protocol.get("writerFeatures", ()):
            named = ", ".join(sorted(version.domains))
            if not set(version.domains) <= {"delta.rowTracking"}:
                yield RunFailure(
                    "FeaturesCoverTheTable",
                    f"version {version.number} has the domains {named} without their feature",
                    {"version": version.number, "domains": named},
                )
    for before, after in pairwise(versions):
        known = _type_changes(before.metadata)
        for changed in _type_changes(after.metadata):
            if changed not in known and changed != after.number:
                yield RunFailure(
                    "TypeChangesAreDated",
                    f"version {after.number} says that it changed a type in version {changed}",
                    {"version": after.number, "changed": changed},
                )
        if None not in (before.timestamp, after.timestamp) and (
            after.timestamp <= before.timestamp  # type: ignore[operator]
        ):
            yield RunFailure(
                "TimestampsIncrease",
                f"version {after.number} is of {after.timestamp}, the one before of"
                f" {before.timestamp}",
                {"version": after.number, "expected": before.timestamp, "actual": after.timestamp},
            )


def _unreadable_versions(
    view: MemoryStore, versions: Sequence[LogVersion], floor: int
) -> Iterator[RunFailure]:
    """Every version from the floor on can be rebuilt, from checkpoints or not, as the log says."""
    try:
        newest = max(version.written for version in versions)
        latest = load_snapshot(view)
        if latest.version != versions[-1].number:
            yield RunFailure(
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
                yield RunFailure(
                    "ReplayEqualsLog",
                    f"version {version.number}: read {found}, the log says {expected}",
                    {"version": version.number, "expected": expected, "actual": found},
                )
            checksum = read_checksum(view, version.number)
            yield from _differences(snapshot, version, newest)
            wrong = [] if checksum is None else verify_checksum(snapshot, checksum)
            if wrong:
                yield RunFailure("ChecksumsAreTrue", f"version {version.number}: {wrong[0]}")
    except TwinlakeError as error:
        yield RunFailure("VersionsCanBeRebuilt", error.what, {"code": str(error.code)})


def _inconsistent(
    version: LogVersion, effect: RowEffect, verb: str, odd: Rows, expected: Rows
) -> RunFailure:
    return RunFailure(
        "ConsistentRead",
        f"version {version.number}: {version.tag} {verb} {_sorted_rows(odd)}, which is not there",
        {
            "version": version.number,
            "actor": version.tag,
            "read_version": effect.read_version,
            "expected": _sorted_rows(expected),
            verb: _sorted_rows(odd),
        },
    )


def _sorted_rows(rows: Rows) -> list[Row]:
    return sorted(rows.elements())


def _differences(snapshot: Snapshot, version: LogVersion, now: int) -> Iterator[RunFailure]:
    """Where the shipped reader's table, perhaps from a checkpoint, is not the table of the log."""
    stones = {stone.path for stone in removes_from(snapshot.tombstones())}
    young = {path for path, at in version.removed.items() if at > now - _WEEK}
    marks = {add.path: add.base_row_id for add in snapshot.adds() if add.base_row_id is not None}
    for what, expected, actual in (
        ("properties", version.metadata.get("configuration", {}), snapshot.metadata.configuration),
        ("schema", version.metadata["schemaString"], snapshot.metadata.schema_string),
        ("protocol", version.protocol["minWriterVersion"], snapshot.protocol.min_writer_version),
        (
            "features",
            sorted(version.protocol.get("writerFeatures", ())),
            sorted(snapshot.protocol.writer_features or ()),
        ),
        (
            "applications",
            version.applications,
            {name: txn.version for name, txn in snapshot.set_transactions.items()},
        ),
        (
            "domains",
            version.domains,
            {name: domain.configuration for name, domain in snapshot.domains.items()},
        ),
        ("partitions", version.partitions, {a.path: a.partition_values for a in snapshot.adds()}),
        ("row ids", {path: ids.start for path, ids in version.ids.items()}, marks),
        ("forgotten removals", set(), young - stones),
    ):
        if expected != actual:
            yield RunFailure(
                "ReplayEqualsLog",
                f"version {version.number}, {what}: read {actual}, the log says {expected}",
                {"version": version.number, "expected": expected, "actual": actual},
            )


def _type_changes(metadata: Mapping[str, Any]) -> list[int]:
    """The versions that the schema says columns changed their types in."""
    columns = msgspec.json.decode(metadata["schemaString"])["fields"]
    return [
        change["tableVersion"]
        for column in columns
        for change in column["metadata"].get("delta.typeChanges", ())
        if "tableVersion" in change
    ]
