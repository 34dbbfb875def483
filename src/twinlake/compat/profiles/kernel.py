"""The rules as the Java kernel 4.4.0 reads them, its gaps and faults included.

A table that other engines write through the kernel has to pass what it asks for, and need not do
more. Measured on the kernel itself; none of this leaks into the reading of the protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.compat.compat_feature import COMPATS
from twinlake.compat.profiles.java_literal import is_java_literal_of
from twinlake.compat.rule import Finding
from twinlake.compat.rules.map_key_diff import matched_fields
from twinlake.compat.rules.property import mode_finding, property_finding
from twinlake.compat.rules.protocol import ALLOWED
from twinlake.compat.rules.schema import (
    bad_defaults,
    collated_columns,
    is_outside,
    is_partition_type,
    name_finding,
    type_finding,
    types_outside,
    unsuitable_changes,
)
from twinlake.compat.rules.schema_index import index_schema
from twinlake.protocol import features, keys
from twinlake.schema import (
    GENERATION_EXPRESSION_KEY,
    ID_KEY,
    IDENTITY_EXPLICIT_KEY,
    IDENTITY_START_KEY,
    IDENTITY_STEP_KEY,
    INVARIANTS_KEY,
    PHYSICAL_NAME_KEY,
    Array,
    ColumnPath,
    DataType,
    Map,
    Struct,
    render_path,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from twinlake.compat.rule import Case, Check
    from twinlake.compat.rules.schema_index import IndexedField
    from twinlake.protocol import Protocol

__all__ = [
    "base_is_on",
    "column_mapping_is_readable",
    "defaults_are_literals",
    "deletion_vectors_are_unsupported",
    "disallowed_features",
    "enabled_at_creation",
    "enablement_is_fixed",
    "files_have_statistics",
    "key_structs_stay_equal",
    "mapping_is_not_halved",
    "mode_is",
    "no_generated_columns",
    "no_identity_columns",
    "no_invariants",
    "partition_types",
    "physical_names",
    "row_tracking_is_on",
    "stays_enabled",
    "type_changes_suit_iceberg",
    "types_are_known",
]

#: What the kernel allows beyond the list of the protocol.
_TOLERATED: Final = frozenset(
    (features.CHECKPOINT_PROTECTION, features.TYPE_WIDENING_PREVIEW, features.CATALOG_MANAGED)
)
_IDENTITY: Final = (IDENTITY_START_KEY, IDENTITY_STEP_KEY, IDENTITY_EXPLICIT_KEY)


def _reader_supports(protocol: Protocol, name: str, legacy: int = 3) -> bool:
    """Features of readers and writers are looked up on the reader's side alone."""
    if protocol.min_reader_version >= 3:
        return name in (protocol.reader_features or ())
    return protocol.min_reader_version >= legacy


def _is_set_up(case: Case, key: str) -> bool:
    """Whether the kernel would set the property by itself: new or replaced table, key absent."""
    subject = case.subject
    return (subject.creates or subject.replaces) and key not in subject.metadata.configuration


def column_mapping_is_readable(case: Case) -> Iterator[Finding]:
    """Column mapping, on the reader's side."""
    protocol = case.subject.protocol
    if not _reader_supports(protocol, features.COLUMN_MAPPING, legacy=2):
        yield Finding(
            path=features.COLUMN_MAPPING,
            found=f"protocol {protocol}",
            wanted="columnMapping for readers",
            message="the protocol does not require column mapping of readers",
        )


def mode_is(*modes: str) -> Check:
    """Column mapping is in one of the modes."""

    def check(case: Case) -> Iterator[Finding]:
        """The mode in any case of its letters; a new or replaced table may leave it open."""
        if case.subject.metadata.get(
            keys.COLUMN_MAPPING_MODE
        ).lower() not in modes and not _is_set_up(case, keys.COLUMN_MAPPING_MODE):
            yield mode_finding(case, modes)

    return check


def base_is_on(case: Case) -> Iterator[Finding]:
    """The base is enabled; a new or replaced table may leave it open."""
    base = COMPATS[case.compat.base or ""]
    if not case.subject.metadata.flag(base.key) and not _is_set_up(case, base.key):
        yield property_finding(case, base.key, "true", f"and {case.compat} requires {base}")


def row_tracking_is_on(case: Case) -> Iterator[Finding]:
    """Row tracking is on, or left open by a new or replaced table, and listed for writers."""
    if not case.subject.metadata.flag(keys.ENABLE_ROW_TRACKING) and not _is_set_up(
        case, keys.ENABLE_ROW_TRACKING
    ):
        yield property_finding(
            case, keys.ENABLE_ROW_TRACKING, "true", f"and {case.compat} needs it"
        )
    if features.ROW_TRACKING not in (case.subject.protocol.writer_features or ()):
        yield Finding(
            path=features.ROW_TRACKING,
            found="not listed",
            wanted="listed in writerFeatures",
            message=f"feature {features.ROW_TRACKING} is missing, and {case.compat} needs it",
        )


def deletion_vectors_are_unsupported(case: Case) -> Iterator[Finding]:
    """Neither the protocol nor the one before it has deletion vectors; the property is not read."""
    subject = case.subject
    states = [subject.after] if subject.before is None else [subject.after, subject.before]
    if any(_reader_supports(state.protocol, features.DELETION_VECTORS) for state in states):
        yield Finding(
            path=features.DELETION_VECTORS,
            found="supported, now or before",
            wanted="not supported",
            message=f"the protocol has deletionVectors, which {case.compat} does not allow",
        )


def disallowed_features(case: Case) -> Iterator[Finding]:
    """The list of allowed features, longer than the protocol's, in any case of the letters."""
    allowed = {name.lower() for name in ALLOWED[case.compat.feature] | _TOLERATED}
    for name in sorted(case.subject.protocol.feature_names):
        if name.lower() not in allowed:
            yield Finding(
                path=name,
                found="supported",
                wanted="not supported",
                message=f"feature {name} is not among those that {case.compat} allows",
            )


def types_are_known(version: int) -> Check:
    """Types on the list."""
    excluded = is_outside(version)

    def check(case: Case) -> Iterator[Finding]:
        """Types on the list. Collations pass, except on map keys, where no schema is parsed."""
        yield from types_outside(case, excluded, "a type that the kernel knows")
        for path, name in collated_columns(case):
            if path[-1] == "key":
                yield type_finding(case, path, f"string collate {name}", "string")

    return check


def partition_types(case: Case) -> Iterator[Finding]:
    """Partition columns by their name in small letters, looked up exactly."""
    metadata = case.subject.metadata
    columns = {column.name: column for column in metadata.schema}
    for name in metadata.partition_columns:
        column = columns.get(name.lower())
        if column is None:
            message = f"partition column {name.lower()} is not found in the schema"
            yield type_finding(case, (name,), name, "a name in small letters", message)
        elif not is_partition_type(column.type):
            yield type_finding(case, (name,), str(column.type), "a type without parts")


def _is_halved(entry: IndexedField) -> bool:
    return (ID_KEY in entry.field.metadata) != (PHYSICAL_NAME_KEY in entry.field.metadata)


def mapping_is_not_halved(case: Case) -> Iterator[Finding]:
    """A field has both an id and a physical name, or neither, and is then given both."""
    for entry in index_schema(case.subject.metadata).misnamed:
        if _is_halved(entry):
            yield name_finding(entry)


def physical_names(case: Case) -> Iterator[Finding]:
    """As the protocol has it, except that fields with neither id nor name are given both."""
    for entry in index_schema(case.subject.metadata).misnamed:
        if ID_KEY in entry.field.metadata or PHYSICAL_NAME_KEY in entry.field.metadata:
            yield name_finding(entry)


def type_changes_suit_iceberg(case: Case) -> Iterable[Finding]:
    """The history of types, where the reader's side has the feature."""
    names = (features.TYPE_WIDENING, features.TYPE_WIDENING_PREVIEW)
    if any(_reader_supports(case.subject.protocol, name) for name in names):
        return unsuitable_changes(case)
    return ()


def _no_key(keys: tuple[str, ...], what: str) -> Check:
    def check(case: Case) -> Iterator[Finding]:
        """Columns at the top and within structs; what is below arrays and maps goes unseen."""
        for entry in index_schema(case.subject.metadata).fields_with(*keys):
            # The kernel does not look below arrays and maps.
            if not entry.in_collection:
                where = render_path(entry.path)
                held = ", ".join(key for key in keys if key in entry.field.metadata)
                message = f"column {where} has {held} in its metadata"
                yield Finding(path=where, found=held, wanted=f"no {what}", message=message)

    return check


no_invariants: Final = _no_key((INVARIANTS_KEY,), "invariant")
no_generated_columns: Final = _no_key((GENERATION_EXPRESSION_KEY,), "generation expression")
# A part of the three keys is refused as inconsistent, all of them as an identity column.
no_identity_columns: Final = _no_key(_IDENTITY, "identity column")


def files_have_statistics(case: Case) -> Iterator[Finding]:
    """Statistics are there; what they hold is not looked at."""
    for add in case.subject.adds:
        if add.stats is None:
            message = f"file {add.path} has no statistics"
            yield Finding(path=add.path, found="none", wanted="statistics", message=message)


def _switch(case: Case) -> tuple[bool, bool]:
    """Whether the feature was enabled before and is now, on a table that is not replaced."""
    subject, key = case.subject, case.compat.key
    now = subject.metadata.flag(key)
    if subject.before is None or subject.replaces:
        return now, now
    return subject.before.metadata.flag(key), now


def _switch_finding(case: Case, *, on: bool) -> Finding:
    text = "can be enabled only when the table is created" if on else "cannot be disabled again"
    return Finding(
        path=case.compat.key,
        found="true" if on else "not true",
        wanted="not true" if on else "true",
        message=f"{case.compat} {text}",
    )


def enabled_at_creation(case: Case) -> Iterator[Finding]:
    """Not enabled on an existing table, unless it is replaced."""
    if _switch(case) == (False, True):
        yield _switch_finding(case, on=True)


def stays_enabled(case: Case) -> Iterator[Finding]:
    """Not disabled on an existing table, unless it is replaced."""
    if _switch(case) == (True, False):
        yield _switch_finding(case, on=False)


def enablement_is_fixed(case: Case) -> Iterator[Finding]:
    """Neither enabled nor disabled on an existing table, unless it is replaced."""
    yield from enabled_at_creation(case)
    yield from stays_enabled(case)


def key_structs_stay_equal(case: Case) -> Iterator[Finding]:
    """Structs that are keys, or keys of maps inside keys, stay equal to the last comment."""
    before, after = case.subject.before, case.subject.metadata
    if before is not None and before.metadata.schema_string != after.schema_string:
        for path, old, new in _unequal_keys(before.metadata.schema, after.schema, ()):
            where = render_path(path)
            message = f"the struct {where} is the key of a map and changes"
            found = str(new) if str(new) != str(old) else "other metadata"
            yield Finding(path=where, found=found, wanted=str(old), message=message)


def _unequal_keys(
    old: DataType, new: DataType, path: ColumnPath
) -> Iterator[tuple[ColumnPath, DataType, DataType]]:
    """Every map is looked at, wherever it is, and its key compared only if it is a struct."""
    match old, new:
        case Struct(), Struct():
            for was, now in matched_fields(old, new):
                yield from _unequal_keys(was.type, now.type, (*path, now.name))
        case Array(element), Array(other):
            yield from _unequal_keys(element, other, (*path, "element"))
        case Map(), Map():
            here = (*path, "key")
            if not (isinstance(old.key, Struct) and isinstance(new.key, Struct)):
                yield from _unequal_keys(old.key, new.key, here)
            elif old.key != new.key:
                yield here, old.key, new.key
            yield from _unequal_keys(old.value, new.value, (*path, "value"))
        case _:
            pass


def defaults_are_literals(case: Case) -> Iterator[Finding]:
    """Defaults that Java's parsers take for a value of the type, which is more and less than SQL.

    More: any text is a boolean, whatever begins and ends with a quote is text, NaN, Infinity and
    hexadecimal floats are numbers, and moments need no quotes. Less: no NULL, no blanks, no suffix
    of a number, no typed literal, moments only as ISO 8601 writes them, with a zone for a timestamp
    and without one for a timestamp_ntz, and nothing at all for a byte.
    """
    yield from bad_defaults(case, is_java_literal_of)
