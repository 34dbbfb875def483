"""Checksum files: the totals of a version, to check a replay against and to carry counters along.

They are optional: written after the commit, never overwritten, and a reader that finds none, or
one it cannot read, goes on without.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.actions import (
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
    decode_action,
    encode_action,
)
from twinlake.errors import Code, CorruptTable, StorageError, listed
from twinlake.log.names import checksum_key
from twinlake.log.snapshot import Counters, count_files
from twinlake.protocol import features
from twinlake.storage import Committed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.log.snapshot import Snapshot
    from twinlake.storage import Store

__all__ = [
    "Difference",
    "FileSizeHistogram",
    "VersionChecksum",
    "check_checksum",
    "checksum_of",
    "read_checksum",
    "stated_counters",
    "verify_checksum",
    "write_checksum",
]

# A checksum is written with every commit; beyond this many the lists would dominate it.
_MAX_LISTED: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSizeHistogram:
    """How many files, and how many bytes, lie between two neighbouring boundaries."""

    sorted_bin_boundaries: tuple[int, ...]
    file_counts: tuple[int, ...]
    total_bytes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChecksum:
    """What a checksum file says of its version; None where it says nothing."""

    table_size_bytes: int
    num_files: int
    num_metadata: int = 1
    num_protocol: int = 1
    metadata: Metadata
    protocol: Protocol
    txn_id: str | None = None
    in_commit_timestamp: int | None = None
    set_transactions: tuple[SetTransaction, ...] | None = None
    domain_metadata: tuple[DomainMetadata, ...] | None = None
    num_deleted_records: int | None = None
    num_deletion_vectors: int | None = None
    file_size_histogram: FileSizeHistogram | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def counters(self) -> Counters | None:
        """The totals, if the file has them all."""
        vectors, deleted = self.num_deletion_vectors, self.num_deleted_records
        if vectors is None or deleted is None:
            if self.protocol.is_supported(features.DELETION_VECTORS):
                return None
            vectors = deleted = 0
        return Counters(self.num_files, self.table_size_bytes, vectors, deleted)

    def to_dict(self) -> dict[str, Any]:
        """As the file spells it; what is not known is left out."""
        optional = {
            "txnId": self.txn_id,
            "inCommitTimestampOpt": self.in_commit_timestamp,
            "setTransactions": _listed(self.set_transactions),
            "domainMetadata": _listed(self.domain_metadata),
            "numDeletedRecordsOpt": self.num_deleted_records,
            "numDeletionVectorsOpt": self.num_deletion_vectors,
            "fileSizeHistogram": _histogram_dict(self.file_size_histogram),
        }
        return {
            "tableSizeBytes": self.table_size_bytes,
            "numFiles": self.num_files,
            "numMetadata": self.num_metadata,
            "numProtocol": self.num_protocol,
            "metadata": self.metadata.to_dict(),
            "protocol": self.protocol.to_dict(),
            **{key: value for key, value in optional.items() if value is not None},
            **self.extra,
        }

    @classmethod
    def from_dict(cls, data: Any) -> VersionChecksum:
        """From the JSON of the file; ``msgspec.ValidationError`` on a wrong shape."""
        wire = msgspec.convert(data, _Wire)
        return cls(
            table_size_bytes=wire.table_size_bytes,
            num_files=wire.num_files,
            num_metadata=wire.num_metadata,
            num_protocol=wire.num_protocol,
            metadata=Metadata.from_dict(wire.metadata),
            protocol=Protocol.from_dict(wire.protocol),
            txn_id=wire.txn_id,
            in_commit_timestamp=wire.in_commit_timestamp_opt,
            set_transactions=_actions("txn", wire.set_transactions),
            domain_metadata=_actions("domainMetadata", wire.domain_metadata),
            num_deleted_records=wire.num_deleted_records_opt,
            num_deletion_vectors=wire.num_deletion_vectors_opt,
            # Older Delta Spark releases call it histogramOpt.
            file_size_histogram=_histogram(data.get("fileSizeHistogram"))
            or _histogram(data.get("histogramOpt")),
            extra={k: v for k, v in data.items() if k not in _KNOWN},
        )


class _Wire(msgspec.Struct, rename="camel"):
    table_size_bytes: int
    num_files: int
    metadata: dict[str, Any]
    protocol: dict[str, Any]
    num_metadata: int = 1
    num_protocol: int = 1
    txn_id: str | None = None
    in_commit_timestamp_opt: int | None = None
    set_transactions: list[dict[str, Any]] | None = None
    domain_metadata: list[dict[str, Any]] | None = None
    num_deleted_records_opt: int | None = None
    num_deletion_vectors_opt: int | None = None


_KNOWN: Final = frozenset(
    [f.encode_name for f in msgspec.structs.fields(_Wire)] + ["fileSizeHistogram", "histogramOpt"]
)


class _WireHistogram(msgspec.Struct, rename="camel"):
    sorted_bin_boundaries: list[int]
    file_counts: list[int]
    total_bytes: list[int]


def _histogram(data: Any) -> FileSizeHistogram | None:
    try:
        wire = msgspec.convert(data, _WireHistogram)
    except msgspec.ValidationError:
        return None
    return FileSizeHistogram(
        sorted_bin_boundaries=tuple(wire.sorted_bin_boundaries),
        file_counts=tuple(wire.file_counts),
        total_bytes=tuple(wire.total_bytes),
    )


def _histogram_dict(histogram: FileSizeHistogram | None) -> dict[str, Any] | None:
    if histogram is None:
        return None
    return {
        "sortedBinBoundaries": histogram.sorted_bin_boundaries,
        "fileCounts": histogram.file_counts,
        "totalBytes": histogram.total_bytes,
    }


def _actions(name: str, values: list[dict[str, Any]] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(decode_action(name, value) for value in values)


def _listed(
    actions: tuple[SetTransaction, ...] | tuple[DomainMetadata, ...] | None,
) -> list[msgspec.Raw] | None:
    if actions is None or len(actions) > _MAX_LISTED:
        return None
    bodies = (
        next(iter(msgspec.json.decode(encode_action(a), type=_Body).values())) for a in actions
    )
    return list(bodies)


_Body = dict[str, msgspec.Raw]


def checksum_of(snapshot: Snapshot) -> VersionChecksum:
    """The checksum of a version; the files are looked at only if no counters were carried along."""
    counters = snapshot.known_counters or snapshot.counters
    vectors = snapshot.protocol.is_supported(features.DELETION_VECTORS)
    info = snapshot.commit_info
    return VersionChecksum(
        table_size_bytes=counters.size_in_bytes,
        num_files=counters.num_files,
        metadata=snapshot.metadata,
        protocol=snapshot.protocol,
        txn_id=info.txn_id if info is not None else None,
        in_commit_timestamp=snapshot.in_commit_timestamp,
        set_transactions=tuple(snapshot.set_transactions.values()),
        domain_metadata=tuple(snapshot.domains.values()),
        num_deleted_records=counters.num_deleted_records if vectors else None,
        num_deletion_vectors=counters.num_deletion_vectors if vectors else None,
    )


def write_checksum(snapshot: Snapshot) -> bool:
    """Write the checksum file of the version unless there is one; says whether it did."""
    data = msgspec.json.encode(checksum_of(snapshot).to_dict()) + b"\n"
    return isinstance(snapshot.store.create(checksum_key(snapshot.version), data), Committed)


def read_checksum(store: Store, version: int) -> VersionChecksum | None:
    """The checksum file of a version; None if there is none or it cannot be read."""
    try:
        return VersionChecksum.from_dict(msgspec.json.decode(store.read(checksum_key(version))))
    except (StorageError, msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One thing in which the table state and its checksum file disagree."""

    field: str
    checksum: Any
    table: Any

    def __str__(self) -> str:
        if self.field in ("metadata", "protocol"):
            return f"{self.field} differs"
        stated, found = _short(self.checksum), _short(self.table)
        return f"{self.field} is {found} in the log and {stated} in the file"


def stated_counters(snapshot: Snapshot) -> Counters | None:
    """The totals the checksum file of exactly this version states, unless it contradicts the log.

    Only what is in memory is compared: the file is there to spare a look at the rest.
    """
    found = read_checksum(snapshot.store, snapshot.version)
    if found is None:
        return None
    listed = found.set_transactions or ()
    known = snapshot.set_transactions
    differences = [
        *_differing("metadata", found.metadata, snapshot.metadata),
        *_differing("protocol", found.protocol, snapshot.protocol),
        *(
            # Writers leave out application ids that have expired.
            one
            for txn in listed
            if txn.app_id in known
            for one in _differing("setTransactions", txn.version, known[txn.app_id].version)
        ),
    ]
    if differences:
        snapshot.warn_of_checksum(map(str, differences))
        return None
    return found.counters


def _differing(field: str, checksum: Any, table: Any) -> list[Difference]:
    return [] if checksum == table else [Difference(field=field, checksum=checksum, table=table)]


def verify_checksum(snapshot: Snapshot, checksum: VersionChecksum) -> list[Difference]:
    """Everything in which the checksum differs from the replayed files and state."""
    # Counted again: carried counters may stem from this very checksum.
    counters = count_files(snapshot.add_files())
    actual: dict[str, Any] = {
        "tableSizeBytes": counters.size_in_bytes,
        "numFiles": counters.num_files,
        "numMetadata": 1,
        "numProtocol": 1,
        "metadata": snapshot.metadata,
        "protocol": snapshot.protocol,
        "numDeletedRecordsOpt": counters.num_deleted_records,
        "numDeletionVectorsOpt": counters.num_deletion_vectors,
        "inCommitTimestampOpt": snapshot.in_commit_timestamp,
        "setTransactions": _versions(snapshot.set_transactions.values()),
        "domainMetadata": {d.domain: d.configuration for d in snapshot.domains.values()},
        "txnId": snapshot.commit_info.txn_id if snapshot.commit_info is not None else None,
    }
    domains, transactions = checksum.domain_metadata, checksum.set_transactions
    stated: dict[str, Any] = {
        "tableSizeBytes": checksum.table_size_bytes,
        "numFiles": checksum.num_files,
        "numMetadata": checksum.num_metadata,
        "numProtocol": checksum.num_protocol,
        "metadata": checksum.metadata,
        "protocol": checksum.protocol,
        "numDeletedRecordsOpt": checksum.num_deleted_records,
        "numDeletionVectorsOpt": checksum.num_deletion_vectors,
        "inCommitTimestampOpt": checksum.in_commit_timestamp,
        "setTransactions": None if transactions is None else _versions(transactions),
        "domainMetadata": None
        if domains is None
        else {d.domain: d.configuration for d in domains if not d.removed},
        "txnId": checksum.txn_id,
    }
    return [
        Difference(field=name, checksum=value, table=actual[name])
        for name, value in stated.items()
        # What either side does not know is no disagreement.
        if value is not None and actual[name] is not None and value != actual[name]
    ]


def _versions(transactions: Any) -> dict[str, int]:
    return {t.app_id: t.version for t in transactions}


def check_checksum(snapshot: Snapshot, checksum: VersionChecksum) -> None:
    """Raise if the checksum differs from the table, naming every difference.

    Raises:
        CorruptTable: with code CHECKSUM_MISMATCH.
    """
    differences = verify_checksum(snapshot, checksum)
    if not differences:
        return
    raise CorruptTable(
        Code.CHECKSUM_MISMATCH,
        f"Version {snapshot.version} of {snapshot.store.url} differs from its checksum file.",
        why=listed(map(str, differences)),
        fix=(
            f"Find out which is right. If it is the log, delete {checksum_key(snapshot.version)}; "
            "else restore the damaged commits or checkpoints from a backup."
        ),
        fields={"version": snapshot.version, "differences": [d.field for d in differences]},
    )


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
