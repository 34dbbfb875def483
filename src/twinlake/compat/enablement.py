"""What a table that makes a promise needs besides the flag itself, as far as a writer may set it.

On a new table almost everything may be set: nothing has been written yet that it could contradict.
On a table that exists only what leaves its files as they are. What was said explicitly is left
alone, also where it contradicts the promise: the rules then refuse it with everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.compat.compat_feature import COMPATS, enabled_compats
from twinlake.compat.rule import PROFILE_KEY, Profile
from twinlake.errors import Code, CompatViolation, UserError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from twinlake.protocol import Metadata

__all__ = [
    "COMPAT_KEYS",
    "UNIFORM_KEY",
    "completed",
    "is_uniform",
    "makes_promises",
    "names_by_id",
    "needs_nested_ids",
    "refuse_bare_uniform",
]

UNIFORM_KEY: Final = "delta.universalFormat.enabledFormats"
_ATOMIC_KEY: Final = "delta.universalFormat.iceberg.atomicConversion.supported"
_MODE_KEY: Final = "delta.columnMapping.mode"
_ROW_TRACKING_KEY: Final = "delta.enableRowTracking"
_ICEBERG: Final = "iceberg"

COMPAT_KEYS: Final = frozenset(row.key for row in COMPATS.values())
"""The properties that make promises."""


def makes_promises(*states: Metadata) -> bool:
    """Whether one of them may make a promise: the look that every other table pays."""
    return any(not COMPAT_KEYS.isdisjoint(metadata.configuration) for metadata in states)


def completed(
    before: Metadata | None, asked: Metadata, *, given: Collection[str] | None = None
) -> Metadata:
    """The metadata asked for, with all that its promises let a writer set by itself.

    ``before`` is None for a new table and for one that replaces another. ``given`` are the
    properties that were said explicitly; by default those that differ from ``before``.

    >>> from twinlake.protocol import Metadata
    >>> new = completed(None, Metadata(configuration={"delta.enableIcebergWriterCompatV1": "true"}))
    >>> new.get("delta.columnMapping.mode"), new.get("delta.enableIcebergCompatV2")
    ('id', 'true')

    Raises:
        CompatViolation: the table is to be kept as Iceberg too and makes no promise that it can.
        UserError: the profile by which it is to be judged is not known.
    """
    _check_profile(before, asked)
    if not makes_promises(asked) and UNIFORM_KEY not in asked.configuration:
        return asked
    said = _said(before, asked) if given is None else frozenset(given)
    wanted = _for_new(asked) if before is None else _for_existing(asked)
    changes = {
        key: value
        for key, value in wanted.items()
        if key not in said and asked.configuration.get(key) != value
    }
    settled = asked.with_configuration(changes) if changes else asked
    return _with_formats(before, settled)


def _check_profile(before: Metadata | None, asked: Metadata) -> None:
    """Refuse a new profile that nobody knows; the table would be judged by another in silence."""
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


def _said(before: Metadata | None, asked: Metadata) -> frozenset[str]:
    old: Mapping[str, str] = {} if before is None else before.configuration
    return frozenset(key for key, value in asked.configuration.items() if old.get(key) != value)


def _for_new(metadata: Metadata) -> dict[str, str]:
    wanted: dict[str, str] = {}
    promises = enabled_compats(metadata)
    for compat in promises:
        if compat.base is not None:
            wanted[COMPATS[compat.base].key] = "true"
        # Writers are named first, and the narrower mode is right for what they stand on.
        wanted.setdefault(_MODE_KEY, "id" if compat.is_writer else "name")
    wanted |= _for_existing(metadata)
    if promises and is_uniform(metadata):
        wanted[_ATOMIC_KEY] = "true"
    return wanted


def _for_existing(metadata: Metadata) -> dict[str, str]:
    """Row ids are handed out to files without touching them; nothing else is that harmless."""
    third = any(compat.version >= 3 for compat in enabled_compats(metadata))
    return {_ROW_TRACKING_KEY: "true"} if third else {}


def needs_nested_ids(metadata: Metadata) -> bool:
    """Whether elements, keys and values need ids of their own."""
    return any(compat.version >= 2 for compat in enabled_compats(metadata))


def names_by_id(metadata: Metadata) -> bool:
    """Whether the physical name of a new column has to be ``col-<id>``."""
    return any(compat.is_writer for compat in enabled_compats(metadata))


# UniForm: which other formats somebody keeps metadata in


def is_uniform(metadata: Metadata) -> bool:
    """Whether the table is to be kept as an Iceberg table too."""
    return _ICEBERG in _formats(metadata)


def _formats(metadata: Metadata) -> tuple[str, ...]:
    names = (name.strip().lower() for name in metadata.get(UNIFORM_KEY).split(","))
    return tuple(name for name in names if name)


def _with_formats(before: Metadata | None, metadata: Metadata) -> Metadata:
    """A promise that is taken back takes Iceberg with it; without any there cannot be Iceberg."""
    if not is_uniform(metadata) or enabled_compats(metadata):
        return metadata
    if before is None or not enabled_compats(before):
        refuse_bare_uniform(before, metadata)
        return metadata
    left = [name for name in _formats(metadata) if name != _ICEBERG]
    if left:
        return metadata.with_configuration({UNIFORM_KEY: ",".join(left)})
    return metadata.with_configuration({}, remove=[UNIFORM_KEY])


def refuse_bare_uniform(before: Metadata | None, after: Metadata) -> None:
    """Raise if Iceberg is newly asked for, or goes on being, without any promise to stand on.

    A table that was like that before is not locked for it.
    """
    if not is_uniform(after) or enabled_compats(after):
        return
    if before is not None and is_uniform(before) and not enabled_compats(before):
        return
    keys = [row.key for row in COMPATS.values() if not row.is_writer]
    raise CompatViolation(
        Code.COMPAT,
        f"Table {after.label} cannot be kept as an Iceberg table.",
        why=f"{UNIFORM_KEY} names iceberg, and none of {', '.join(keys)} is true",
        fix=f"Set `{keys[1]}` to `true` as well, or leave `iceberg` out of `{UNIFORM_KEY}`.",
        delta_class="DELTA_UNIVERSAL_FORMAT_VIOLATION.ICEBERG_COMPAT_REQUIRED",
        fields={"property": UNIFORM_KEY, "value": after.get(UNIFORM_KEY)},
    )
