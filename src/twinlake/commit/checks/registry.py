"""What a commit must fulfil before it is written, as a registry.

Each check is a pure function of a draft and yields every violation it finds; all of them are
raised together. They run again after every rebase, because the winner may have changed the ground.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from twinlake.actions import AddCDCFile, AddFile, action_name, check_readable
from twinlake.commit.checks.compat import Evidence, compat_refusal
from twinlake.commit.checks.files import unparsable_partition_values, unparsable_statistics
from twinlake.commit.checks.schema import new_schema_violations, schema_change
from twinlake.commit.conflict.rule import named
from twinlake.commit.row_tracking import (
    assigns_row_ids,
    is_fresh,
    num_records,
)
from twinlake.compat import enabled_compats
from twinlake.errors import (
    Code,
    CorruptTable,
    TwinlakeError,
    UserError,
    how_to_add_feature,
    how_to_drop_feature,
    how_to_set,
    how_to_unset,
    how_to_upgrade,
    listed,
)
from twinlake.protocol import is_steering_key
from twinlake.schema import schema_change_violations
from twinlake.storage import check_new_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from twinlake.actions import FileKey, Metadata
    from twinlake.commit.change import Change
    from twinlake.log.paths.canonical import CanonicalPaths

__all__ = ["CHECKS", "CommitCheck", "Draft", "Violation", "run_checks"]

_SYSTEM_DOMAINS: Final = "delta."
_SYNC: Final = "twinlake.iceberg.sync"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A change about to be written, and what is live where it adds files."""

    change: Change
    live: Mapping[str, FileKey] = field(default_factory=dict)
    """Of the added paths, those that are in the table, with their keys."""
    spellings: Mapping[str, str] = field(default_factory=dict)
    """Of its paths, those whose files are live under another spelling, with that spelling."""
    paths: CanonicalPaths | None = None
    """What tells whether two paths name one file; None where their text does."""
    untracked_files: int = 0
    """Live files without row ids; counted when row tracking is switched on."""
    system_domains: frozenset[str] = frozenset()
    """System domains that this transaction may write."""
    evidence: Evidence = field(default_factory=Evidence)
    """The files that the table's promises about Iceberg are judged by."""
    keeps_files: bool = False
    """Whether the columns change under files that stay."""
    waived_rules: frozenset[str] = frozenset()
    """Rules about schema changes that the operation answers for."""
    trusted_files: bool = False
    """Whether our own writers made the added files that are not live."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
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
    run: Callable[[Draft], Iterable[Violation]]


def _twice(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _single(draft: Draft) -> Iterator[Violation]:
    summary = draft.change.summary
    for name, found in (("metaData", summary.metadatas), ("protocol", summary.protocols)):
        if len(found) > 1:
            yield Violation(message=f"{len(found)} {name} actions; a commit holds at most one")
    if twice := _twice(txn.app_id for txn in summary.transactions):
        yield Violation(message=f"more than one txn for {named(twice, 'application id')}")
    if twice := _twice(domain.domain for domain in summary.domains):
        yield Violation(message=f"more than one domainMetadata for {named(twice, 'domain')}")
    if summary.infos:
        yield Violation(message="a commitInfo action; the transaction writes its own")


def _first_version(draft: Draft) -> Iterator[Violation]:
    change = draft.change
    if change.version > 0:
        before, after = change.base.metadata.id, change.metadata.id
        # A table that takes the place of another is not the one it was.
        if before != after and not change.operation.is_replace:
            yield Violation(message=f"the table id changes from {before!r} to {after!r}")
        return
    for name, found in (
        ("metaData", change.summary.metadatas),
        ("protocol", change.summary.protocols),
    ):
        if not found:
            yield Violation(message=f"no {name} action; version 0 must hold one")


def _duplicate_files(draft: Draft) -> Iterator[Violation]:
    summary = draft.change.summary
    file_of = (lambda path: path) if draft.paths is None else draft.paths.file
    if twice := _twice(file_of(add.path) for add in summary.adds):
        yield Violation(
            message=f"more than one add of {named(twice, 'path')}",
            delta_class="DELTA_DUPLICATE_ACTIONS_FOUND",
        )
    if twice := _twice(file_of(remove.path) for remove in summary.removes):
        yield Violation(
            message=f"more than one remove of {named(twice, 'path')}",
            delta_class="DELTA_DUPLICATE_ACTIONS_FOUND",
        )
    if not summary.adds or not summary.removes:
        return
    removed = {(file_of(remove.path), remove.key[1]) for remove in summary.removes}
    if both := {a.path for a in summary.adds if (file_of(a.path), a.key[1]) in removed}:
        yield Violation(
            message=f"add and remove of the same {named(both, 'file')}",
            delta_class="DELTA_DUPLICATE_ACTIONS_FOUND",
        )


def _live_twice(draft: Draft) -> Iterator[Violation]:
    summary = draft.change.summary
    if draft.spellings:
        again = {
            f"{path} (as {live})"
            for path, live in draft.spellings.items()
            if path in summary.added_paths and live not in summary.removed_paths
        }
        if again:
            yield Violation(
                message=f"files that are in the table in another spelling: {named(again)}",
                fix="Name the file as the table does, or remove it in the same commit.",
            )
    if not draft.live:
        return
    removed = {remove.key for remove in summary.removes}
    doubled = {
        add.path
        for add in summary.adds
        if add.path in draft.live
        and draft.live[add.path] != add.key
        and draft.live[add.path] not in removed
    }
    if doubled:
        yield Violation(
            message=(
                f"{named(doubled, 'path')} would be in the table twice, with different "
                "deletion vectors"
            ),
            fix="Remove the file as it is now in the same commit.",
        )


def _append_only(draft: Draft) -> Iterator[Violation]:
    change = draft.change
    if not change.summary.removes:
        return
    if change.version == 0 or not change.base.metadata.flag("delta.appendOnly"):
        return
    lost = [remove.path for remove in change.summary.removes if remove.data_change]
    if lost:
        yield Violation(
            message=f"the table is append-only, but {named(lost, 'file')} would be removed",
            code=Code.APPEND_ONLY,
            delta_class="DELTA_CANNOT_MODIFY_APPEND_ONLY",
            fix=f"If rows may be deleted, run {how_to_set('delta.appendOnly', 'false')} first.",
        )


def _data_change(draft: Draft) -> Iterator[Violation]:
    change, summary = draft.change, draft.change.summary
    if wrong := [cdc.path for cdc in summary.changes if cdc.data_change]:
        yield Violation(message=f"dataChange is set on change data {named(wrong, 'file')}")
    if not change.operation.changes_data:
        changed = [add.path for add in summary.adds if add.data_change]
        changed += [remove.path for remove in summary.removes if remove.data_change]
        if changed:
            yield Violation(
                message=(
                    f"{change.operation.name} must not change rows, but dataChange is set on "
                    f"{named(changed, 'file')}"
                )
            )
    if not summary.adds or not summary.removes:
        return
    removed = {remove.path: remove.data_change for remove in summary.removes}
    differ = [a.path for a in summary.adds if removed.get(a.path, a.data_change) != a.data_change]
    if differ:
        yield Violation(message=f"add and remove disagree on dataChange of {named(differ, 'file')}")


def partition_keys(metadata: Metadata) -> frozenset[str]:
    """What every ``partitionValues`` must have as keys: physical names."""
    columns = metadata.partition_columns
    if not columns or metadata.get("delta.columnMapping.mode", "none").lower() == "none":
        return frozenset(columns)
    from twinlake.schema import physical_name

    fields = (metadata.schema.get(name) for name in columns)
    return frozenset(physical_name(field) for field in fields if field is not None)


def _partition_values(draft: Draft) -> Iterator[Violation]:
    change = draft.change
    if not change.summary.adds and not change.summary.changes:
        return
    expected = partition_keys(change.metadata)
    wrong: dict[str, list[str]] = {}
    files: tuple[AddFile | AddCDCFile, ...] = (*change.summary.adds, *change.summary.changes)
    for file in files:
        if file.partition_values.keys() != expected:
            missing = expected - file.partition_values.keys()
            extra = file.partition_values.keys() - expected
            parts = [f"no value for {named(missing)}"] if missing else []
            parts += [f"a value for {named(extra)}, no partition column"] if extra else []
            wrong.setdefault(" and ".join(parts), []).append(file.path)
    for text, paths in wrong.items():
        yield Violation(
            message=f"partitionValues have {text} on {named(paths, 'file')}",
            fix="Give every partition column a value, under its physical name.",
        )


def _statistics(draft: Draft) -> Iterator[Violation]:
    change = draft.change
    if not change.summary.adds:
        return
    assigning = assigns_row_ids(change.protocol, change.metadata)
    vectors: list[str] = []
    tracked: list[str] = []
    for add in change.summary.adds:
        if add.deletion_vector is not None:
            if num_records(add) is None:
                vectors.append(add.path)
        elif assigning and is_fresh(add, change.read_mark) and num_records(add) is None:
            tracked.append(add.path)
    if vectors:
        yield Violation(
            message=f"deletion vectors need numRecords in the stats of {named(vectors, 'file')}",
            delta_class="DELTA_DELETION_VECTOR_MISSING_NUM_RECORDS",
        )
    if tracked:
        yield Violation(
            message=f"row tracking needs numRecords in the statistics of {named(tracked, 'file')}",
            delta_class="DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS",
        )


def _feature_use(draft: Draft) -> Iterator[Violation]:
    change, summary = draft.change, draft.change.summary
    protocol = change.protocol
    vectors = [add.path for add in summary.adds if add.deletion_vector is not None]
    if vectors and not protocol.is_supported("deletionVectors"):
        yield Violation(
            message=f"deletionVectors is not supported, but {named(vectors, 'file')} has one",
            code=Code.FEATURE_MISMATCH,
            fix=f"Run {how_to_set('delta.enableDeletionVectors', 'true')} first.",
        )
    # Tombstones may go with the feature itself: dropping it has to take the domains along.
    names = [d.domain for d in summary.domains if not (d.removed and summary.protocol)]
    if names and not protocol.is_supported("domainMetadata"):
        yield Violation(
            message=f"domainMetadata is not supported, but there is {named(names, 'domain')}",
            code=Code.FEATURE_MISMATCH,
            fix=f"Run {how_to_add_feature('domainMetadata')} first.",
        )


def _domains(draft: Draft) -> Iterator[Violation]:
    foreign = [
        d.domain
        for d in draft.change.summary.domains
        if d.domain.startswith(_SYSTEM_DOMAINS) and d.domain not in draft.system_domains
    ]
    if foreign:
        yield Violation(
            message=f"{named(foreign, 'domain')} belong to the system",
            fix="Use a domain whose name does not start with `delta.`",
        )


def _stored_properties(draft: Draft) -> Iterator[Violation]:
    metadata = draft.change.summary.metadata
    if metadata is None:
        return
    if steering := [key for key in metadata.configuration if is_steering_key(key)]:
        yield Violation(
            message=f"{named(steering)} steer the protocol and are never stored",
            code=Code.PROPERTY_INVALID,
        )


def _features_kept(draft: Draft) -> Iterator[Violation]:
    change = draft.change
    if change.version == 0 or not change.summary.protocols:
        return
    gone = change.base.protocol.feature_names - change.protocol.feature_names
    if len(gone) > 1:
        yield Violation(
            message=f"{named(gone, 'feature')} would go; a commit drops at most one",
            code=Code.FEATURE_DROP,
            delta_class="DELTA_PROTOCOL_CHANGED",
            fix=f"Drop the features one at a time, each with {how_to_drop_feature('NAME')}.",
        )
    elif gone and not change.operation.is_feature_drop:
        yield Violation(
            message=f"{change.operation.name} would drop {named(gone, 'feature')}",
            code=Code.FEATURE_DROP,
            fix=f"Run {how_to_drop_feature('NAME')} for the feature.",
        )


def _row_tracking(draft: Draft) -> Iterator[Violation]:
    metadata = draft.change.summary.metadata
    if metadata is None or not metadata.flag("delta.enableRowTracking"):
        return
    if metadata.flag("delta.rowTrackingSuspended"):
        yield Violation(
            message="row tracking is enabled and suspended at once",
            code=Code.PROPERTY_INVALID,
            delta_class="DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
            fix=f"Run {how_to_unset('delta.rowTrackingSuspended')}.",
        )
    if draft.untracked_files:
        yield Violation(
            message=f"row tracking is enabled, but {draft.untracked_files} files have no row ids",
            code=Code.FEATURE_ENABLE,
            fix=f"Run {how_to_set('delta.enableRowTracking', 'true')}: it gives row ids to "
            "the existing files.",
        )


def _readable(draft: Draft) -> Iterator[Violation]:
    for action in draft.change.actions:
        try:
            check_readable(action)
            if isinstance(action, (AddFile, AddCDCFile)):
                check_new_path(action.path)
        except CorruptTable as error:
            yield Violation(message=f"{error.what} {error.why}", code=error.code, fix=error.fix)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            yield Violation(message=f"a malformed {action_name(action)} action ({error})")


def _promises(draft: Draft) -> Iterator[Violation]:
    error = compat_refusal(draft.change, draft.evidence)
    if error is not None:
        yield Violation(
            message=f"{error.what.rstrip('.')}: {error.why.rstrip('.')}",
            code=error.code,
            delta_class=error.delta_class,
            fix=error.fix,
            error=error,
        )


def _parsable_statistics(draft: Draft) -> Iterator[Violation]:
    if draft.trusted_files:
        return
    # What is in the table already came past us; committing it again makes nothing worse.
    new = (add for add in draft.change.summary.adds if add.path not in draft.live)
    if found := dict(unparsable_statistics(new)):
        yield Violation(
            message=f"no JSON object as statistics of {named(found, 'file')} "
            f"({next(iter(found.values()))})",
            fix="Give the files statistics as an object, or none.",
        )


def _parsable_partition_values(draft: Draft) -> Iterator[Violation]:
    summary = draft.change.summary
    if draft.trusted_files:
        return
    new: list[AddFile | AddCDCFile] = [add for add in summary.adds if add.path not in draft.live]
    new.extend(summary.changes)
    wrong: dict[tuple[str, str], dict[str, str]] = {}
    for name, kind, value, path in unparsable_partition_values(new, draft.change.metadata):
        wrong.setdefault((name, str(kind)), {})[path] = value
    for (name, shown), files in wrong.items():
        yield Violation(
            message=f"{next(iter(files.values()))[:100]!r} is no value of partition column {name} "
            f"of type {shown}, on {named(files, 'file')}",
            fix="Give every partition value as the Delta protocol spells its type.",
        )


def _schema(draft: Draft) -> Iterator[Violation]:
    for found in new_schema_violations(draft.change):
        yield Violation(
            message=str(found),
            code=Code.SCHEMA_INVALID,
            delta_class=found.delta_class,
            path=found.path,
            fix="Correct the columns named above.",
        )


def _schema_change(draft: Draft) -> Iterator[Violation]:
    change = schema_change(draft.change)
    if change is None or (draft.change.operation.is_replace and not draft.keeps_files):
        return
    for found in schema_change_violations(
        change, keeps_files=draft.keeps_files, waived=draft.waived_rules
    ):
        yield Violation(
            message=str(found),
            code=Code.SCHEMA_EVOLUTION,
            delta_class=found.rule.delta_class,
            path=found.path,
            rule=found.rule.id,
            fix=found.rule.fix,
        )


def _sync_setting(draft: Draft) -> Iterator[Violation]:
    """Making Iceberg metadata with every commit takes a table that has an Iceberg side."""
    change = draft.change
    if not _asks_for_sync(change.summary.metadata) or enabled_compats(change.metadata):
        return
    old = change.base.metadata if change.version > 0 else None
    if not _asks_for_sync(old):
        yield Violation(
            message=f"{_SYNC} does nothing on a table without an Iceberg compat feature",
            code=Code.PROPERTY_INVALID,
            fix=f"Run {how_to_upgrade('icebergCompatV2')} first.",
        )
    elif old is not None and enabled_compats(old):
        yield Violation(
            message=f"the table would have no Iceberg compat feature, and {_SYNC} is commit",
            code=Code.PROPERTY_INVALID,
            fix=f"Run {how_to_unset(_SYNC)} first.",
        )


def _asks_for_sync(metadata: Metadata | None) -> bool:
    return metadata is not None and metadata.get(_SYNC).strip().lower() == "commit"


CHECKS: Final[tuple[CommitCheck, ...]] = (
    CommitCheck(id="CMT-01", name="one of a kind", run=_single),
    CommitCheck(id="CMT-02", name="first version is complete", run=_first_version),
    CommitCheck(id="CMT-03", name="no file twice", run=_duplicate_files),
    CommitCheck(id="CMT-04", name="no path live twice", run=_live_twice),
    CommitCheck(id="CMT-05", name="append-only", run=_append_only),
    CommitCheck(id="CMT-06", name="dataChange is consistent", run=_data_change),
    CommitCheck(id="CMT-07", name="partition values are complete", run=_partition_values),
    CommitCheck(id="CMT-08", name="row counts where needed", run=_statistics),
    CommitCheck(id="CMT-09", name="features in use are supported", run=_feature_use),
    CommitCheck(id="CMT-10", name="system domains are left alone", run=_domains),
    CommitCheck(id="CMT-11", name="no steering property stored", run=_stored_properties),
    CommitCheck(id="CMT-12", name="features are kept", run=_features_kept),
    CommitCheck(id="CMT-13", name="row tracking is complete", run=_row_tracking),
    CommitCheck(id="CMT-14", name="every action can be read again", run=_readable),
    CommitCheck(id="CMT-15", name="promises about Iceberg are kept", run=_promises),
    CommitCheck(id="CMT-16", name="the schema is valid", run=_schema),
    CommitCheck(id="CMT-17", name="the columns still fit the files", run=_schema_change),
    CommitCheck(id="CMT-18", name="statistics can be parsed", run=_parsable_statistics),
    CommitCheck(id="CMT-19", name="partition values can be parsed", run=_parsable_partition_values),
    CommitCheck(id="CMT-20", name="Iceberg metadata can be made when asked", run=_sync_setting),
)
"""Every check, in the order its findings are reported."""


def run_checks(draft: Draft, checks: Iterable[CommitCheck] = CHECKS) -> None:
    """Raise one error that lists everything the checks found."""
    found = [(check.id, violation) for check in checks for violation in check.run(draft)]
    if found:
        raise _error(draft, found)


def _error(draft: Draft, found: list[tuple[str, Violation]]) -> TwinlakeError:
    if len(found) == 1 and found[0][1].error is not None:
        return found[0][1].error
    codes = {violation.code for _, violation in found}
    classes = [violation.delta_class for _, violation in found if violation.delta_class]
    fixes = list(dict.fromkeys(violation.fix for _, violation in found if violation.fix))
    return UserError(
        codes.pop() if len(codes) == 1 else Code.COMMIT_INVALID,
        f"{draft.change.operation.name} cannot be committed.",
        why=listed(violation.message for _, violation in found) + ".",
        fix=listed(fixes, " ") or "Correct the actions of the commit.",
        rule=found[0][0],
        delta_class=classes[0] if classes else None,
        fields={
            **{k: v for _, one in found if one.error for k, v in one.error.fields.items()},
            "violations": [
                {
                    "check": check,
                    "message": violation.message,
                    "code": str(violation.code),
                    **({"path": violation.path} if violation.path else {}),
                    **({"rule": violation.rule} if violation.rule else {}),
                }
                for check, violation in found
            ],
        },
    )
