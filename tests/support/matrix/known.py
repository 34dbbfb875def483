"""Differences of the matrix that are known: defects of readers, and what their users are told.

An entry says where it applies and which values it explains: what was written and what was read must
be the same but for the defect, so that any other difference of the same column still fails. Errors
of delta-rs, which says aloud what it cannot read, are no differences.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.support.matrix.readers import READERS
from tests.support.matrix.run import DIFFERENT, ERROR

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.support.matrix.run import Outcome

__all__ = ["KNOWN", "Known", "failures", "known_for", "unused"]

_STRUCT: Final = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A difference that is expected. A field that is empty stands for anything."""

    reason: str
    readers: tuple[str, ...]
    explains: Callable[[str, str], bool] = lambda _one, _other: False
    """Whether a value that was written may be read as another."""
    error: str = ""
    """Instead: what the reader says when it fails."""
    groups: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    def applies(self, outcome: Outcome) -> bool:
        """Whether it explains all of a difference."""
        cell = outcome.cell
        pairs = (
            (self.readers, outcome.reader),
            (self.groups, cell.group),
            (self.columns, outcome.column),
            (self.features, cell.feature),
            (self.settings, cell.setting),
        )
        if not all(not allowed or value in allowed for allowed, value in pairs):
            return False
        if outcome.result == ERROR:
            return bool(self.error) and self.error in outcome.detail
        return bool(outcome.wrong) and all(self.explains(*pair) for pair in outcome.wrong)


def _same_by(normal: Callable[[str], str]) -> Callable[[str, str], bool]:
    return lambda one, other: normal(one) == normal(other)


def _empty_for_null(text: str) -> str:
    return text.replace("None", "[]")


def _without_fields(text: str) -> str:
    return _empty_for_null(_STRUCT.sub("{}", text))


def _to_milliseconds(text: str) -> str:
    return re.sub(r"(\.\d{3})\d{3}", r"\1", text)


def _without_padding(text: str) -> str:
    return re.sub(r" +(?=')", "", text)


_FAR_YEARS: Final = ("0001-", "1500-", "1582-", "9999-")
_OLD: Final = ("dates and times before 1900", "timestamps", "partitions before 1900")
_MAPPED: Final = (
    "icebergCompatV1",
    "icebergCompatV2",
    "icebergCompatV3",
    "icebergWriterCompatV1",
    "icebergWriterCompatV3",
)

KNOWN: Final[tuple[Known, ...]] = (
    Known(
        reason="Delta Spark stores binary partition values as text and puts U+FFFD where bytes are "
        "no UTF-8. Every reader returns what was stored; twinlake refuses such values.",
        readers=tuple(READERS),
        groups=("partitions by binary that is not ASCII",),
        explains=lambda _, other: r"\xef\xbf\xbd" in other,
    ),
    Known(
        reason="`spark.sql.parquet.outputTimestampType=TIMESTAMP_MILLIS` asks Spark to store "
        "milliseconds. Every reader returns what was stored.",
        readers=tuple(READERS),
        settings=("milliseconds",),
        explains=_same_by(lambda text: _empty_for_null(_to_milliseconds(text))),
    ),
    Known(
        reason="Iceberg Spark 1.11 reads Parquet pages of version 2 only with "
        "`read.parquet.vectorization.enabled=false`; else it fails with an error.",
        readers=("Iceberg Spark",),
        settings=("pages of version 2",),
        error="Cannot support vectorized reads",
    ),
    Known(
        reason="PyIceberg 0.12 reads INT96 timestamps as nanoseconds: those before 1677 and after "
        "2262 come out wrong. Only icebergCompatV1 lets such files stay; Iceberg Spark and DuckDB "
        "read them right. `twinlake upgrade` to icebergCompatV2 rewrites them.",
        readers=("PyIceberg",),
        features=("icebergCompatV1",),
        columns=("ts", "tss", "times"),
        explains=lambda one, _: any(year in one for year in _FAR_YEARS),
    ),
    Known(
        reason="PyIceberg 0.12 returns empty lists and maps where the table has null, if their "
        "elements or values are structs.",
        readers=("PyIceberg",),
        explains=_same_by(_empty_for_null),
    ),
    Known(
        reason="PyIceberg 0.12 returns NULL for the fields of structs in map keys, in maps in "
        "lists and in lists in map values, if logical and physical names differ. Iceberg Spark "
        "reads the same files right.",
        readers=("PyIceberg",),
        columns=("mls", "msk", "lm", "sl"),
        explains=_same_by(_without_fields),
    ),
    Known(
        reason="`DeltaTable.to_pyarrow_table` of delta-rs 1.6.6 returns NULL for every column of "
        "a table with column mapping, without an error. Its query engine reads them.",
        readers=("delta-rs to_pyarrow_table",),
        features=_MAPPED,
        explains=lambda _, other: other == "no row",
    ),
    Known(
        reason="delta-rs 1.6.6 looks for columns by their physical names, also where the mode of "
        "column mapping is id. Files that an upgrade in place kept have other names: it returns "
        "NULL, without an error. Upgrade such tables without `--in-place`.",
        readers=("delta-rs",),
        features=("icebergWriterCompatV1",),
        explains=lambda _, other: other == "no row",
    ),
    Known(
        reason="PyIceberg 0.12 does not know the type VARIANT and refuses the table.",
        readers=("PyIceberg",),
        groups=("variant",),
        error="validation error for TableMetadata",
    ),
    Known(
        reason="DuckDB 1.5.5 reads VARIANT, but cannot hand it to Arrow.",
        readers=("DuckDB",),
        groups=("variant",),
        error="Unsupported Arrow type VARIANT",
    ),
    Known(
        reason="delta-rs 1.6.6 does not rebase dates and timestamps of Spark's legacy calendar.",
        readers=("delta-rs", "delta-rs to_pyarrow_table"),
        settings=("legacy calendar", "int96, legacy calendar"),
        groups=_OLD,
        explains=lambda one, _: "-" in one,
    ),
    Known(
        reason="delta-rs 1.6.6 reads INT96 timestamps as nanoseconds: those before 1677 and after "
        "2262 come out wrong. Delta Spark writes INT96 into tables without a compat feature.",
        readers=("delta-rs", "delta-rs to_pyarrow_table"),
        groups=("primitives", *_OLD),
        columns=("ts", "tss", "times"),
        explains=lambda one, _: any(year in one for year in _FAR_YEARS),
    ),
    Known(
        reason="delta-rs returns CHAR values as files have them; Spark pads them.",
        readers=("delta-rs", "delta-rs to_pyarrow_table"),
        groups=("char and varchar", "partitions by char"),
        explains=_same_by(_without_padding),
    ),
    Known(
        reason="delta-rs returns a VARIANT as a struct of its two binary parts.",
        readers=("delta-rs", "delta-rs to_pyarrow_table"),
        groups=("variant",),
        explains=lambda _, other: "metadata" in other,
    ),
)


def known_for(outcome: Outcome) -> Known | None:
    """The entry that explains a difference."""
    if outcome.result not in (DIFFERENT, ERROR):
        return None
    return next((known for known in KNOWN if known.applies(outcome)), None)


def unused(outcomes: Iterable[Outcome]) -> list[str]:
    """The entries that explained nothing in a full run: a reader was mended, and they can go."""
    used = {id(known) for outcome in outcomes if (known := known_for(outcome)) is not None}
    return [known.reason for known in KNOWN if id(known) not in used]


def failures(outcomes: Iterable[Outcome]) -> list[str]:
    """What nobody can explain, one line for each reader and setting."""
    found: dict[tuple[str, ...], list[str]] = {}
    for outcome in outcomes:
        if not _is_failure(outcome):
            continue
        why, cell = f"{outcome.result}: {outcome.detail}", outcome.cell
        key = (cell.group, cell.feature, cell.writer, cell.setting, outcome.reader, why)
        found.setdefault(key, []).append(outcome.column)
    return [f"{' | '.join(key[:5])} | {', '.join(cols)}: {key[5]}" for key, cols in found.items()]


def _is_failure(outcome: Outcome) -> bool:
    if outcome.result not in (DIFFERENT, ERROR) or known_for(outcome) is not None:
        return False
    return outcome.result == DIFFERENT or READERS[outcome.reader].must_read
