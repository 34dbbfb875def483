"""The conflict rules: when a transaction that lost a version must give up, and when it may follow.

The rules are data, in the order of Delta's checks. Each is a pure function of our change and one
winning commit and answers with nothing, a ``Clash`` or a ``Rebase``. Rules see the table as it was
before the winner; what they take over from the winner counts once all of them have passed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.actions import AddFile, DomainMetadata, Metadata
from twinlake.commit.conflict.metadata_change import metadata_obstacles
from twinlake.commit.conflict.rule import (
    Clash,
    ClashKind,
    ConflictRule,
    Context,
    Rebase,
    Verdict,
    named,
)
from twinlake.commit.isolation import IsolationLevel
from twinlake.commit.operation import OperationName
from twinlake.commit.row_tracking import ROW_TRACKING_DOMAIN, mark_of
from twinlake.schema import TYPE_CHANGES_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from twinlake.commit.change import Change
    from twinlake.commit.summary import Winner
    from twinlake.errors import ConflictError

__all__ = ["RULES", "Conflicting", "Rebased", "check_all_conflicts", "check_conflicts"]


def _protocol(ours: Change, winner: Winner, ctx: Context) -> Verdict:
    theirs = winner.summary.protocol
    if theirs is None:
        return None
    blocked = ctx.unsupported(theirs)
    if blocked is not None:
        return Clash(
            kind=ClashKind.PROTOCOL,
            why=f"This client cannot follow: {blocked}",
            overlap=(str(theirs),),
            fix="Upgrade twinlake, or drop the feature with the client that added it.",
        )
    if ours.summary.protocols:
        return Clash(
            kind=ClashKind.PROTOCOL,
            why=f"Both change it: the winner to ({theirs}), this operation to ({ours.protocol}).",
            overlap=(str(theirs),),
        )
    before, after = ours.base.protocol.feature_names, theirs.feature_names
    if gone := before - after:
        return Clash(
            kind=ClashKind.PROTOCOL,
            why=f"It dropped {named(gone, 'feature')}.",
            overlap=tuple(sorted(gone)),
        )
    exclusive = {name for name in after - before if not ctx.is_concurrent(name)}
    if exclusive:
        return Clash(
            kind=ClashKind.PROTOCOL,
            why=f"It added {named(exclusive, 'feature')}, which running operations must know of.",
            overlap=tuple(sorted(exclusive)),
        )
    return Rebase(note=f"adopted protocol ({theirs})", base={"protocol": theirs})


def _feature_drop(ours: Change, winner: Winner, ctx: Context) -> Verdict:
    if not ours.operation.is_feature_drop:
        return None
    if ctx.revalidate is not None:
        why = ctx.revalidate(ours, winner)
    else:
        # Nobody can look for new traces of the feature, so only commits without any may win.
        summary = winner.summary
        touched = summary.has_files or summary.domains or summary.metadatas or summary.protocols
        why = "It may have left new traces of the feature." if touched else None
    if why is not None:
        return Clash(
            kind=ClashKind.FEATURE_DROP,
            why=why,
            fix="Run the same drop again on the newer version.",
        )
    return None


def _metadata(ours: Change, winner: Winner, _ctx: Context) -> Verdict:
    theirs = winner.summary.metadata
    if theirs is None:
        return None
    obstacles, watermarks = metadata_obstacles(ours.base.metadata, theirs, ours.base.protocol)
    if ours.summary.metadatas:
        why = "This operation changes it as well."
        if obstacles:
            why = f"{why} The winner: {named(obstacles)}."
        return Clash(kind=ClashKind.METADATA, why=why, overlap=tuple(obstacles))
    if obstacles:
        return Clash(
            kind=ClashKind.METADATA,
            why=f"This operation was planned without these changes: {named(obstacles)}.",
            overlap=tuple(obstacles),
        )
    note = "adopted identity watermarks" if watermarks else "adopted metadata"
    return Rebase(note=note, base={"metadata": theirs})


def _domains(ours: Change, winner: Winner, _ctx: Context) -> Verdict:
    theirs = {d.domain: d for d in winner.summary.domains if d.domain != ROW_TRACKING_DOMAIN}
    if not theirs:
        return None
    written = {d.domain for d in ours.summary.domains}
    both = theirs.keys() & (written | ours.reads.domains)
    if both:
        return Clash(
            kind=ClashKind.DOMAIN,
            why=f"Both depend on {named(both, 'domain')}.",
            overlap=tuple(sorted(both)),
        )
    appeared = [d for d in theirs.values() if not d.removed]
    if not ours.operation.is_replace or not appeared:
        return None
    # The table that is replaced must not leave configuration behind for the new one.
    tombstones = [
        DomainMetadata(domain=d.domain, configuration=d.configuration, removed=True)
        for d in appeared
    ]
    return Rebase(
        note=f"removed {named([d.domain for d in appeared], 'domain')}",
        actions=(*ours.actions, *tombstones),
    )


def _applications(ours: Change, winner: Winner, _ctx: Context) -> Verdict:
    theirs = {txn.app_id: txn.version for txn in winner.summary.transactions}
    # Writing for an application depends on what it wrote before, whether one looked or not.
    mine = ours.reads.app_ids | {txn.app_id for txn in ours.summary.transactions}
    both = theirs.keys() & mine
    if not both:
        return None
    stated = [f"{app_id} (version {theirs[app_id]})" for app_id in sorted(both)]
    return Clash(
        kind=ClashKind.APPLICATION,
        why=f"Both depend on {named(stated, 'application id')}.",
        overlap=tuple(sorted(both)),
        fix="Read the latest version of the application id: its data may be committed already.",
    )


def _row_tracking(ours: Change, winner: Winner, _ctx: Context) -> Verdict:
    base: dict[str, Any] = {}
    notes = []
    domain = next((d for d in winner.summary.domains if d.domain == ROW_TRACKING_DOMAIN), None)
    if domain is not None:
        base["row_id_mark"] = mark_of([domain])
        notes.append(f"row ids start after {base['row_id_mark']}")
    if not ours.operation.is_backfill:
        return Rebase(note=notes[0], base=base) if notes else None
    touched = winner.summary.added_paths | winner.summary.removed_paths
    mine = touched & (ours.summary.added_paths | ours.reads.files)
    if mine:
        # The winner gave those files their ids, or removed them: nothing is left to fill in.
        kept = tuple(a for a in ours.actions if not (isinstance(a, AddFile) and a.path in touched))
        notes.append(f"left out {named(mine, 'file')}")
        reads = ours.reads.without_files(touched)
        return Rebase(note="; ".join(notes), base=base, actions=kept, reads=reads)
    return Rebase(note=notes[0], base=base) if notes else None


def _type_widening(ours: Change, winner: Winner, _ctx: Context) -> Verdict:
    metadata = ours.summary.metadata
    if metadata is None or '"tableVersion"' not in metadata.schema_string:
        return None
    parsed = msgspec.json.decode(metadata.schema_string)
    if not _move_type_changes(parsed, winner.version, winner.version + 1):
        return None
    moved = replace(metadata, schema_string=msgspec.json.encode(parsed).decode())
    return Rebase(
        note=f"type changes recorded for version {winner.version + 1}",
        actions=tuple(moved if isinstance(a, Metadata) else a for a in ours.actions),
    )


def _move_type_changes(node: Any, old: int, new: int) -> bool:
    """Early previews recorded the table version of a type change; it moves with the commit."""
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    moved = sum(_move_type_changes(child, old, new) for child in children) > 0
    if not isinstance(node, dict):
        return moved
    for change in node.get(TYPE_CHANGES_KEY) or ():
        if isinstance(change, dict) and change.get("tableVersion") == old:
            change["tableVersion"] = new
            moved = True
    return moved


def _appends(ours: Change, winner: Winner, ctx: Context) -> Verdict:
    adds = winner.summary.adds
    if not adds:
        return None
    if doubled := _doubled(ours, winner):
        return Clash(
            kind=ClashKind.APPEND,
            why=f"Both add {named(doubled, 'file')}, with different deletion vectors.",
            overlap=doubled,
        )
    if ours.level is IsolationLevel.SNAPSHOT:
        return None
    if ours.operation.is_backfill or winner.operation == OperationName.ROW_TRACKING_BACKFILL:
        return None
    relaxed = ours.level is IsolationLevel.WRITE_SERIALIZABLE and not ours.summary.metadatas
    if relaxed and winner.is_blind_append:
        return None
    if ours.reads.whole_table:
        paths = tuple(add.path for add in adds)
        return Clash(
            kind=ClashKind.APPEND,
            why=f"This operation read the whole table; the winner added {_places(adds)}.",
            overlap=paths,
        )
    for predicate in ours.reads.predicates:
        found = ctx.matches(predicate, adds, ours.base.metadata)
        matched = [add for add, hit in zip(adds, found, strict=True) if hit]
        if matched:
            return Clash(
                kind=ClashKind.APPEND,
                why=f"This operation read where {predicate}; the winner added {_places(matched)}.",
                overlap=tuple(add.path for add in matched),
                fix=_NARROW,
            )
    return None


_NARROW: Final = (
    "Run the operation again on the newer version; a condition on partition columns lets "
    "operations on other partitions pass."
)


def _doubled(ours: Change, winner: Winner) -> tuple[str, ...]:
    """Paths that would be live twice: added by both, under different deletion vectors."""
    shared = ours.summary.added_paths & winner.summary.added_paths
    if not shared:
        return ()
    keys = {add.path: add.key for add in winner.summary.adds}
    return tuple(
        sorted(a.path for a in ours.summary.adds if a.path in shared and keys[a.path] != a.key)
    )


def _places(adds: Sequence[AddFile]) -> str:
    """The files, and the partitions they are in."""
    partitions = {
        ", ".join(f"{key}={value}" for key, value in sorted(add.partition_values.items()))
        for add in adds
    } - {""}
    text = named([add.path for add in adds], "file")
    return f"{text} (partition {named(partitions)})" if partitions else text


def _delete_read(ours: Change, winner: Winner, _ctx: Context) -> Verdict:
    removed = winner.summary.removed_paths
    if not removed:
        return None
    if ours.reads.whole_table:
        return Clash(
            kind=ClashKind.DELETE_READ,
            why=f"This operation read the whole table, which lost {named(removed, 'file')}.",
            overlap=tuple(sorted(removed)),
        )
    both = removed & ours.reads.files
    if not both:
        return None
    return Clash(
        kind=ClashKind.DELETE_READ,
        why=f"This operation read {named(both, 'file')}.",
        overlap=tuple(sorted(both)),
    )


def _delete_delete(ours: Change, winner: Winner, _ctx: Context) -> Verdict:
    both = winner.summary.removed_paths & ours.summary.removed_paths
    if not both:
        return None
    return Clash(
        kind=ClashKind.DELETE_DELETE,
        why=f"Both remove or rewrite {named(both, 'file')}.",
        overlap=tuple(sorted(both)),
    )


def _timestamps(ours: Change, winner: Winner, _ctx: Context) -> Verdict:
    stamp = winner.timestamp_ms
    if stamp is None:
        return None
    note = f"later than {stamp}" if ours.timestamp_ms <= stamp else "timestamp kept"
    return Rebase(note=note, base={"timestamp_ms": stamp})


RULES: Final[tuple[ConflictRule, ...]] = (
    ConflictRule(id="OCC-01", name="protocol", check=_protocol),
    ConflictRule(id="OCC-01b", name="feature drop", check=_feature_drop),
    ConflictRule(id="OCC-02", name="metadata", check=_metadata),
    ConflictRule(id="OCC-03", name="domain metadata", check=_domains),
    ConflictRule(id="OCC-04", name="application transactions", check=_applications),
    ConflictRule(id="OCC-05", name="row tracking", check=_row_tracking),
    ConflictRule(id="OCC-06", name="type widening", check=_type_widening),
    ConflictRule(id="OCC-07", name="added files", check=_appends),
    ConflictRule(id="OCC-08", name="removed files that were read", check=_delete_read),
    ConflictRule(id="OCC-09", name="removed files on both sides", check=_delete_delete),
    ConflictRule(id="OCC-10", name="in-commit timestamps", check=_timestamps),
)
"""In the order they are tried against each winner (Delta's conflict checker)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflicting:
    """A rule said no."""

    rule: ConflictRule
    clash: Clash
    winner: Winner
    ours: Change

    def to_error(self) -> ConflictError:
        """The exception to raise."""
        return self.clash.to_error(self.rule.id, self.ours, self.winner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebased:
    """Our change, on top of the winner."""

    change: Change
    notes: tuple[str, ...] = ()


def check_conflicts(
    ours: Change, winner: Winner, ctx: Context, rules: Iterable[ConflictRule] = RULES
) -> Conflicting | Rebased:
    """Our change after one winner, or why there is none."""
    base: dict[str, Any] = {"version": winner.version}
    notes = []
    for rule in rules:
        result = rule.check(ours, winner, ctx)
        if result is None:
            continue
        if isinstance(result, Clash):
            return Conflicting(rule=rule, clash=result, winner=winner, ours=ours)
        notes.append(f"{rule.id} {result.note}")
        base.update(result.base)
        if result.actions is not None:
            ours = replace(ours, actions=result.actions)
        if result.reads is not None:
            ours = replace(ours, reads=result.reads)
    moved = replace(ours, base=replace(ours.base, **base))
    return Rebased(change=moved, notes=tuple(notes))


def check_all_conflicts(
    ours: Change, winners: Iterable[Winner], ctx: Context, rules: Iterable[ConflictRule] = RULES
) -> Conflicting | Rebased:
    """Our change after several winners, oldest first."""
    ordered = tuple(rules)
    notes: tuple[str, ...] = ()
    for winner in winners:
        outcome = check_conflicts(ours, winner, ctx, ordered)
        if isinstance(outcome, Conflicting):
            return outcome
        ours, notes = outcome.change, (*notes, *outcome.notes)
    return Rebased(change=ours, notes=notes)
