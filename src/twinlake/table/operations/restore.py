"""RESTORE: an earlier version's files and metadata, as a new version.

What may only grow does not go back with the rest: the protocol, column ids, the marks of identity
columns, and the version before which history is protected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from twinlake.actions import DomainMetadata
from twinlake.commit import (
    CHECKS,
    IsolationLevel,
    Operation,
    OperationName,
)
from twinlake.commit.plans import plan_restore
from twinlake.log import adds_from
from twinlake.protocol import CLUSTERING_DOMAIN, keys
from twinlake.schema import (
    FILE_RULES,
    IDENTITY_HIGH_WATER_MARK_KEY,
    IDENTITY_STEP_KEY,
    Struct,
    field_id,
    map_fields,
    walk_fields,
)
from twinlake.storage import resolve

if TYPE_CHECKING:
    from twinlake.commit import CommitResult
    from twinlake.commit.plans import RestorePlan
    from twinlake.log import Snapshot
    from twinlake.protocol import Metadata
    from twinlake.schema import ColumnPath, StructField
    from twinlake.storage import Store
    from twinlake.table.operations.context import OperationContext

__all__ = ["restore_snapshot", "restored_metadata"]

_RESTORED_DOMAINS: Final = (CLUSTERING_DOMAIN,)
"""Domains that describe the files and go back with them; others belong to whoever wrote them."""
_CHECKS: Final = tuple(check for check in CHECKS if check.id not in {"CMT-18", "CMT-19"})
"""What files say of themselves is as it was: a version that was there can be had again."""


def restore_snapshot(
    context: OperationContext,
    current: Snapshot,
    target: Snapshot,
    *,
    timestamp: str | None = None,
    user_metadata: str | None = None,
) -> CommitResult:
    """Commit the state of ``target`` on top of ``current``; the protocol never comes down.

    ``timestamp`` is the time that was asked for, where it was one and not a version.
    """
    asked = {"version": target.version if timestamp is None else None, "timestamp": timestamp}
    # Files that must not be followed can still be removed: restoring is how to be rid of them.
    plan = plan_restore(adds_from(current.add_files()), target.adds())
    missing = _missing(current, plan, context)
    outcome = plan.finish(now=context.runtime.clock.now_ms(), missing=missing)
    operation = Operation(
        name=OperationName.RESTORE,
        parameters=asked,
        metrics=outcome.metrics,
    )
    transaction = context.transaction(
        current,
        operation,
        user_metadata=user_metadata,
        # Files that somebody appends meanwhile are none of the version that is asked for.
        isolation=IsolationLevel.SERIALIZABLE,
        system_domains=frozenset(_RESTORED_DOMAINS),
        # All files that stay or come were written for the schema that comes back, or before it.
        waived_rules=FILE_RULES,
        checks=_CHECKS,
    )
    transaction.record_whole_table()
    # Restored files may need what was dropped since.
    if not target.protocol.feature_names <= current.protocol.feature_names:
        transaction.update_protocol(current.protocol.merge(target.protocol))
    metadata = restored_metadata(current.metadata, target.metadata)
    if metadata != current.metadata:
        transaction.update_metadata(metadata)
    transaction.add(*_restored_domains(current, target))
    return transaction.add(*outcome.removes, *outcome.adds).commit()


def restored_metadata(current: Metadata, target: Metadata) -> Metadata:
    """The metadata of ``target``, but for what must never go back."""
    kept = {}
    ids = (current.max_column_id, target.max_column_id)
    known = [number for number in ids if number is not None]
    if known:
        kept[keys.MAX_COLUMN_ID] = str(max(known))
    protected = current.configuration.get(keys.REQUIRE_CHECKPOINT_PROTECTION)
    if protected is not None:
        kept[keys.REQUIRE_CHECKPOINT_PROTECTION] = protected
    gone = [keys.REQUIRE_CHECKPOINT_PROTECTION] if protected is None else []
    merged = target.with_configuration(kept, remove=gone)
    schema = _with_marks(current.schema, target.schema)
    return merged if schema == target.schema else merged.with_schema(schema)


def _with_marks(current: Struct, target: Struct) -> Struct:
    """``target`` with the furthest mark of either schema on each of its identity columns."""
    marks = {
        key: mark
        for path, field in walk_fields(current)
        if (mark := _number(field, IDENTITY_HIGH_WATER_MARK_KEY)) is not None
        for key in _names(path, field)
    }
    if not marks:
        return target

    def advance(path: ColumnPath, field: StructField) -> StructField:
        step = _number(field, IDENTITY_STEP_KEY)
        seen = next((marks[key] for key in _names(path, field) if key in marks), None)
        if step is None or seen is None:
            return field
        own = _number(field, IDENTITY_HIGH_WATER_MARK_KEY)
        furthest = max if step > 0 else min
        mark = seen if own is None else furthest(own, seen)
        return field.with_metadata(**{IDENTITY_HIGH_WATER_MARK_KEY: mark})

    schema = map_fields(target, advance)
    return schema if isinstance(schema, Struct) else target


def _names(path: ColumnPath, field: StructField) -> tuple[object, ...]:
    """What to know a column by in another version: its id if it has one, else its name."""
    number = field_id(field)
    return (number,) if number is not None else (tuple(part.casefold() for part in path),)


def _number(field: StructField, key: str) -> int | None:
    value = field.metadata.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _restored_domains(current: Snapshot, target: Snapshot) -> list[DomainMetadata]:
    changes = []
    for name in _RESTORED_DOMAINS:
        now, then = current.domains.get(name), target.domains.get(name)
        if then is not None and (now is None or now.configuration != then.configuration):
            changes.append(then)
        elif then is None and now is not None:
            changes.append(
                DomainMetadata(domain=name, configuration=now.configuration, removed=True)
            )
    return changes


@dataclass(frozen=True, slots=True)
class _IsGone:
    """A value and no closure, so that an executor may send it to another process."""

    store: Store

    def __call__(self, path: str) -> bool:
        home, key = resolve(self.store, path)
        return home.head(key) is None


def _missing(current: Snapshot, plan: RestorePlan, context: OperationContext) -> list[str]:
    """The needed files that VACUUM has deleted meanwhile."""
    from twinlake.log import dv_path

    vectors = (dv_path(vector) for vector in plan.needed_vectors)
    paths = [*plan.needed_paths, *(path for path in vectors if path is not None)]
    found = context.executor.map(_IsGone(current.store), paths)
    return [path for path, gone in zip(paths, found, strict=True) if gone]
