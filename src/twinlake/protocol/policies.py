"""How a protocol grows when features are added to it.

``bundled`` raises the legacy version where that is enough, so everything bundled in that version
comes along, as Delta 2.4 did. ``minimal`` lists exactly what is needed, as Delta 4 does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from twinlake.errors import Code, UserError
from twinlake.protocol.feature_lookup import minimum_versions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.protocol.protocol import Protocol

__all__ = ["BUNDLED", "MINIMAL", "POLICIES", "Policy", "find_policy"]


class Policy(ABC):
    """A strategy for upgrades; it decides the form, never the features asked for."""

    name: ClassVar[str]

    @abstractmethod
    def extend(self, current: Protocol, features: frozenset[str]) -> Protocol:
        """``current`` with the features (already closed over what they require) added."""

    def __repr__(self) -> str:
        return f"<policy {self.name}>"


class Bundled(Policy):
    """Legacy features raise the integers; lists come only with the first native feature."""

    name = "bundled"

    def extend(self, current: Protocol, features: frozenset[str]) -> Protocol:
        """The larger versions; past writer version 6, all that was implied is spelled out."""
        reader, writer = minimum_versions(
            features, floor=(current.min_reader_version, current.min_writer_version)
        )
        # What a legacy version implied may have been used at a version that time travel still
        # reaches, so it stays supported when the table moves to lists.
        return current.at(reader, writer, current.feature_names | features)


class Minimal(Policy):
    """The weakest protocol that supports exactly what is needed."""

    name = "minimal"

    def extend(self, current: Protocol, features: frozenset[str]) -> Protocol:
        """The merged features in their weakest form."""
        return current.merge(current.at(3, 7, features))


BUNDLED: Final = Bundled()
MINIMAL: Final = Minimal()
POLICIES: Final[Mapping[str, Policy]] = MappingProxyType({p.name: p for p in (BUNDLED, MINIMAL)})


def find_policy(policy: str | Policy) -> Policy:
    """The policy of that name."""
    if isinstance(policy, Policy):
        return policy
    if policy not in POLICIES:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"There is no upgrade policy {policy!r}.",
            why="It decides how a protocol grows, so a guess would change the table for good.",
            fix=f"Use one of: {', '.join(POLICIES)}.",
            fields={"policy": policy, "known": sorted(POLICIES)},
        )
    return POLICIES[policy]
