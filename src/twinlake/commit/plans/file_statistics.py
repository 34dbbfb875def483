"""Statistics of files whose rows change, and metrics in the form the log keeps them.

Statistics are edited without reading the values in them: a decimal that went through a float
would no longer be a bound of its column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from twinlake.actions import AddFile

__all__ = [
    "file_size_metrics",
    "loosened_stats",
    "rendered",
    "total",
    "total_size",
]

_RAW_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


def loosened_stats(stats: str | None, rows: int) -> str:
    """The statistics of a file whose deletion vector changes.

    The bounds stay true but may be wider than the live rows, and the row count has to be the
    physical one (Delta protocol, Per-file Statistics).
    """
    changed = {
        **_parts(stats),
        "numRecords": msgspec.Raw(str(rows).encode()),
        "tightBounds": msgspec.Raw(b"false"),
    }
    return msgspec.json.encode(changed).decode()


def file_size_metrics(sizes: Iterable[int]) -> dict[str, int]:
    """How large the written files came out, as OPTIMIZE reports it; all zero without files."""
    ranked = sorted(sizes) or [0]
    count = len(ranked)
    return {
        "minFileSize": ranked[0],
        "p25FileSize": ranked[count // 4],
        "p50FileSize": ranked[count // 2],
        "p75FileSize": ranked[count * 3 // 4],
        "maxFileSize": ranked[-1],
    }


def total(counts: Iterable[int | None]) -> int | None:
    """The sum, or None as soon as one part is not known."""
    result = 0
    for count in counts:
        if count is None:
            return None
        result += count
    return result


def rendered(metrics: Mapping[str, int | None]) -> dict[str, str]:
    """Metrics as ``commitInfo`` holds them: strings; what is not known is left out."""
    return {name: str(value) for name, value in metrics.items() if value is not None}


def _parts(stats: str | None) -> Mapping[str, msgspec.Raw]:
    # Statistics may be absent, empty or damaged; then nothing is known, which is always safe.
    if not stats:
        return {}
    try:
        return _RAW_OBJECT.decode(stats)
    except (msgspec.DecodeError, RecursionError):
        return {}


def total_size(files: Sequence[AddFile]) -> int:
    """The bytes of the files together."""
    return sum(file.size for file in files)
