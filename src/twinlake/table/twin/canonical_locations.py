"""One spelling for every location of a data file, so that two that name one file are equal."""

from __future__ import annotations

import posixpath
from collections import Counter
from typing import TYPE_CHECKING
from urllib.parse import unquote

from twinlake.storage import split_scheme

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["canonical_location", "location_of_url", "locations_listed_twice"]


def canonical_location(location: str) -> str:
    """A location, spelled literally, with one scheme and without empty and dot segments.

    >>> canonical_location("file:/lake//t/./a b.parquet"), canonical_location("s3a://lake/t/a")
    ('file:///lake/t/a b.parquet', 's3://lake/t/a')
    """
    scheme = split_scheme(location)
    rest = location if scheme is None else location.partition(":")[2]
    authority = ""
    if scheme is not None and rest.startswith("//"):
        authority, _, rest = rest[2:].partition("/")
    path = posixpath.normpath(f"/{rest.lstrip('/')}")
    return f"{scheme or 'file'}://{authority}{path}"


def location_of_url(url: str) -> str:
    """The canonical location that a percent-encoded URL names."""
    return canonical_location(unquote(url))


def locations_listed_twice(locations: Iterable[str]) -> dict[str, int]:
    """How often each file is listed that is listed more than once, by its canonical location."""
    counts = Counter(canonical_location(location) for location in locations)
    return {location: count for location, count in counts.items() if count > 1}
