"""The options that Delta's readers and writers take: one row each, and their values.

Names are found whatever their case, as in Spark. An option of ours that cannot be parsed is an
error with Delta's class; one that nobody knows is reported once, so that a misspelt name does not
pass for a setting.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from enum import Flag, auto
from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "OPTIONS",
    "DeltaOption",
    "OptionUse",
    "OptionValues",
    "UnknownOptionWarning",
    "illegal_option",
    "table_properties",
]


class OptionUse(Flag):
    """What an option is for."""

    READ = auto()
    WRITE = auto()
    STREAM_READ = auto()
    STREAM_WRITE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaOption:
    """One option."""

    name: str
    meaning: str
    use: OptionUse


_READS: Final = OptionUse.READ | OptionUse.STREAM_READ
_WRITES: Final = OptionUse.WRITE | OptionUse.STREAM_WRITE

OPTIONS: Final[tuple[DeltaOption, ...]] = (
    DeltaOption(name="path", meaning="The location of the table.", use=_READS | _WRITES),
    DeltaOption(
        name="versionAsOf", meaning="The version of the table to read.", use=OptionUse.READ
    ),
    DeltaOption(
        name="timestampAsOf",
        meaning="The time as of which the table is read.",
        use=OptionUse.READ,
    ),
    DeltaOption(name="readChangeFeed", meaning="Read the changes instead of the rows.", use=_READS),
    DeltaOption(name="readChangeData", meaning="The same as `readChangeFeed`.", use=_READS),
    DeltaOption(name="startingVersion", meaning="The first version of the changes.", use=_READS),
    DeltaOption(
        name="startingTimestamp", meaning="The time from which changes are read.", use=_READS
    ),
    DeltaOption(
        name="endingVersion", meaning="The last version of the changes.", use=OptionUse.READ
    ),
    DeltaOption(
        name="endingTimestamp",
        meaning="The time up to which changes are read.",
        use=OptionUse.READ,
    ),
    *(
        DeltaOption(name=name, meaning=meaning, use=OptionUse.STREAM_READ)
        for name, meaning in {
            "maxFilesPerTrigger": "The most files of a micro-batch.",
            "maxBytesPerTrigger": "About the most bytes of a micro-batch.",
            "ignoreDeletes": "Pass over commits that only delete.",
            "ignoreChanges": "Read rewritten files again.",
            "ignoreFileDeletion": "The same as `ignoreChanges`.",
            "skipChangeCommits": "Pass over commits that change or delete rows.",
            "excludeRegex": "Leave out files whose path matches.",
            "failOnDataLoss": "Fail where the log was cleaned up before it was read.",
            "withEventTimeOrder": "Read the first version in the order of its watermark.",
            "schemaTrackingLocation": "Where changes of the schema are kept.",
            "schemaLocation": "The same as `schemaTrackingLocation`.",
            "streamingSourceTrackingId": "Tells two sources of one query apart.",
            "allowSourceColumnDrop": "Let columns of the source go.",
            "allowSourceColumnRename": "Let columns of the source be renamed.",
            "allowSourceColumnTypeChange": "Let types of the source change.",
        }.items()
    ),
    DeltaOption(name="mergeSchema", meaning="Add the columns that the table lacks.", use=_WRITES),
    DeltaOption(
        name="overwriteSchema",
        meaning="Give the table the columns and partitions of the frame.",
        use=OptionUse.WRITE,
    ),
    DeltaOption(
        name="replaceWhere",
        meaning="Replace the rows that match a condition.",
        use=OptionUse.WRITE,
    ),
    DeltaOption(
        name="partitionOverwriteMode",
        meaning="`dynamic`: replace only the partitions that the frame has rows for.",
        use=OptionUse.WRITE,
    ),
    DeltaOption(
        name="txnAppId",
        meaning="With `txnVersion`: the application whose writes happen once.",
        use=_WRITES,
    ),
    DeltaOption(name="txnVersion", meaning="The number of the write of `txnAppId`.", use=_WRITES),
    DeltaOption(name="userMetadata", meaning="A note in the commit.", use=_WRITES),
    DeltaOption(
        name="dataChange",
        meaning="`false` says that the rows are those that are there, arranged in another way.",
        use=OptionUse.WRITE,
    ),
    DeltaOption(name="checkpointLocation", meaning="Where the query keeps its state.", use=_WRITES),
)
"""Every option that has an effect or is refused; the reference page is made from it."""

_BY_NAME: Final = {option.name.lower(): option for option in OPTIONS}
_TRUTHS: Final = {"true": True, "false": False}
_PREFIXES: Final = ("delta.", "fs.")
"""Table properties of a new table, and settings of the file system."""


class UnknownOptionWarning(UserWarning):
    """An option has no effect."""


# Options that were reported: a loop of writes says it once.
_reported: set[str] = set()


@dataclass(frozen=True, slots=True)
class OptionValues:
    """Options as they were given, looked up whatever their case."""

    given: Mapping[str, str]

    @classmethod
    def of(cls, options: Mapping[str, str | None]) -> OptionValues:
        """Without those that have no value; of two spellings of one name the last counts."""
        return cls({key.lower(): str(text) for key, text in options.items() if text is not None})

    def text(self, name: str) -> str | None:
        """The value as it was given."""
        return self.given.get(name.lower())

    def has(self, *names: str) -> bool:
        """Whether one of these has a value."""
        return any(name.lower() in self.given for name in names)

    def truth(self, name: str) -> bool | None:
        """The value of an option that is true or false; None if it is not there."""
        text = self.text(name)
        if text is None:
            return None
        found = _TRUTHS.get(text.strip().lower())
        if found is None:
            raise illegal_option(name, text, "it is neither `true` nor `false`")
        return found

    def number(self, name: str) -> int | None:
        """The value of an option that is a whole number, zero or more; None without it."""
        text = self.text(name)
        if text is None:
            return None
        try:
            found = int(text)
        except ValueError:
            found = -1
        if found < 0:
            raise illegal_option(name, text, "it is not a whole number of zero or more")
        return found

    def txn(self) -> tuple[str, int] | None:
        """The application and the number of a write that happens once."""
        app, version = self.text("txnAppId"), self.text("txnVersion")
        if app is None and version is None:
            return None
        if app is None or version is None:
            lacking = "txnAppId" if app is None else "txnVersion"
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"Invalid options for idempotent Dataframe writes: {lacking} is not set.",
                why="txnAppId and txnVersion together name a write that happens once",
                fix="Set both `txnAppId` and `txnVersion`, or neither.",
                delta_class="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
                fields={"option": lacking},
            )
        return app, self.number("txnVersion") or 0

    def prefixed(self, prefix: str) -> dict[str, str]:
        """The options below a prefix; their names are in lower case."""
        return {name: text for name, text in self.given.items() if name.startswith(prefix)}

    def warn_of_unknown(self, use: OptionUse, known: Iterable[str] = ()) -> None:
        """Report, once in a process, the options that have no effect."""
        names = {name.lower() for name in known}
        for name in self.given:
            option = _BY_NAME.get(name)
            if (option is not None and option.use & use) or name in names:
                continue
            if name.startswith(_PREFIXES) or name in _reported:
                continue
            _reported.add(name)
            warnings.warn(
                f"twinlake has no option {name!r} for this; it has no effect.",
                UnknownOptionWarning,
                stacklevel=2,
            )


def illegal_option(name: str, text: str, why: str) -> UserError:
    """The error for a value that cannot be meant."""
    return UserError(
        Code.INVALID_ARGUMENT,
        f"Invalid value {text!r} for option {name!r}.",
        why=why,
        fix=f"Correct the option `{name}`, or leave it out.",
        delta_class="DELTA_ILLEGAL_OPTION",
        fields={"option": name, "value": text},
    )


def table_properties(options: Mapping[str, str | None]) -> dict[str, str]:
    """The options that are properties of a new table, spelled as they were given."""
    return {
        key: str(text)
        for key, text in options.items()
        if key.lower().startswith("delta.") and text is not None
    }
