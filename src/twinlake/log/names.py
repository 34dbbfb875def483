"""The names of the files of a log, and what each of them is.

Names are matched whole, never by suffix: ``.compacted.json``, ``.checkpoint.<uuid>.json`` and
staged commits all end in ``.json`` (Delta protocol, Delta Log Entries).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

__all__ = [
    "IMPORT_MARK",
    "LAST_CHECKPOINT_KEY",
    "LOG_FOLDER",
    "SIDECAR_FOLDER",
    "LogFile",
    "LogFileKind",
    "checkpoint_key",
    "checksum_key",
    "commit_key",
    "compaction_key",
    "log_prefix",
    "multipart_key",
    "parse_log_file",
    "uuid_checkpoint_key",
]

LOG_FOLDER: Final = "_delta_log"
SIDECAR_FOLDER: Final = f"{LOG_FOLDER}/_sidecars"
LAST_CHECKPOINT_KEY: Final = f"{LOG_FOLDER}/_last_checkpoint"
IMPORT_MARK: Final = re.compile(rf"{LOG_FOLDER}/_import\.(\d{{6}})\.mark")
"""Beside the versions of an import that has not come to its end; the highest number counts."""
# Replay orders actions by twice their version, in 64 bits. Twenty digits can say more.
MAX_VERSION: Final = 2**62 - 1

_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_NAME: Final = re.compile(
    r"(?P<version>\d{20})\.(?:"
    r"(?P<commit>json)"
    r"|(?P<crc>crc)"
    r"|(?P<end>\d{20})\.compacted\.json"
    r"|checkpoint\.(?:"
    r"(?P<classic>parquet)"
    r"|(?P<part>\d{10})\.(?P<parts>\d{10})\.parquet"
    rf"|(?P<uuid>{_UUID})\.(?P<format>json|parquet)"
    r"))",
    re.ASCII,
)


class LogFileKind(Enum):
    """What a file of the log folder is."""

    COMMIT = "commit"
    CHECKSUM = "checksum"
    COMPACTION = "compaction"
    CLASSIC = "classic checkpoint"
    MULTIPART = "multi-part checkpoint"
    UUID = "UUID checkpoint"


_KINDS: Final = {
    "commit": LogFileKind.COMMIT,
    "crc": LogFileKind.CHECKSUM,
    "end": LogFileKind.COMPACTION,
    "classic": LogFileKind.CLASSIC,
    "part": LogFileKind.MULTIPART,
}


@dataclass(frozen=True, slots=True)
class LogFile:
    """One recognised file of the log folder."""

    kind: LogFileKind
    key: str
    version: int
    size: int = 0
    modified_ms: int = 0
    end_version: int = 0
    part: int = 1
    parts: int = 1


def log_prefix(version: int) -> str:
    """The zero-padded version that starts a name."""
    return f"{version:020d}"


def commit_key(version: int) -> str:
    """The key of a commit."""
    return f"{LOG_FOLDER}/{version:020d}.json"


def checksum_key(version: int) -> str:
    """The key of a checksum file."""
    return f"{LOG_FOLDER}/{version:020d}.crc"


def compaction_key(start: int, end: int) -> str:
    """The key of a log compaction file over ``[start, end]``."""
    return f"{LOG_FOLDER}/{start:020d}.{end:020d}.compacted.json"


def checkpoint_key(version: int) -> str:
    """The key of a classic checkpoint."""
    return f"{LOG_FOLDER}/{version:020d}.checkpoint.parquet"


def multipart_key(version: int, part: int, parts: int) -> str:
    """The key of one part of a multi-part checkpoint; parts count from one."""
    return f"{LOG_FOLDER}/{version:020d}.checkpoint.{part:010d}.{parts:010d}.parquet"


def uuid_checkpoint_key(version: int, uuid: str, extension: str) -> str:
    """The key of a UUID-named V2 checkpoint."""
    return f"{LOG_FOLDER}/{version:020d}.checkpoint.{uuid}.{extension}"


def parse_log_file(key: str, size: int = 0, modified_ms: int = 0) -> LogFile | None:
    """What the file is, or None for anything that is not part of the log proper."""
    folder, _, name = key.rpartition("/")
    match = _NAME.fullmatch(name) if folder == LOG_FOLDER else None
    if match is None:
        return None
    found = match.groupdict()
    if max(int(found["version"]), int(found["end"] or 0)) > MAX_VERSION:
        return None
    kind = next((kind for group, kind in _KINDS.items() if found[group]), LogFileKind.UUID)
    return LogFile(
        kind,
        key,
        version=int(found["version"]),
        size=size,
        modified_ms=modified_ms,
        end_version=int(found["end"] or 0),
        part=int(found["part"] or 1),
        parts=int(found["parts"] or 1),
    )
