"""How properties are checked before they are stored.

A wrong value must fail when it is set, never when somebody reads the table later; so reading is
lenient (an unreadable stored value falls back to the default) and setting is strict.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, UserError, how_to_upgrade, listed
from twinlake.protocol import features, keys
from twinlake.protocol.feature_lookup import FEATURES
from twinlake.protocol.properties.iceberg import (
    COPY_ON_WRITE,
    HISTORY_AGE,
    iceberg_key,
    iceberg_property_problem,
    requested_iceberg_properties,
)
from twinlake.protocol.properties.registry import (
    PROPERTIES,
    RETENTION_KEYS,
    canonical_key,
    snapshot_age_ms,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from twinlake.protocol.metadata import Metadata

__all__ = ["check_iceberg_properties", "parse_properties", "refuse_kept_properties"]

MAX_VALUE_BYTES: Final = 1_000_000
MAX_KEY_BYTES: Final = 4_096
_DELTA: Final = "delta."
# Properties whose stored text other engines compare as it is, so that case must be the listed one.
_SPELLED: Final = frozenset(
    {keys.COLUMN_MAPPING_MODE, keys.CHECKPOINT_POLICY, keys.ISOLATION_LEVEL}
)


def parse_properties(properties: Mapping[str, object]) -> dict[str, str]:
    """The properties in their stored spelling; raises once, naming everything that is wrong.

    >>> parse_properties({"delta.APPENDONLY": True, "owner": "me"})
    {'delta.appendOnly': 'true', 'owner': 'me'}
    """
    result: dict[str, str] = {}
    problems: list[_Problem] = []
    for raw_key, raw_value in properties.items():
        key = canonical_key(str(raw_key))
        value = _as_text(raw_value)
        problem = _check(key, value, raw_value)
        if problem is None and key in result and result[key] != value:
            problem = _Problem(key, "is given twice, with different values")
        if problem is not None:
            problems.append(problem)
        elif value is not None:
            result[key] = PROPERTIES[key].parse(value) if key in _SPELLED else value
    if problems:
        _refuse(problems)
    return result


def check_iceberg_properties(metadata: Metadata, given: Iterable[str]) -> None:
    """Refuse what the keys given ask of the Iceberg side and the table cannot keep.

    The metadata is that with the keys set.
    """
    requested = requested_iceberg_properties(metadata.configuration)
    longest = snapshot_age_ms(metadata)
    is_v2 = metadata.flag(keys.ENABLE_ICEBERG_COMPAT_V1) or metadata.flag(
        keys.ENABLE_ICEBERG_COMPAT_V2
    )
    problems = []
    for key in given:
        name = iceberg_key(key)
        value = requested.get(name) if name is not None else None
        if name is None or value is None:
            continue
        if name == HISTORY_AGE and int(value) > longest:
            problems.append(
                _Problem(
                    key,
                    f"must be at most {longest}, not {value}: Delta keeps files and history no "
                    "longer",
                    fix=f"Raise {' and '.join(map('`{}`'.format, RETENTION_KEYS))} first.",
                )
            )
        wanted = COPY_ON_WRITE.get(name)
        if is_v2 and wanted not in (None, value.lower()):
            problems.append(
                _Problem(
                    key,
                    f"must be {wanted} in format version 2, whose delete files Delta cannot have",
                    fix=f"Set it to `{wanted}`, or run "
                    f"{how_to_upgrade(features.ICEBERG_COMPAT_V3)}.",
                )
            )
    if problems:
        _refuse(problems)


def refuse_kept_properties(given: Iterable[str]) -> None:
    """What the table keeps for itself is neither set nor unset by hand."""
    found = sorted(key for key in given if key in PROPERTIES and PROPERTIES[key].kept)
    if found:
        raise UserError(
            Code.PROPERTY_INVALID,
            f"{', '.join(found)} cannot be set or unset.",
            why=listed(PROPERTIES[key].kept for key in found),
            fix="Leave it out.",
            delta_class="DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
            fields={"keys": found},
        )


@dataclass(frozen=True, slots=True)
class _Problem:
    key: str
    text: str
    fix: str = ""
    delta_class: str | None = None
    code: Code = Code.PROPERTY_INVALID


def _as_text(value: object) -> str | None:
    match value:
        case str():
            return value
        case bool():
            return str(value).lower()
        case int():
            return str(value) if abs(value) < 10**30 else None
        case _:
            return None


def _check(key: str, value: str | None, raw: object) -> _Problem | None:
    if not key.strip():
        return _Problem(repr(key)[:80], "is not a usable key")
    shown = key if len(key) <= 200 else key[:200] + "…"
    if len(key.encode("utf-8", "replace")) > MAX_KEY_BYTES:
        return _Problem(shown, f"has a key longer than {MAX_KEY_BYTES} bytes")
    if value is None:
        return _Problem(shown, f"needs text, not {type(raw).__name__}")
    try:
        length = len(value.encode())
        key.encode()
    except UnicodeEncodeError:
        return _Problem(shown, "holds text that is not valid Unicode")
    if length > MAX_VALUE_BYTES:
        return _Problem(shown, f"is {length:,} bytes long; at most {MAX_VALUE_BYTES:,} are stored")
    if not key.lower().startswith(_DELTA) and key not in PROPERTIES:
        return None
    if key.startswith(keys.FEATURE_PREFIX):
        return _check_feature(key.removeprefix(keys.FEATURE_PREFIX), value)
    if key.startswith(keys.CONSTRAINTS_PREFIX):
        bad = not key.removeprefix(keys.CONSTRAINTS_PREFIX).strip() or not value.strip()
        return _Problem(shown, "needs a name and an expression") if bad else None
    name = iceberg_key(key)
    if name is not None:
        text = iceberg_property_problem(name, value)
        return _Problem(shown, text, fix="Leave it out, or correct it.") if text else None
    known = PROPERTIES.get(key)
    if known is None:
        return _unknown(shown)
    try:
        known.parse(value)
    except ValueError as error:
        version = key in {keys.MIN_READER_VERSION, keys.MIN_WRITER_VERSION}
        return _Problem(
            key,
            f"must be {error}, not {value[:80]!r}",
            delta_class="DELTA_PROTOCOL_PROPERTY_NOT_INT" if version else None,
        )
    return None


def _check_feature(name: str, status: str) -> _Problem | None:
    key = keys.FEATURE_PREFIX + name
    if name not in FEATURES:
        near = _nearest(name, FEATURES)
        return _Problem(
            key,
            "names a feature that is not known",
            fix=f"Did you mean `{keys.FEATURE_PREFIX}{near}`?" if near else "",
            delta_class="DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
            code=Code.FEATURE_UNKNOWN,
        )
    if status.lower() not in {"supported", "enabled"}:
        return _Problem(
            key,
            f"must be supported, not {status[:80]!r}",
            delta_class="DELTA_UNSUPPORTED_FEATURE_STATUS",
        )
    return None


def _unknown(key: str) -> _Problem:
    near = _nearest(key, PROPERTIES)
    return _Problem(
        key,
        "is not a known delta property",
        fix=f"Did you mean `{near}`?" if near else "Keys of your own must not start with `delta.`.",
        delta_class="DELTA_UNKNOWN_CONFIGURATION",
    )


def _nearest(name: str, known: Iterable[str]) -> str | None:
    folded = {candidate.lower(): candidate for candidate in known}
    found = difflib.get_close_matches(name.lower()[:200], folded, n=1, cutoff=0.7)
    return folded[found[0]] if found else None


def _refuse(problems: list[_Problem]) -> None:
    first = problems[0]
    many = len(problems) > 1
    fixes = dict.fromkeys(problem.fix for problem in problems if problem.fix)
    raise UserError(
        first.code,
        f"{len(problems)} properties cannot be set."
        if many
        else f"Property {first.key} cannot be set.",
        why=listed(f"{problem.key} {problem.text}" for problem in problems) + ".",
        fix=listed(fixes, " ") or "Correct the value.",
        delta_class=next((p.delta_class for p in problems if p.delta_class), None),
        fields={"properties": [problem.key for problem in problems]},
    )
