"""Actions to JSON lines and back, without losing what is not understood.

This is the careful path, for single commits. Replay of whole logs decodes straight into
columns (``twinlake.log.commit_decoder``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.actions.files import EXTRA_NAME, AddCDCFile, AddFile, RemoveFile
from twinlake.actions.state import (
    CheckpointMetadata,
    CommitInfo,
    DomainMetadata,
    SetTransaction,
    SidecarFile,
    UnknownAction,
)
from twinlake.errors import Code, CorruptTable
from twinlake.protocol import Metadata, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "PRECEDENCE",
    "Action",
    "action_name",
    "check_readable",
    "decode_action",
    "decode_lines",
    "decode_whole_commit",
    "encode_action",
    "encode_lines",
]

_Struct = (
    AddFile
    | RemoveFile
    | AddCDCFile
    | SetTransaction
    | DomainMetadata
    | CommitInfo
    | CheckpointMetadata
    | SidecarFile
)
Action = _Struct | Protocol | Metadata | UnknownAction

_STRUCTS: Final[dict[str, type[_Struct]]] = {
    "commitInfo": CommitInfo,
    "add": AddFile,
    "remove": RemoveFile,
    "cdc": AddCDCFile,
    "txn": SetTransaction,
    "domainMetadata": DomainMetadata,
    "checkpointMetadata": CheckpointMetadata,
    "sidecar": SidecarFile,
}
_VALUES: Final[dict[str, type[Protocol] | type[Metadata]]] = {
    "protocol": Protocol,
    "metaData": Metadata,
}
_NAMES: Final[dict[type, str]] = {cls: name for name, cls in (*_STRUCTS.items(), *_VALUES.items())}
PRECEDENCE: Final = (
    "add",
    "remove",
    "metaData",
    "txn",
    "protocol",
    "cdc",
    "checkpointMetadata",
    "sidecar",
    "domainMetadata",
    "commitInfo",
)
"""Which action counts should a line hold several: Delta Spark's order, the first one does."""

_KNOWN: Final[dict[type, frozenset[str]]] = {
    cls: frozenset(f.encode_name for f in msgspec.structs.fields(cls)) - {EXTRA_NAME}
    for cls in _STRUCTS.values()
}


def action_name(action: Action) -> str:
    """The key of the action in its JSON line."""
    return action.name if isinstance(action, UnknownAction) else _NAMES[type(action)]


def decode_action(name: str, value: Any) -> Action:
    """The action of that name from plain data; ``msgspec.ValidationError`` on a wrong shape."""
    if name in _STRUCTS:
        cls = _STRUCTS[name]
        if not isinstance(value, dict):
            return msgspec.convert(value, cls)
        extra = {k: v for k, v in value.items() if k not in _KNOWN[cls]}
        return _convert(cls, value, extra)
    if name in _VALUES:
        return _VALUES[name].from_dict(value)
    return UnknownAction(name, value)


def _convert(cls: type[_Struct], value: dict[str, Any], extra: dict[str, Any]) -> _Struct:
    known = {k: v for k, v in value.items() if k not in extra} if extra else value
    try:
        typed = msgspec.convert(known, cls)
    except msgspec.ValidationError:
        # commitInfo is free-form: a known key may hold something else (Delta protocol).
        foreign = {k: v for k, v in known.items() if cls is CommitInfo and not _is_usual(k, v)}
        if not foreign:
            raise
        return _convert(cls, value, extra | foreign)
    return msgspec.structs.replace(typed, extra=extra) if extra else typed


def _is_usual(key: str, value: Any) -> bool:
    try:
        msgspec.convert({key: value}, CommitInfo)
    except msgspec.ValidationError:
        return False
    return True


def decode_lines(data: bytes, *, source: str) -> Iterator[Action]:
    """The actions of a commit file; ``source`` names it in errors."""
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            parsed = msgspec.json.decode(line)
            if not isinstance(parsed, dict):
                raise msgspec.ValidationError(f"Expected `object`, got `{type(parsed).__name__}`")
            # Writers may spell absent actions as null beside the one that is there.
            present = [(k, v) for k, v in parsed.items() if v is not None]
            actions = [decode_action(name, value) for name, value in present]
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise CorruptTable(
                Code.LOG_CORRUPT,
                f"Line {number} of {source} is not a valid action.",
                why=str(error) or type(error).__name__,
                fix="Restore the file from a backup; twinlake never edits a published commit.",
                fields={"file": source, "line": number},
            ) from error
        yield from actions if len(actions) <= 1 else _counting(actions)


def decode_whole_commit(data: bytes, *, source: str) -> tuple[Action, ...]:
    """All actions of a commit file, of which there is at least one.

    Raises:
        CorruptTable: a line is no action, or no line is: what is left of a file that was cut off.
    """
    actions = tuple(decode_lines(data, source=source))
    if not actions:
        raise CorruptTable(
            Code.LOG_CORRUPT,
            f"{source} holds no action.",
            why=f"the file has {len(data)} byte(s); a commit consists of at least one action",
            fix="Restore the file from a backup, or open an earlier version.",
            fields={"file": source, "size": len(data)},
        )
    return actions


def _counting(actions: list[Action]) -> list[Action]:
    """Of several actions on one line the one that counts, and those nobody has a name for."""
    known = [a for a in actions if not isinstance(a, UnknownAction)]
    first = sorted(known, key=lambda action: PRECEDENCE.index(action_name(action)))[:1]
    return first + [a for a in actions if isinstance(a, UnknownAction)]


def encode_action(action: Action) -> bytes:
    """The action as one JSON line, without the line break."""
    name = action_name(action)
    match action:
        case UnknownAction():
            value: Any = action.value
        case Protocol() | Metadata():
            value = action.to_dict()
        case _ if action.extra:
            value = msgspec.to_builtins(action)
            value |= value.pop(EXTRA_NAME)
        case DomainMetadata():
            # Its fields are all required, so nothing may be omitted except our own.
            value = {k: v for k, v in msgspec.to_builtins(action).items() if k != EXTRA_NAME}
        case _:
            value = action
    return msgspec.json.encode({name: value})


def check_readable(action: Action) -> None:
    """Raise unless the action can be written and read again: values are not checked when made.

    Raises:
        ValueError, TypeError, OverflowError, RecursionError: what is wrong with it.
    """
    kind = _STRUCTS.get(action_name(action))
    if kind is not None:
        msgspec.json.decode(msgspec.json.encode(action), type=kind)
        return
    for name, value in msgspec.json.decode(encode_action(action)).items():
        decode_action(name, value)


def encode_lines(actions: Iterable[Action]) -> bytes:
    """A commit file: one action a line."""
    return b"".join(encode_action(action) + b"\n" for action in actions)
