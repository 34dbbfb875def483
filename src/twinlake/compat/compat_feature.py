"""The five promises a table can make about Iceberg, as data.

``icebergCompatV1`` to ``V3`` say that the files can be read as an Iceberg table; the two writer
promises say that Iceberg writers may write the table as well, and stand on one of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.protocol import Metadata

__all__ = ["COMPATS", "VERSION_TAG", "Compat", "enabled_compats", "find_compat"]

VERSION_TAG: Final = "ICEBERG_COMPAT_VERSION"
"""The tag of an ``add`` by which a writer says which version it wrote the file for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compat:
    """One promise: the feature that names it, the property that switches it on, its rules."""

    feature: str
    key: str
    prefix: str
    """What the ids of its rules begin with."""
    version: int
    base: str | None = None
    """The feature a writer promise stands on."""

    @property
    def is_writer(self) -> bool:
        """Whether Iceberg writers may write the table."""
        return self.base is not None

    def is_enabled(self, metadata: Metadata) -> bool:
        """Whether the table makes the promise. Absent, and anything but true, is no."""
        return metadata.flag(self.key)

    def __str__(self) -> str:
        return self.feature


def _row(feature: str, prefix: str, version: int, base: str | None = None) -> Compat:
    key = f"delta.enable{feature[0].upper()}{feature[1:]}"
    return Compat(feature=feature, key=key, prefix=prefix, version=version, base=base)


COMPATS: Final[Mapping[str, Compat]] = MappingProxyType(
    {
        row.feature: row
        for row in (
            _row("icebergCompatV1", "ICV1", 1),
            _row("icebergCompatV2", "ICV2", 2),
            _row("icebergCompatV3", "ICV3", 3),
            _row("icebergWriterCompatV1", "IWC1", 2, base="icebergCompatV2"),
            _row("icebergWriterCompatV3", "IWC3", 3, base="icebergCompatV3"),
        )
    }
)


def find_compat(name: str) -> Compat:
    """The promise of that name, in any spelling of the case."""
    folded = name.casefold()
    for row in COMPATS.values():
        if folded in (row.feature.casefold(), row.key.casefold()):
            return row
    raise UserError(
        Code.FEATURE_UNKNOWN,
        f"{name!r} is no Iceberg compatibility feature.",
        why=f"There are {', '.join(COMPATS)}.",
        fix="Give one of these names.",
        fields={"feature": name, "known": list(COMPATS)},
    )


def enabled_compats(metadata: Metadata) -> tuple[Compat, ...]:
    """The promises the table makes, those about writers first because they are the narrower."""
    found = [row for row in COMPATS.values() if row.is_enabled(metadata)]
    return tuple(sorted(found, key=lambda row: not row.is_writer))
