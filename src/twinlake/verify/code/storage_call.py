"""Storage calls as the explorer sees them: what each touches, and what can go wrong with it.

Two calls are independent if neither writes what the other looks at; then no result depends on
their order, and only one order is run. What a call touches is declared here, once, for
every operation of the storage port.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from twinlake.errors import Code, UserError
from twinlake.storage import Fault

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "FAULTS",
    "NO_FOOTPRINT",
    "FaultName",
    "Footprint",
    "PlacedFault",
    "StorageCall",
    "are_dependent",
    "find_fault",
    "footprint",
    "storage_fault",
]

_READS: Final = frozenset({"read", "read_range", "head"})
_WRITES: Final = frozenset({"create", "put", "delete"})


class StorageCall(NamedTuple):
    """One storage call that an actor is about to make."""

    operation: str
    key: str
    """The object; for a listing the folder."""
    after: str = ""
    """For a listing: the key it starts after."""

    def __str__(self) -> str:
        return f"{self.operation} {self.key}"


class FaultName(StrEnum):
    """What can go wrong with a call.

    A crash is one *before* the call. One after it is the same as one before the next call: nothing
    that others can see happens in between.
    """

    ERROR = "error"
    LOST_REPLY = "lost-reply"
    CRASH = "crash"
    STALE_LIST = "stale-list"

    def applies_to(self, operation: str) -> bool:
        """Whether the fault makes a difference to such a call."""
        return operation in _APPLIES[self]


_ALL: Final = _READS | _WRITES | {"list_from"}
_APPLIES: Final[Mapping[FaultName, frozenset[str]]] = {
    FaultName.ERROR: _ALL,
    # The lost reply of a call without an effect is an error like any other.
    FaultName.LOST_REPLY: _WRITES,
    FaultName.CRASH: _ALL,
    FaultName.STALE_LIST: frozenset({"list_from"}),
}
_STORAGE_FAULTS: Final[Mapping[FaultName, Fault]] = {
    FaultName.ERROR: Fault.before(),
    FaultName.LOST_REPLY: Fault.after(),
    FaultName.CRASH: Fault.crash_before(),
}
_WITHOUT_EFFECT: Final = frozenset({FaultName.ERROR, FaultName.CRASH, FaultName.STALE_LIST})
FAULTS: Final[tuple[FaultName, ...]] = tuple(FaultName)
"""Every kind of fault, in the order they are tried."""


def find_fault(name: str) -> FaultName:
    """A kind of fault by its name."""
    try:
        return FaultName(name)
    except ValueError as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"There is no fault {name!r}.",
            fix=f"Choose one of: {', '.join(FAULTS)}.",
            fields={"fault": name},
        ) from error


def storage_fault(name: FaultName | None) -> Fault | None:
    """The fault as the store in memory knows it; a stale listing is made by the caller."""
    return None if name is None else _STORAGE_FAULTS.get(name)


class Footprint(NamedTuple):
    """What a call looks at and what it writes."""

    key: str = ""
    writes: bool = False
    lists: bool = False
    after: str = ""


NO_FOOTPRINT: Final = Footprint()


def footprint(call: StorageCall, fault: FaultName | None = None) -> Footprint:
    """What a call touches; one that fails before its effect touches nothing.

    A stale listing shows the folder as it was when the run began, with the actor's own writes, so
    nobody else can change what it says.
    """
    if fault in _WITHOUT_EFFECT:
        return NO_FOOTPRINT
    if call.operation == "list_from":
        folder = f"{call.key}/" if call.key else ""
        return Footprint(folder, lists=True, after=call.after)
    return Footprint(call.key, writes=call.operation in _WRITES)


def are_dependent(one: Footprint, other: Footprint) -> bool:
    """Whether the order of two calls of different actors can matter.

    >>> read, write = footprint(StorageCall("read", "a/1")), footprint(StorageCall("put", "a/1"))
    >>> are_dependent(read, write), are_dependent(read, read)
    (True, False)
    >>> are_dependent(write, footprint(StorageCall("list_from", "a")))
    True
    """
    if not (one.writes or other.writes):
        return False
    if one.lists or other.lists:
        listing, written = (one, other) if one.lists else (other, one)
        return written.key.startswith(listing.key) and written.key > listing.after
    return one.key == other.key


@dataclass(frozen=True, slots=True, order=True)
class PlacedFault:
    """A fault at one call of one actor; calls count from 1."""

    actor: int
    call: int
    fault: FaultName
