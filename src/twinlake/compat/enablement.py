"""The properties that a compat feature requires, as far as a writer may set them by itself.

On a new table that is almost everything, as no file exists yet that it could contradict. On an
existing table it is only what leaves the files as they are. A property that was given explicitly
stays, also where it contradicts the feature: the rules then report it with everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.compat.column_mapping import new_table_mode
from twinlake.compat.compat_feature import COMPATS, enabled_compats
from twinlake.compat.rule import PROFILE_KEY, Profile
from twinlake.errors import Code, CompatViolation, UserError
from twinlake.protocol import keys

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from twinlake.protocol import Metadata

__all__ = [
    "COMPAT_KEYS",
    "has_compat_keys",
    "is_uniform",
    "require_compat_for_uniform",
    "with_compat_properties",
]

_ATOMIC_KEY: Final = "delta.universalFormat.iceberg.atomicConversion.supported"
_ICEBERG: Final = "iceberg"

COMPAT_KEYS: Final = frozenset(row.key for row in COMPATS.values())
"""The properties that enable compat features."""


def has_compat_keys(*states: Metadata) -> bool:
    """Whether one of them may have a compat feature enabled: a cheap test for all other tables."""
    return any(not COMPAT_KEYS.isdisjoint(metadata.configuration) for metadata in states)


def with_compat_properties(
    before: Metadata | None, asked: Metadata, *, given: Collection[str] | None = None
) -> Metadata:
    """The metadata asked for, with the properties that its compat features require.

    ``before`` is None for a new table and for one that replaces another. ``given`` are the
    properties that were said explicitly; by default those that differ from ``before``.

    >>> from twinlake.protocol import Metadata
    >>> asked = Metadata(configuration={"delta.enableIcebergWriterCompatV1": "true"})
    >>> new = with_compat_properties(None, asked)
    >>> new.get("delta.columnMapping.mode"), new.get("delta.enableIcebergCompatV2")
    ('id', 'true')

    Raises:
        CompatViolation: UniForm is set to iceberg and no compat feature is enabled.
        UserError: the profile is not known.
    """
    _check_profile(before, asked)
    if not has_compat_keys(asked) and keys.ENABLED_FORMATS not in asked.configuration:
        return asked
    explicit = _changed_keys(before, asked) if given is None else frozenset(given)
    wanted = _for_new(asked) if before is None else _for_existing(asked)
    changes = {
        key: value
        for key, value in wanted.items()
        if key not in explicit and asked.configuration.get(key) != value
    }
    settled = asked.with_configuration(changes) if changes else asked
    return _with_formats(before, settled)


def _check_profile(before: Metadata | None, asked: Metadata) -> None:
    """Refuse an unknown profile; the rules would silently be read by another."""
    text = asked.configuration.get(PROFILE_KEY)
    if text is None or (before is not None and before.configuration.get(PROFILE_KEY) == text):
        return
    if text.strip().lower() not in set(Profile):
        raise UserError(
            Code.PROPERTY_INVALID,
            f"{PROFILE_KEY} cannot be {text!r}.",
            why="it says whose reading of the Iceberg rules counts",
            fix=f"Set it to one of {', '.join(Profile)}.",
            fields={"property": PROFILE_KEY, "value": text},
        )


def _changed_keys(before: Metadata | None, asked: Metadata) -> frozenset[str]:
    old: Mapping[str, str] = {} if before is None else before.configuration
    return frozenset(key for key, value in asked.configuration.items() if old.get(key) != value)


def _for_new(metadata: Metadata) -> dict[str, str]:
    wanted: dict[str, str] = {}
    compats = enabled_compats(metadata)
    for compat in compats:
        if compat.base is not None:
            wanted[COMPATS[compat.base].key] = "true"
        # Writer features come first, and their stricter mode suits their base too.
        wanted.setdefault(keys.COLUMN_MAPPING_MODE, str(new_table_mode(compat)))
    wanted |= _for_existing(metadata)
    if compats and is_uniform(metadata):
        wanted[_ATOMIC_KEY] = "true"
    return wanted


def _for_existing(metadata: Metadata) -> dict[str, str]:
    """Row ids are handed out to files without touching them; nothing else is that harmless."""
    third = any(compat.version >= 3 for compat in enabled_compats(metadata))
    return {keys.ENABLE_ROW_TRACKING: "true"} if third else {}


# UniForm: the other formats that metadata is kept in


def is_uniform(metadata: Metadata) -> bool:
    """Whether the table is to be kept as an Iceberg table too."""
    return _ICEBERG in _formats(metadata)


def _formats(metadata: Metadata) -> tuple[str, ...]:
    names = (name.strip().lower() for name in metadata.get(keys.ENABLED_FORMATS).split(","))
    return tuple(name for name in names if name)


def _with_formats(before: Metadata | None, metadata: Metadata) -> Metadata:
    """Drop ``iceberg`` from UniForm's formats when the commit disables the last compat feature."""
    if not is_uniform(metadata) or enabled_compats(metadata):
        return metadata
    if before is None or not enabled_compats(before):
        require_compat_for_uniform(before, metadata)
        return metadata
    left = [name for name in _formats(metadata) if name != _ICEBERG]
    if left:
        return metadata.with_configuration({keys.ENABLED_FORMATS: ",".join(left)})
    return metadata.with_configuration({}, remove=[keys.ENABLED_FORMATS])


def require_compat_for_uniform(before: Metadata | None, after: Metadata) -> None:
    """Raise if UniForm names iceberg and no compat feature is enabled.

    A table that was like that before still accepts commits.
    """
    if not is_uniform(after) or enabled_compats(after):
        return
    if before is not None and is_uniform(before) and not enabled_compats(before):
        return
    flags = [row.key for row in COMPATS.values() if not row.is_writer]
    raise CompatViolation(
        Code.COMPAT,
        f"Table {after.label} cannot be kept as an Iceberg table.",
        why=f"{keys.ENABLED_FORMATS} names iceberg, and none of {', '.join(flags)} is true",
        fix=f"Set `{flags[1]}` to `true` as well, or leave `iceberg` out of "
        f"`{keys.ENABLED_FORMATS}`.",
        delta_class="DELTA_UNIVERSAL_FORMAT_VIOLATION.ICEBERG_COMPAT_REQUIRED",
        fields={"property": keys.ENABLED_FORMATS, "value": after.get(keys.ENABLED_FORMATS)},
    )
