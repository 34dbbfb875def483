"""Dropping a feature: whether it may go, and all that has to happen for it, as data."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from twinlake.errors import Code, UserError, how_to_drop_feature, how_to_unset
from twinlake.protocol import features, keys
from twinlake.protocol.feature_lookup import FEATURES, find_feature
from twinlake.protocol.properties.registry import PROPERTIES, canonical_key
from twinlake.schema import Struct, map_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.protocol.feature import Feature, FeatureTrace, PreDowngrade
    from twinlake.protocol.metadata import Metadata
    from twinlake.protocol.protocol import Protocol

__all__ = ["DropPlan", "plan_drop"]

_FAST_BARRIERS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DropPlan:
    """The steps of one DROP FEATURE, in the order of the fields from ``first_set`` on."""

    feature: str
    truncate_history: bool
    protocol: Protocol
    """The protocol of the downgrade commit."""
    first_set: Mapping[str, str]
    first_unset: tuple[str, ...]
    pre_downgrade: PreDowngrade
    trace: FeatureTrace | None
    atomic: bool
    """Whether the first changes and the rewritten files must be one commit."""
    barriers: int
    """Rounds of an empty commit with a verified checkpoint before the downgrade."""
    unset: tuple[str, ...]
    domains: tuple[str, ...]
    field_metadata: tuple[str, ...]
    protects_history: bool
    """Whether the downgrade must also set the protection property to its own version."""

    @property
    def needs_rewrite(self) -> bool:
        """Whether rows have to be moved, which takes a data engine."""
        return self.pre_downgrade.moves_rows

    def prepare(self, metadata: Metadata) -> Metadata:
        """The metadata of the commit before the downgrade."""
        changed = metadata.with_configuration(self.first_set, remove=self.first_unset)
        return self.stripped(changed) if self.atomic else changed

    def downgrade(self, metadata: Metadata, *, version: int) -> Metadata:
        """The metadata of the downgrade, which is to be committed as ``version``."""
        protection = (
            {keys.REQUIRE_CHECKPOINT_PROTECTION: str(version)} if self.protects_history else {}
        )
        return self.stripped(metadata.with_configuration(protection, remove=self.unset))

    def stripped(self, metadata: Metadata) -> Metadata:
        """The metadata without what the feature keeps with the columns."""
        if not self.field_metadata:
            return metadata
        gone: dict[str, Any] = dict.fromkeys(self.field_metadata)
        schema = map_fields(metadata.schema, lambda _, column: column.with_metadata(**gone))
        if not isinstance(schema, Struct) or schema == metadata.schema:
            return metadata
        return metadata.with_schema(schema)


def plan_drop(
    protocol: Protocol, metadata: Metadata, name: str, *, truncate_history: bool = False
) -> DropPlan:
    """The plan to drop a feature; raises the first refusal that applies.

    >>> from twinlake.protocol import Metadata, Protocol
    >>> timed = Protocol(1, 7, None, {"inCommitTimestamp"})
    >>> plan = plan_drop(timed, Metadata(), "inCommitTimestamp")
    >>> str(plan.protocol)
    '1,1'
    """
    row = _droppable(protocol, metadata, name, truncate_history=truncate_history)
    removal = row.removal
    if removal is None:  # pragma: no cover - refused above
        raise AssertionError(row.name)
    lowered = protocol.remove_feature(row)
    protects = row.history_protected and not truncate_history
    if protects:
        lowered = lowered.merge(lowered.for_table_feature(features.CHECKPOINT_PROTECTION))
    barriers = 1 if truncate_history else _FAST_BARRIERS
    present = metadata.configuration
    return DropPlan(
        feature=row.name,
        truncate_history=truncate_history,
        protocol=lowered,
        # Setting a switch off is only worth a commit where it is not off already.
        first_set=MappingProxyType(
            {
                k: v
                for k, v in removal.first_set.items()
                if present.get(k) != v and _needed(k, present)
            }
        ),
        first_unset=tuple(key for key in removal.first_unset if key in present),
        pre_downgrade=removal.pre_downgrade,
        trace=removal.trace,
        atomic=removal.atomic,
        barriers=barriers if row.history_protected or removal.only_with_truncation else 0,
        unset=removal.unset,
        domains=removal.domains,
        field_metadata=removal.field_metadata,
        protects_history=protects,
    )


def _needed(key: str, present: Mapping[str, str]) -> bool:
    # A switch that was never set has its default, which is off; only suspension must be said.
    return key in present or key not in PROPERTIES or key == keys.ROW_TRACKING_SUSPENDED


def _droppable(
    protocol: Protocol, metadata: Metadata, name: str, *, truncate_history: bool
) -> Feature:
    """The feature, once none of Delta's refusals applies, in Delta's order."""
    if name.lower().startswith("delta.") or canonical_key(name) in PROPERTIES:
        _refuse(
            name,
            "FEATURE_IS_DELTA_PROPERTY",
            f"{name} is a table property, not a feature.",
            why="Properties are unset, features are dropped.",
            fix=f"Name the feature, or unset the property with {how_to_unset(name)}.",
        )
    row = find_feature(name)
    if row is not None and not protocol.is_supported(row):
        _refuse(
            row.name,
            "FEATURE_NOT_PRESENT",
            f"Table {metadata.label} does not have feature {row.name}.",
            why=f"Its protocol is {protocol}.",
            fix="There is nothing to drop.",
        )
    if row is not None and not row.removable:
        _refuse(
            row.name,
            "NONREMOVABLE_FEATURE",
            f"Feature {row.name} cannot be dropped.",
            why="There is no way to free a table of what it leaves behind.",
            fix="Copy the rows into a new table without it.",
        )
    if row is None or row.removal is None:
        _refuse(
            name,
            "UNSUPPORTED_CLIENT_FEATURE",
            f"Feature {name} is not known here.",
            why="What it leaves behind in the table is not known either.",
            fix="Drop it with a client that knows it.",
        )
    removal = row.removal
    if truncate_history and not row.history_protected and not removal.only_with_truncation:
        _refuse(
            row.name,
            "HISTORY_TRUNCATION_NOT_ALLOWED",
            f"Feature {row.name} is dropped without truncating history.",
            why="It leaves nothing in the history that an older client could stumble over.",
            fix=f"Run {how_to_drop_feature(row.name)}, without truncating history.",
        )
    dependents = sorted(
        other for other in protocol.supported_features if row.name in FEATURES[other].requires
    )
    if dependents:
        _refuse(
            row.name,
            "DEPENDENT_FEATURE",
            f"Feature {row.name} is required by {', '.join(dependents)}.",
            why="They do not work without it.",
            fix=f"Drop first: {', '.join(dependents)}, each with {how_to_drop_feature('NAME')}.",
            dependents=dependents,
        )
    _check_removal(row, metadata, truncate_history=truncate_history)
    return row


def _check_removal(row: Feature, metadata: Metadata, *, truncate_history: bool) -> None:
    removal = row.removal
    if removal is None:
        return
    if removal.never:
        _refuse(
            row.name,
            None,
            f"Feature {row.name} cannot be dropped from here.",
            why=removal.never,
            fix="Ask the owner of the table.",
        )
    if removal.only_with_truncation and not truncate_history:
        _refuse(
            row.name,
            removal.delta_class,
            f"Feature {row.name} can only be dropped by truncating history.",
            why="It protects history that older clients cannot read.",
            fix=f"Run {how_to_drop_feature(row.name, truncate_history=True)}.",
        )
    found = removal.offenders(metadata) if removal.offenders else ()
    if found:
        _refuse(
            row.name,
            removal.delta_class,
            f"Feature {row.name} cannot be dropped: the table has {removal.refusal}.",
            why=f"They are: {', '.join(found)}.",
            fix=removal.advice,
            offenders=list(found),
        )


def _refuse(
    name: str, delta_class: str | None, what: str, *, why: str, fix: str, **fields: object
) -> NoReturn:
    full = delta_class is None or delta_class.startswith("DELTA_")
    raise UserError(
        Code.FEATURE_DROP,
        what,
        why=why,
        fix=fix,
        delta_class=delta_class if full else f"DELTA_FEATURE_DROP_{delta_class}",
        fields={"feature": name, **fields},
    )
