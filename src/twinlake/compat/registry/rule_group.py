"""Builds rules of the registry: each is written once for all compat features that have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from twinlake.compat.compat_feature import COMPATS
from twinlake.compat.rule import Check, Profile, Rule, Scope, Trait

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

__all__ = ["KERNEL", "SPARK", "SPEC", "Readings", "rows"]

SPEC: Final = Profile.SPEC
SPARK: Final = Profile.SPARK
KERNEL: Final = Profile.KERNEL

Readings = Mapping[Profile, Check | None]
"""Other readings of a rule, by profile; None where a profile does not know it."""

_BY_PREFIX: Final = {row.prefix: row for row in COMPATS.values()}


def rows(
    number: str,
    prefixes: str,
    title: str,
    check: Check | Mapping[str, Check],
    *,
    reason: str,
    fix: str,
    scope: Scope = Scope.METADATA,
    subclass: str | None = None,
    profiles: Readings | None = None,
    own: Mapping[str, Readings] | None = None,
    covers: str | Mapping[str, str] = "",
    gives_up: str = "",
    traits: Collection[Trait] = (),
) -> Iterator[Rule]:
    """A rule under each prefix; check and readings by prefix where the features differ in them.

    ``own`` are the readings by prefix, ``covers`` numbers of rules of the base.
    """
    for prefix in prefixes.split():
        compat = _BY_PREFIX[prefix]
        below = COMPATS.get(compat.base or "", compat)
        numbers = covers if isinstance(covers, str) else covers[prefix]
        yield Rule(
            id=f"{prefix}-{number}",
            compat=compat,
            title=title,
            reason=reason,
            scope=scope,
            check=check[prefix] if isinstance(check, Mapping) else check,
            profiles=(own or {}).get(prefix, profiles or {}),
            fix=fix,
            subclass=subclass,
            covers=frozenset(f"{below.prefix}-{n}" for n in numbers.split()),
            gives_up=gives_up,
            traits=frozenset(traits),
        )
