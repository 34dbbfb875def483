"""Canonical forms of the paths in a table's log, so that two spellings of one file meet.

There are two, because readers do not agree on what a spelling means. The *key* is what log replay
compares: it takes for one what Delta Spark takes for one, so that a table has the same rows there
and here. The *file* is what a path names on disk, however it is spelled: a commit goes by it, for
no reader may be left to guess. ADR 0023 lists where the two differ.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from twinlake.errors import TwinlakeError
from twinlake.storage import decode_path, encode_path, locate, parse_location, split_scheme

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

    from twinlake.actions import DeletionVectorDescriptor

__all__ = ["CanonicalPaths"]

_IS_ODD_ESCAPE: Final = re.compile(r"%(?![0-9A-F][0-9A-F])").search
_LOWER_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]{2}")

# What ``encode_path`` leaves as it is, and the escapes it makes.
_SAFE: Final = r"[A-Za-z0-9\-_.!~*'()@&=+$,;/]"
_ESCAPES: Final = "|".join(
    re.findall("%([0-9A-F]{2})", encode_path("".join(map(chr, range(1, 128)))))
)
_IS_ENCODED: Final = re.compile(rf"{_SAFE}*(?:%(?:{_ESCAPES}){_SAFE}*)*").fullmatch
_ENCODED: Final = rf"^{_SAFE}*(%({_ESCAPES}){_SAFE}*)*$"
# The same for many paths at once, one after the other with a NUL before each.
_USUAL_BYTES: Final = bytes(n for n in range(128) if re.match(_SAFE, chr(n))) + b"\x00%"
_ODD_BYTES: Final = (
    re.compile(rb"\x00(?:/|\.|\x00|$)").search,
    re.compile(rb"/(?:/|\.)").search,
    re.compile(rf"%(?!{_ESCAPES})".encode()).search,
)
_NAME: Final = re.compile(r"[A-Za-z0-9\-_][A-Za-z0-9\-_.=]*").fullmatch


class CanonicalPaths:
    """The canonical forms of paths in the log of the table at ``root``.

    >>> paths = CanonicalPaths.of("file:///lake/t")
    >>> [paths.key(path) for path in ("./a", "file:/other/%61", "/lake/t/a", "%61")]
    ['a', 'file:///other/a', 'file:///lake/t/a', '%61']
    >>> [paths.file(path) for path in ("./a", "file:/other/%61", "/lake/t/a", "%61")]
    ['a', 'file:///other/a', 'a', 'a']
    """

    def __init__(self, root: str) -> None:
        self._home = parse_location(root)
        # Absolute paths come by the thousand and share a few folders.
        self._folder_key = lru_cache(maxsize=4096)(lambda folder: self._key(f"{folder}/x")[:-1])
        self._folder_file = lru_cache(maxsize=4096)(lambda folder: self._file(f"{folder}/x")[:-1])

    @staticmethod
    @lru_cache(maxsize=64)
    def of(root: str) -> CanonicalPaths:
        """Those of the table at a URL."""
        return CanonicalPaths(root)

    def key(self, path: str) -> str:
        """The form that log replay compares; nearly always the path itself."""
        return _by_folder(path, self._folder_key, self._key) if _is_odd(path) else path

    def vector_key(self, vector: DeletionVectorDescriptor) -> str:
        """The id of a deletion vector; one that is named by a path has spellings as well."""
        if vector.storage_type != "p":
            return vector.unique_id
        return replace(vector, path_or_inline_dv=self.key(vector.path_or_inline_dv)).unique_id

    def file(self, path: str) -> str:
        """The data file that a path names: below the table as encoded, elsewhere as a URL."""
        if _IS_ENCODED(path) and not _is_odd(path):
            return path
        return _by_folder(path, self._folder_file, self._file)

    @staticmethod
    def are_usual(paths: Iterable[str]) -> bool:
        """Whether every path is spelled in the one usual way; says no when in doubt.

        >>> CanonicalPaths.are_usual(["a", "day=1%20May/b"]), CanonicalPaths.are_usual(["a", "./b"])
        (True, False)
        """
        data = "".join(f"\x00{path}" for path in paths).encode(errors="replace")
        return not data.translate(None, _USUAL_BYTES) and not any(s(data) for s in _ODD_BYTES)

    def keys(self, paths: pa.ChunkedArray) -> pa.ChunkedArray:
        """The keys of many paths; the very column if every path is its own."""
        from twinlake.log.paths.columns import key_column

        return key_column(paths, self.key)

    def files(self, paths: pa.ChunkedArray) -> pa.ChunkedArray:
        """The data files that many paths name."""
        from twinlake.log.paths.columns import file_column

        return file_column(paths, _ENCODED, self.file)

    def _key(self, path: str) -> str:
        if not _is_absolute(path):
            # As java.net.URI: segments are normalised, escapes differ in case only.
            text = _LOWER_ESCAPE.sub(lambda match: match.group().upper(), path)
            return _without_dots(text)
        try:
            return locate(self._home, path).url
        except TwinlakeError:
            return path

    def _file(self, path: str) -> str:
        try:
            if not _is_absolute(path):
                return encode_path(_without_dots(decode_path(path)))
            location = locate(self._home, path)
        except TwinlakeError:
            return path
        below = self._home.relative(location)
        return location.url if below is None else encode_path(below)


def _is_odd(path: str) -> bool:
    """Whether a path may not be its own key; one expression for it takes ten times as long."""
    return (
        path[:1] in ("", "/", ".")
        or ":" in path
        or "//" in path
        or "/." in path
        or ("%" in path and _IS_ODD_ESCAPE(path) is not None)
    )


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or split_scheme(path) is not None


def _without_dots(path: str) -> str:
    """A relative path without empty, ``.`` and ``..`` segments; as it is if it leaves the table."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            if not kept:
                return path
            kept.pop()
        elif segment not in ("", "."):
            kept.append(segment)
    return "/".join(kept) or path


def _by_folder(path: str, folder: Callable[[str], str], whole: Callable[[str], str]) -> str:
    above, slash, name = path.rpartition("/")
    return folder(above) + name if slash and _NAME(name) else whole(path)
