"""Every error twinlake raises, in one hierarchy.

The second level says what the caller can do about it::

    TwinlakeError
    ├── UserError            fix the input
    ├── UnsupportedFeature   upgrade the client or drop the feature
    ├── CompatViolation      bring the table in line with the rules (has ``report``)
    ├── ConflictError        run the operation again on the newer version (has ``winner``)
    │   ├── ProtocolChangedException
    │   ├── MetadataChangedException
    │   ├── ConcurrentTransactionException
    │   ├── ConcurrentAppendException
    │   ├── ConcurrentDeleteReadException
    │   ├── ConcurrentDeleteDeleteException
    │   └── ConcurrentWriteException
    ├── CommitUnknown        look before retrying
    ├── CorruptTable         repair the table
    └── StorageError         mend the store or the access to it

An error carries a stable code and three sentences: what happened, why, and how to mend it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "Code",
    "CommitUnknown",
    "CompatViolation",
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "ConflictError",
    "CorruptTable",
    "MetadataChangedException",
    "ProtocolChangedException",
    "StorageError",
    "TwinlakeError",
    "UnsupportedFeature",
    "UserError",
    "how_to_add_feature",
    "how_to_drop_column",
    "how_to_drop_constraint",
    "how_to_drop_feature",
    "how_to_give_up",
    "how_to_purge",
    "how_to_restore",
    "how_to_set",
    "how_to_sync",
    "how_to_unset",
    "how_to_upgrade",
    "listed",
]


_LISTED: Final = 20


class Code(StrEnum):
    """The stable codes; the text after ``#:`` is what the reference page prints."""

    INVALID_ARGUMENT = "TWIN-INVALID-ARGUMENT"  #: An argument has a value that cannot be used.
    TABLE_NOT_FOUND = "TWIN-TABLE-NOT-FOUND"  #: There is no Delta table at the given place.
    TABLE_EXISTS = "TWIN-TABLE-EXISTS"  #: A table is already there.
    WAREHOUSE_NOT_FOUND = "TWIN-WAREHOUSE-NOT-FOUND"  #: The server has no warehouse of that name.
    NAMESPACE_NOT_FOUND = "TWIN-NAMESPACE-NOT-FOUND"  #: There is no namespace of that name.
    NAMESPACE_EXISTS = "TWIN-NAMESPACE-EXISTS"  #: A namespace of that name is already there.
    NAMESPACE_NOT_EMPTY = "TWIN-NAMESPACE-NOT-EMPTY"  #: The namespace has tables or namespaces.
    ROUTE_NOT_FOUND = "TWIN-ROUTE-NOT-FOUND"  #: The server has no such route.
    SERVER_BUSY = "TWIN-SERVER-BUSY"  #: The server is at a limit; try again later.
    VERSION_NOT_FOUND = (
        "TWIN-VERSION-NOT-FOUND"  #: The asked version or timestamp is not available.
    )
    SCHEMA_INVALID = (
        "TWIN-SCHEMA-INVALID"  #: A schema, type or DDL text is malformed or not allowed.
    )
    SCHEMA_EVOLUTION = "TWIN-SCHEMA-EVOLUTION"  #: A schema change is not allowed.
    COLUMN_NOT_FOUND = "TWIN-COLUMN-NOT-FOUND"  #: A named column does not exist.
    PREDICATE_INVALID = "TWIN-PREDICATE-INVALID"  #: A predicate could not be understood.
    PROPERTY_INVALID = "TWIN-PROPERTY-INVALID"  #: A table property has a wrong key or value.
    PROPERTY_TWICE = "TWIN-PROPERTY-TWICE"  #: A request sets and removes the same property.
    PROTOCOL_INVALID = "TWIN-PROTOCOL-INVALID"  #: A protocol breaks a structural rule.
    PROTOCOL_VERSION = "TWIN-PROTOCOL-VERSION"  #: The protocol versions are not supported.
    FEATURE_READ = "TWIN-FEATURE-READ"  #: Features needed for reading are not supported.
    FEATURE_WRITE = "TWIN-FEATURE-WRITE"  #: Features needed for writing are not supported.
    FEATURE_UNKNOWN = "TWIN-FEATURE-UNKNOWN"  #: A feature name is not known.
    FEATURE_ENABLE = "TWIN-FEATURE-ENABLE"  #: A feature cannot be added as asked.
    FEATURE_DROP = "TWIN-FEATURE-DROP"  #: A feature cannot be dropped as asked.
    FEATURE_MISMATCH = "TWIN-FEATURE-MISMATCH"  #: Metadata uses a feature the protocol lacks.
    CONSTRAINT = "TWIN-CONSTRAINT"  #: A constraint is missing, duplicated or violated.
    APPEND_ONLY = "TWIN-APPEND-ONLY"  #: An append-only table refuses to lose rows.
    COMMIT_INVALID = "TWIN-COMMIT-INVALID"  #: The actions of a commit contradict each other.
    COMPAT = "TWIN-COMPAT"  #: A table, or a request, breaks Iceberg compat rules.
    CONFLICT_PROTOCOL = "TWIN-CONFLICT-PROTOCOL"  #: A concurrent commit changed the protocol.
    CONFLICT_METADATA = "TWIN-CONFLICT-METADATA"  #: A concurrent commit changed the metadata.
    CONFLICT_TRANSACTION = (
        "TWIN-CONFLICT-TRANSACTION"  #: A concurrent commit wrote the same domain or application id.
    )
    CONFLICT_APPEND = (
        "TWIN-CONFLICT-APPEND"  #: A concurrent commit added files this one should have read.
    )
    CONFLICT_DELETE_READ = (
        "TWIN-CONFLICT-DELETE-READ"  #: A concurrent commit removed files this one read.
    )
    CONFLICT_DELETE_DELETE = (
        "TWIN-CONFLICT-DELETE-DELETE"  #: A concurrent commit removed the same files.
    )
    CONFLICT_REQUIREMENT = (
        "TWIN-CONFLICT-REQUIREMENT"  #: A requirement of an Iceberg commit does not hold any more.
    )
    CONFLICT_WRITE = "TWIN-CONFLICT-WRITE"  #: Other writers took every version tried.
    KEY_REUSED = "TWIN-KEY-REUSED"  #: An idempotency key was used for another request.
    COMMIT_UNKNOWN = "TWIN-COMMIT-UNKNOWN"  #: Whether the commit happened could not be found out.
    LOG_CORRUPT = "TWIN-LOG-CORRUPT"  #: A commit or the log folder is damaged.
    CHECKPOINT_CORRUPT = "TWIN-CHECKPOINT-CORRUPT"  #: A checkpoint is damaged.
    CHECKSUM_MISMATCH = "TWIN-CHECKSUM-MISMATCH"  #: The table state differs from its checksum file.
    DV_CORRUPT = "TWIN-DV-CORRUPT"  #: A deletion vector is damaged.
    PATH_UNSAFE = "TWIN-PATH-UNSAFE"  #: A path or location may not be used.
    STORAGE = "TWIN-STORAGE"  #: The store failed.
    STORAGE_NOT_FOUND = "TWIN-STORAGE-NOT-FOUND"  #: An object is missing in the store.
    SPARK_REQUIRED = "TWIN-SPARK-REQUIRED"  #: The operation moves rows and needs the Spark engine.
    SPARK_WORKERS = (
        "TWIN-SPARK-WORKERS"  #: The Python that Spark's workers run cannot run twinlake.
    )
    NOT_YET = "TWIN-NOT-YET"  #: Known and planned, but not in this release.
    INTERNAL = "TWIN-INTERNAL"  #: Something that twinlake did not expect: a bug of its own.


def listed(texts: Iterable[str], separator: str = "; ") -> str:
    """The first twenty of many reasons, and how many there are: nobody reads more in an error.

    >>> listed(map(str, range(22)), " ")
    '0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 and 2 more (22 in all)'
    """
    found = list(texts)
    shown = separator.join(found[:_LISTED])
    more = len(found) - _LISTED
    return f"{shown} and {more:,} more ({len(found):,} in all)" if more > 0 else shown


class TwinlakeError(Exception):
    """The root: a code, what happened, why, and how to mend it."""

    def __init__(
        self,
        code: Code,
        what: str,
        *,
        why: str = "",
        fix: str = "",
        rule: str | None = None,
        delta_class: str | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.why = why
        self.fix = fix
        self.rule = rule
        self.delta_class = delta_class
        self.fields: dict[str, Any] = dict(fields or {})

    def __str__(self) -> str:
        lines = [f"{self.code}  {self.what}"]
        if self.why:
            lines.append(f"  why: {self.why}")
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.code)!r}, {self.what!r})"

    def _repr_html_(self) -> str:
        from twinlake._html import fields, page, prose

        return page(
            f"{type(self).__name__} {self.code}",
            fields(
                [
                    ("what", prose(self.what)),
                    ("why", prose(self.why)),
                    ("fix", prose(self.fix)),
                    ("rule", self.rule),
                    ("Delta's class", self.delta_class),
                ]
            ),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions rebuild themselves from their arguments alone, and ours take keywords.
        return _restored, (type(self), self.code, self.what), dict(self.__dict__)

    def to_dict(self) -> dict[str, Any]:
        """The error as plain data, for ``--json`` and for servers."""
        named = {"rule": self.rule, "delta_class": self.delta_class}
        return {
            "code": str(self.code),
            "what": self.what,
            "why": self.why,
            "fix": self.fix,
            **{key: value for key, value in named.items() if value is not None},
            **({"fields": self.fields} if self.fields else {}),
        }


def _restored(kind: type[TwinlakeError], code: Code, what: str) -> TwinlakeError:
    """An error on its way out of a pickle; its other values follow as state."""
    return kind(code, what)


class UserError(TwinlakeError):
    """The input cannot be used as it is."""


class UnsupportedFeature(TwinlakeError):
    """The table needs a feature that the client lacks, or the other way round."""


class CompatViolation(TwinlakeError):
    """Iceberg compatibility rules are broken."""

    @property
    def report(self) -> Mapping[str, Any]:
        """The whole report, as ``Report.to_dict()`` gives it."""
        found: Mapping[str, Any] = self.fields.get("report", {})
        return found


class ConflictError(TwinlakeError):
    """A concurrent commit won; run the operation again on the newer version."""

    @property
    def winner(self) -> int | None:
        """The version of the commit that won."""
        winner = self.fields.get("winner")
        return winner if isinstance(winner, int) else None


class ProtocolChangedException(ConflictError):
    """The winning commit changed the protocol."""


class MetadataChangedException(ConflictError):
    """The winning commit changed the metadata."""


class ConcurrentTransactionException(ConflictError):
    """The winning commit wrote the same domain or the same application id."""


class ConcurrentAppendException(ConflictError):
    """The winning commit added files that this transaction should have read."""


class ConcurrentDeleteReadException(ConflictError):
    """The winning commit removed files that this transaction read."""


class ConcurrentDeleteDeleteException(ConflictError):
    """The winning commit removed files that this transaction removes as well."""


class ConcurrentWriteException(ConflictError):
    """No free version was found within the allowed attempts."""


class CommitUnknown(TwinlakeError):
    """The store did not say whether the commit happened; check before a retry."""


class CorruptTable(TwinlakeError):
    """The log contradicts the Delta protocol."""


class StorageError(TwinlakeError):
    """The store failed or refused."""


# What a fix tells its reader to type: the call for Python programs, Spark ones included, and the
# command. Calls, commands, options and keys of a fix stand in backticks; a test compares them with
# what exists.


def how_to_set(key: str, value: str) -> str:
    """Set a table property.

    >>> how_to_set("delta.appendOnly", "false")
    '`Table.set_properties({"delta.appendOnly": "false"})` or `twinlake alter PATH --set \
delta.appendOnly=false`'
    """
    call = f'Table.set_properties({{"{key}": "{value}"}})'
    return f"`{call}` or `twinlake alter PATH --set {key}={value}`"


def how_to_unset(key: str) -> str:
    """Unset a table property."""
    return f'`Table.unset_properties(["{key}"])` or `twinlake alter PATH --unset {key}`'


def how_to_add_feature(name: str) -> str:
    """Add a table feature to the protocol."""
    return f'`Table.add_feature("{name}")` or `twinlake alter PATH --add-feature {name}`'


def how_to_drop_feature(name: str, *, truncate_history: bool = False) -> str:
    """Drop a table feature."""
    argument, option = (
        (", truncate_history=True", " --truncate-history") if truncate_history else ("", "")
    )
    call = f'Table.drop_feature("{name}"{argument})'
    return f"`{call}` or `twinlake alter PATH --drop-feature {name}{option}`"


def how_to_drop_constraint(name: str) -> str:
    """Drop a CHECK constraint."""
    return f'`Table.drop_constraint("{name}")` or `twinlake alter PATH --drop-constraint {name}`'


def how_to_drop_column(name: str) -> str:
    """Drop a column."""
    return f'`Table.drop_column("{name}")` or `twinlake alter PATH --drop-column {name}`'


def how_to_restore() -> str:
    """Go back to an earlier version of the table."""
    return "`Table.restore(VERSION)` or `twinlake restore PATH VERSION --yes`"


def how_to_purge() -> str:
    """Rewrite the files that have deletion vectors or dropped columns."""
    return "`twinlake.spark.reorg(spark, PATH)` or `twinlake reorg PATH --yes`"


def how_to_upgrade(feature: str) -> str:
    """Bring a table to an Iceberg compatibility feature."""
    call = f'Table.upgrade("{feature}", spark=spark)'
    return f"`{call}` or `twinlake upgrade PATH --to {feature} --yes`"


def how_to_give_up(name: str) -> str:
    """Remove rules that only Delta writers keep, such as constraints."""
    call = f'Table.upgrade(FEATURE, give_up=["{name}"])'
    return f"`{call}` or `twinlake upgrade PATH --give-up {name} --yes`"


def how_to_sync() -> str:
    """Write the Iceberg metadata of a table."""
    return "`Table.iceberg.sync()` or `twinlake sync PATH`"
