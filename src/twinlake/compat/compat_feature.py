"""The five compat features, as data.

``icebergCompatV1`` to ``V3`` say that the files can be read as an Iceberg table; the two writer
features say that Iceberg writers may write the table as well, and require one of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, UserError
from twinlake.protocol import features

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.protocol import Metadata

__all__ = ["COMPATS", "VERSION_TAG", "Compat", "enabled_compats", "find_compat"]

VERSION_TAG: Final = "ICEBERG_COMPAT_VERSION"
"""The tag of an ``add`` by which a writer says which version it wrote the file for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compat:
    """One compat feature, the property that enables it, and the prefix of its rules."""

    feature: str
    key: str
    prefix: str
    """What the ids of its rules begin with."""
    version: int
    base: str | None = None
    """The compat feature that a writer feature requires."""

    @property
    def is_writer(self) -> bool:
        """Whether Iceberg writers may write the table."""
        return self.base is not None

    def is_enabled(self, metadata: Metadata) -> bool:
        """Whether the table has the feature enabled. Absent, and anything but true, is no."""
        return self.key in metadata.true_flags

    def __str__(self) -> str:
        return self.feature


def _row(feature: str, prefix: str, version: int, base: str | None = None) -> Compat:
    key = f"delta.enable{feature[0].upper()}{feature[1:]}"
    return Compat(feature=feature, key=key, prefix=prefix, version=version, base=base)


COMPATS: Final[Mapping[str, Compat]] = MappingProxyType(
    {
        row.feature: row
        for row in (
            _row(features.ICEBERG_COMPAT_V1, "ICV1", 1),
            _row(features.ICEBERG_COMPAT_V2, "ICV2", 2),
            _row(features.ICEBERG_COMPAT_V3, "ICV3", 3),
            _row(features.ICEBERG_WRITER_COMPAT_V1, "IWC1", 2, base=features.ICEBERG_COMPAT_V2),
            _row(features.ICEBERG_WRITER_COMPAT_V3, "IWC3", 3, base=features.ICEBERG_COMPAT_V3),
        )
    }
)


_STRICTEST_FIRST: Final = tuple(sorted(COMPATS.values(), key=lambda row: row.base is None))


def find_compat(name: str) -> Compat:
    """The compat feature of that name or key, case-insensitive."""
    folded = name.casefold()
    for row in COMPATS.values():
        if folded in (row.feature.casefold(), row.key.casefold()):
            return row
    raise UserError(
        Code.FEATURE_UNKNOWN,
        f"{name!r} is no compat feature.",
        why=f"There are {', '.join(COMPATS)}.",
        fix="Give one of these names.",
        fields={"feature": name, "known": list(COMPATS)},
    )


def enabled_compats(metadata: Metadata) -> tuple[Compat, ...]:
    """The compat features that are enabled, writer features first because they are stricter."""
    return tuple([row for row in _STRICTEST_FIRST if row.key in metadata.true_flags])
