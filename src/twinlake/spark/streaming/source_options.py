"""The options of a stream that reads a table, named as in Delta Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, UnsupportedFeature, UserError, listed
from twinlake.log import parse_timestamp
from twinlake.spark.streaming.admission import ReadLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["LATEST", "OPTION_NAMES", "SourceOptions"]

LATEST: Final = "latest"
_UNITS: Final = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
_SIZE: Final = re.compile(r"(\d+)\s*(?:(b)|([kmgtp])b?)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What a stream reads of a table."""

    starting_version: int | str | None = None
    """A version, or ``latest`` for what comes after the newest one."""
    starting_timestamp: int | None = None
    """Milliseconds since the epoch."""
    limits: ReadLimits = field(default_factory=ReadLimits)
    ignore_deletes: bool = False
    ignore_changes: bool = False
    skip_change_commits: bool = False
    exclude_regex: re.Pattern[str] | None = None
    fail_on_data_loss: bool = True
    change_feed: bool = False
    """Whether the changes of rows are read instead of the rows."""
    event_time: str | None = None
    """The column in whose order the initial snapshot is read; None for the order of writing."""
    allow_drop: bool = False
    allow_rename: bool = False
    allow_type_change: bool = False
    checkpoint: str | None = None
    """Where the stream has its checkpoint, if it says so."""

    @classmethod
    def parse(cls, given: Mapping[str, Any], *, strict: bool = False) -> SourceOptions:
        """From the options of a user, in any case of letters; ``strict`` refuses unknown ones.

        >>> SourceOptions.parse({"maxBytesPerTrigger": "10m"}).limits.max_bytes
        10485760
        """
        found: dict[str, Any] = {}
        names = {name.casefold(): name for name in OPTION_NAMES}
        unknown = [name for name in given if name.casefold() not in names]
        if strict and unknown:
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"A stream that reads a table has no option {listed(map(repr, unknown), ', ')}.",
                why=f"its options are {', '.join(OPTION_NAMES)}",
                fix="Correct the name, or leave the option out.",
                fields={"unknown": unknown},
            )
        for name, value in given.items():
            option = names.get(name.casefold())
            if option is not None and value is not None:
                found[option] = _OPTIONS[option](option, value)
        _refuse_contradictions(found)
        return cls(
            starting_version=found.get("startingVersion"),
            starting_timestamp=found.get("startingTimestamp"),
            limits=ReadLimits(
                max_files=found.get("maxFilesPerTrigger"), max_bytes=found.get("maxBytesPerTrigger")
            ),
            ignore_deletes=found.get("ignoreDeletes", False),
            # The old name for both.
            ignore_changes=found.get("ignoreChanges") or found.get("ignoreFileDeletion", False),
            skip_change_commits=found.get("skipChangeCommits", False),
            exclude_regex=found.get("excludeRegex"),
            fail_on_data_loss=found.get("failOnDataLoss", True),
            change_feed=found.get("readChangeFeed") or found.get("readChangeData", False),
            event_time=found.get("eventTimeColumn") if found.get("withEventTimeOrder") else None,
            allow_drop=found.get("allowSourceColumnDrop", False),
            allow_rename=found.get("allowSourceColumnRename", False),
            allow_type_change=found.get("allowSourceColumnTypeChange", False),
            checkpoint=found.get("checkpointLocation"),
        )


def _refuse_contradictions(found: Mapping[str, Any]) -> None:
    if "startingVersion" in found and "startingTimestamp" in found:
        raise UserError(
            Code.INVALID_ARGUMENT,
            "Both startingVersion and startingTimestamp are given.",
            why="a stream begins at one place",
            fix="Leave one of the two options out.",
            delta_class="DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
        )
    if found.get("withEventTimeOrder") and not found.get("eventTimeColumn"):
        raise UserError(
            Code.INVALID_ARGUMENT,
            "withEventTimeOrder is on, and no column of event times is named.",
            why="Spark does not tell a source which column has the watermark",
            fix="Name it with the option `eventTimeColumn`.",
        )


def _illegal(name: str, value: object, wanted: str) -> UserError:
    return UserError(
        Code.INVALID_ARGUMENT,
        f"The option {name} is {str(value)!r}.",
        why=f"it has to be {wanted}",
        fix=f"Correct the value of {name}, or leave the option out.",
        delta_class="DELTA_ILLEGAL_OPTION",
        fields={"option": name, "value": str(value)},
    )


def _flag(name: str, value: object) -> bool:
    text = str(value).lower()
    if text not in ("true", "false"):
        raise _illegal(name, value, "true or false")
    return text == "true"


def _positive(name: str, value: object) -> int:
    text = str(value).strip()
    if not text.isascii() or not text.isdigit() or int(text) <= 0:
        raise _illegal(name, value, "a positive integer")
    return int(text)


def _size(name: str, value: object) -> int:
    found = _SIZE.fullmatch(str(value).strip())
    size = int(found[1]) << _UNITS[(found[3] or "").lower()] if found else 0
    if size <= 0:
        raise _illegal(name, value, "a size such as 10485760, 10m or 1g")
    return size


def _version(name: str, value: object) -> int | str:
    text = str(value).strip().lower()
    if text == LATEST:
        return LATEST
    if not text.isascii() or not text.isdigit():
        raise _illegal(name, value, "a version or `latest`")
    return int(text)


def _timestamp(_: str, value: Any) -> int:
    return parse_timestamp(value)


def _pattern(name: str, value: object) -> re.Pattern[str]:
    try:
        return re.compile(str(value))
    except re.error as error:
        raise _illegal(name, value, f"a regular expression: {error}") from error


def _text(name: str, value: object) -> str:
    if not str(value):
        raise _illegal(name, value, "a text that is not empty")
    return str(value)


def _always(name: str, value: object) -> bool:
    text = str(value).lower()
    if text not in ("always", "true", "false"):
        raise _illegal(name, value, "`always`")
    return text != "false"


def _schema_log(name: str, _: object) -> None:
    raise UnsupportedFeature(
        Code.NOT_YET,
        f"The option {name} is not supported yet.",
        why="`follow` reads each batch by the schema of its own version and needs no log of "
        "schemas",
        fix="Leave the option out and allow changes of the schema with `allowSourceColumnDrop`, "
        "`allowSourceColumnRename` or `allowSourceColumnTypeChange`.",
        fields={"name": name},
    )


_OPTIONS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "startingVersion": _version,
    "startingTimestamp": _timestamp,
    "maxFilesPerTrigger": _positive,
    "maxBytesPerTrigger": _size,
    "ignoreDeletes": _flag,
    "ignoreChanges": _flag,
    "ignoreFileDeletion": _flag,
    "skipChangeCommits": _flag,
    "excludeRegex": _pattern,
    "failOnDataLoss": _flag,
    "withEventTimeOrder": _flag,
    "eventTimeColumn": _text,
    "allowSourceColumnDrop": _always,
    "allowSourceColumnRename": _always,
    "allowSourceColumnTypeChange": _always,
    "readChangeFeed": _flag,
    "readChangeData": _flag,
    "schemaTrackingLocation": _schema_log,
    "schemaLocation": _schema_log,
    "checkpointLocation": _text,
}
"""What parses each option."""

OPTION_NAMES: Final = tuple(_OPTIONS)
