"""What a conflict rule is and what it may answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from twinlake.commit.read_set import ReadSet, partition_matches
from twinlake.errors import (
    Code,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConflictError,
    MetadataChangedException,
    ProtocolChangedException,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from twinlake.actions import Action, AddFile, Metadata, Protocol
    from twinlake.commit.change import Change
    from twinlake.commit.summary import Winner

__all__ = ["Clash", "ClashKind", "ConflictRule", "Context", "Rebase", "Verdict", "named"]

_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class _Kind:
    error: type[ConflictError]
    code: Code
    delta_class: str
    what: str


class ClashKind(Enum):
    """The ways to lose, with Delta's names for them."""

    PROTOCOL = _Kind(
        ProtocolChangedException,
        Code.CONFLICT_PROTOCOL,
        "DELTA_PROTOCOL_CHANGED",
        "changed the protocol of the table",
    )
    FEATURE_DROP = _Kind(
        ConflictError,
        Code.CONFLICT_PROTOCOL,
        "DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL",
        "changed the table while a feature was being dropped",
    )
    METADATA = _Kind(
        MetadataChangedException,
        Code.CONFLICT_METADATA,
        "DELTA_METADATA_CHANGED",
        "changed the metadata of the table",
    )
    DOMAIN = _Kind(
        ConcurrentTransactionException,
        Code.CONFLICT_TRANSACTION,
        "DELTA_CONCURRENT_TRANSACTION",
        "wrote the same metadata domain",
    )
    APPLICATION = _Kind(
        ConcurrentTransactionException,
        Code.CONFLICT_TRANSACTION,
        "DELTA_CONCURRENT_TRANSACTION",
        "wrote for the same application",
    )
    APPEND = _Kind(
        ConcurrentAppendException,
        Code.CONFLICT_APPEND,
        "DELTA_CONCURRENT_APPEND",
        "added files that this operation should have read",
    )
    DELETE_READ = _Kind(
        ConcurrentDeleteReadException,
        Code.CONFLICT_DELETE_READ,
        "DELTA_CONCURRENT_DELETE_READ",
        "removed files that this operation read",
    )
    DELETE_DELETE = _Kind(
        ConcurrentDeleteDeleteException,
        Code.CONFLICT_DELETE_DELETE,
        "DELTA_CONCURRENT_DELETE_DELETE",
        "removed files that this operation removes as well",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """Our change cannot follow the winner: why, and on what the two overlap."""

    kind: ClashKind
    why: str
    overlap: tuple[str, ...] = ()
    """Everything that overlapped; messages name a few and count the rest."""
    fix: str = ""

    def to_error(self, rule: str, ours: Change, winner: Winner) -> ConflictError:
        """The exception Delta's users know, naming the winning version and its operation."""
        kind = self.kind.value
        return kind.error(
            kind.code,
            f"{ours.operation.name} lost to version {winner.version} ({winner.operation}), "
            f"which {kind.what}.",
            why=self.why,
            fix=self.fix or "Run the operation again on the newer version.",
            rule=rule,
            delta_class=kind.delta_class,
            fields={
                "winner": winner.version,
                "operation": winner.operation,
                "overlap": list(self.overlap),
                "read_version": ours.read_version,
                "isolation_level": str(ours.level),
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebase:
    """Our change can follow the winner once adapted."""

    note: str
    base: Mapping[str, Any] = field(default_factory=dict)
    """Fields of ``Base`` to take over from the winner."""
    actions: tuple[Action, ...] | None = None
    reads: ReadSet | None = None


Verdict = Clash | Rebase | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What rules need besides the two commits; all of it plain functions.

    The defaults know what twinlake itself supports.
    """

    unsupported: Callable[[Protocol], str | None]
    """Why this client cannot follow a protocol, or None."""
    is_concurrent: Callable[[str], bool]
    """Whether a feature may be added under a running transaction."""
    matches: Callable[[Any, Sequence[AddFile], Metadata], Sequence[bool]] = partition_matches
    """For each added file, whether a read predicate may have wanted it."""
    revalidate: Callable[[Change, Winner], str | None] | None = None
    """For DROP FEATURE: why the table after the winner is not fit any more, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictRule:
    """One row of the registry."""

    id: str
    name: str
    check: Callable[[Change, Winner, Context], Verdict]


def named(things: Collection[str], noun: str = "") -> str:
    """A few of them by name, and how many there are in all.

    >>> named(["d", "c", "b", "a"], "file")
    '4 files: a, b, c and 1 more'
    """
    ordered = sorted(things)
    text = ", ".join(ordered[:_SHOWN])
    if len(ordered) > _SHOWN:
        text += f" and {len(ordered) - _SHOWN} more"
    if not noun:
        return text
    return f"{len(ordered)} {noun}{'' if len(ordered) == 1 else 's'}: {text}"
