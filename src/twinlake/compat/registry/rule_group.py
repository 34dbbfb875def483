"""How rows of the registry are written down: a rule once, for every promise that has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from twinlake.compat.compat_feature import COMPATS
from twinlake.compat.rule import Check, Profile, Rule, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["KERNEL", "SPARK", "SPEC", "Readings", "rows"]

SPEC: Final = Profile.SPEC
SPARK: Final = Profile.SPARK
KERNEL: Final = Profile.KERNEL

Readings = Mapping[Profile, Check | None]
"""Other readings of a rule, by profile; None where a profile does not know it."""

_BELOW: Final = {
    row.prefix: COMPATS[row.base].prefix for row in COMPATS.values() if row.base is not None
}


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
    leaving: bool = False,
) -> Iterator[Rule]:
    """A rule under each prefix; check and readings by prefix where the promises differ in them.

    ``own`` are the readings by prefix, ``covers`` numbers of rules of the promise below.
    """
    for prefix in prefixes.split():
        yield Rule(
            id=f"{prefix}-{number}",
            title=title,
            reason=reason,
            scope=scope,
            check=check[prefix] if isinstance(check, Mapping) else check,
            profiles=(own or {}).get(prefix, profiles or {}),
            fix=fix,
            subclass=subclass,
            covers=_below(prefix, covers if isinstance(covers, str) else covers[prefix]),
            leaving=leaving,
        )


def _below(prefix: str, numbers: str) -> frozenset[str]:
    """Numbers of rules with the prefix of the promise that the given one stands on."""
    return frozenset(f"{_BELOW[prefix]}-{number}" for number in numbers.split())
