"""May this client read, or write, that table? And if not: because of which features?

Implied and listed features are looked at together, so a table on legacy versions is judged by
the features those versions stand for, not by the integers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, UnsupportedFeature, how_to_add_feature
from twinlake.protocol.feature import ClientSupport
from twinlake.protocol.feature_lookup import FEATURES, active_features

if TYPE_CHECKING:
    from twinlake.protocol.metadata import Metadata
    from twinlake.protocol.protocol import Protocol

__all__ = [
    "CLIENT_FEATURES",
    "Client",
    "ClientLike",
    "check_matches_metadata",
    "check_read",
    "check_read_write",
    "check_write",
    "read_blockers",
    "write_blockers",
]

_READER_VERSIONS: Final = frozenset(range(1, 4))
_WRITER_VERSIONS: Final = frozenset(range(1, 8))


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """What a client understands: features to read and features to write."""

    readers: frozenset[str]
    writers: frozenset[str]
    reader_versions: frozenset[int] = _READER_VERSIONS
    writer_versions: frozenset[int] = _WRITER_VERSIONS
    name: str = "this client"

    @classmethod
    def of(cls, client: ClientLike) -> Client:
        """A client from the features it supports; None is twinlake itself."""
        if client is None:
            return CLIENT_FEATURES
        if isinstance(client, Client):
            return client
        names = frozenset([client] if isinstance(client, str) else client)
        return cls(readers=names, writers=names)


ClientLike = Client | Iterable[str] | None

CLIENT_FEATURES: Final = Client(
    readers=frozenset(
        name
        for name, row in FEATURES.items()
        if row.is_reader and row.client is not ClientSupport.NONE
    ),
    writers=frozenset(name for name, row in FEATURES.items() if row.client is ClientSupport.WRITE),
    name="twinlake",
)
"""What twinlake itself supports."""


def read_blockers(protocol: Protocol, client: ClientLike = None) -> tuple[str, ...]:
    """The features that keep the client from reading, sorted."""
    return tuple(sorted(protocol.reader_requirements - Client.of(client).readers))


def write_blockers(
    protocol: Protocol, client: ClientLike = None, *, metadata: Metadata | None = None
) -> tuple[str, ...]:
    """The features that keep the client from writing, sorted.

    With metadata the gate is finer: a legacy feature that is supported but not in use does not
    block. So a client without an expression evaluator can write to a (1, 4) table that has no
    expression.
    """
    blocking = protocol.writer_requirements - Client.of(client).writers
    if metadata is not None and blocking:
        active = active_features(metadata, protocol.feature_names)
        blocking = frozenset(name for name in blocking if not _idle(name, active))
    return tuple(sorted(blocking))


def _idle(name: str, active: frozenset[str]) -> bool:
    row = FEATURES.get(name)
    return row is not None and row.idle_harmless and name not in active


def check_read(
    protocol: Protocol,
    client: ClientLike = None,
    *,
    table: str | None = None,
    metadata: Metadata | None = None,
) -> None:
    """Raise if the client cannot read the table."""
    _check(protocol, Client.of(client), _label(table, metadata), metadata, read=True, write=False)


def check_write(
    protocol: Protocol,
    client: ClientLike = None,
    *,
    table: str | None = None,
    metadata: Metadata | None = None,
) -> None:
    """Raise if the client cannot write to the table, where it reads no data."""
    _check(protocol, Client.of(client), _label(table, metadata), metadata, read=False, write=True)


def check_read_write(
    protocol: Protocol,
    client: ClientLike = None,
    *,
    table: str | None = None,
    metadata: Metadata | None = None,
) -> None:
    """Raise if the client cannot read and write the table; what blocks reading is named first."""
    _check(protocol, Client.of(client), _label(table, metadata), metadata, read=True, write=True)


def _label(table: str | None, metadata: Metadata | None) -> str:
    return table or (metadata.label if metadata else "")


def _check(
    protocol: Protocol,
    client: Client,
    table: str,
    metadata: Metadata | None,
    *,
    read: bool,
    write: bool,
) -> None:
    # Versions go first: the lists of a version nobody knows may mean anything.
    if (read and protocol.min_reader_version not in client.reader_versions) or (
        write and protocol.min_writer_version not in client.writer_versions
    ):
        _refuse_versions(protocol, client, table)
    if read and (blocking := read_blockers(protocol, client)):
        _refuse_features(blocking, client.readers, client, table, "read")
    if write and (blocking := write_blockers(protocol, client, metadata=metadata)):
        _refuse_features(blocking, client.writers, client, table, "write")


def _refuse_versions(protocol: Protocol, client: Client, table: str) -> None:
    raise UnsupportedFeature(
        Code.PROTOCOL_VERSION,
        f"{_the_table(table)} has protocol versions that {client.name} does not know.",
        why=f"It needs reader version {protocol.min_reader_version} and writer version "
        f"{protocol.min_writer_version}; known are reader versions "
        f"{_numbers(client.reader_versions)} and writer versions "
        f"{_numbers(client.writer_versions)}.",
        fix="Use a newer client.",
        delta_class="DELTA_INVALID_PROTOCOL_VERSION",
        fields={
            "table": table,
            "min_reader_version": protocol.min_reader_version,
            "min_writer_version": protocol.min_writer_version,
            "reader_versions": sorted(client.reader_versions),
            "writer_versions": sorted(client.writer_versions),
        },
    )


def _refuse_features(
    blocking: tuple[str, ...], supported: frozenset[str], client: Client, table: str, verb: str
) -> None:
    reading = verb == "read"
    droppable = [name for name in blocking if name in FEATURES and FEATURES[name].removable]
    fix = "Use a client that supports " + ("it" if len(blocking) == 1 else "them")
    if droppable:
        fix += f", or drop with such a client: {', '.join(droppable)}"
    raise UnsupportedFeature(
        Code.FEATURE_READ if reading else Code.FEATURE_WRITE,
        f"{_the_table(table)} cannot be {'read' if reading else 'written'} by {client.name}: "
        f"it needs {', '.join(blocking)}.",
        why=f"To {verb}, {client.name} supports: {', '.join(sorted(supported)) or 'no feature'}.",
        fix=fix + ".",
        delta_class=f"DELTA_UNSUPPORTED_FEATURES_FOR_{verb.upper()}",
        fields={
            "table": table,
            "features": list(blocking),
            "supported": sorted(supported),
            "operation": verb,
        },
    )


def _the_table(table: str) -> str:
    return f'Table "{table}"' if table else "The table"


def _numbers(versions: frozenset[int]) -> str:
    return ", ".join(str(version) for version in sorted(versions))


def check_matches_metadata(
    protocol: Protocol, metadata: Metadata, *, table: str | None = None
) -> None:
    """Raise if metadata uses a feature that a protocol with lists does not name.

    NOT NULL alone counts for nothing here: kernels write it without ``invariants``.
    """
    if protocol.reader_features is None and protocol.writer_features is None:
        return
    names = protocol.feature_names
    # Features that are only ever named by hand have no say: metadata cannot demand them.
    missing = sorted(
        name for name in active_features(metadata, names) - names if FEATURES[name].auto
    )
    if missing:
        label = _label(table, metadata)
        raise UnsupportedFeature(
            Code.FEATURE_MISMATCH,
            f"{_the_table(label)} uses features that its protocol does not name: "
            f"{', '.join(missing)}.",
            why="A client that goes by the protocol would read or write the table wrongly.",
            fix=f"Run {', '.join(how_to_add_feature(name) for name in missing)}.",
            delta_class="DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH",
            fields={"table": label, "features": missing},
        )
