"""Keys, the URL-encoded paths of the log, and the places that URLs name.

Two forms of a path exist and are never mixed: a *key* is decoded and relative to a store's root,
a *log path* is a URI reference as the Delta protocol asks (RFC 2396). Encoding is the one
of ``java.net.URI``, which Hadoop and Delta Spark print: ``/ = : + , ; @ & $ ! ~ * ' ( )`` and
letters of any alphabet stay, everything else becomes ``%XX`` of its UTF-8 bytes. A path is
decoded exactly once: ``a%2520b`` in the log is ``a%20b`` on disk.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from typing import NoReturn
from urllib.parse import unquote

from twinlake.errors import Code, CorruptTable, UserError

__all__ = [
    "SPELLS_UTF8",
    "Location",
    "check_file_name",
    "check_key",
    "check_log_path",
    "check_new_path",
    "decode_path",
    "encode_path",
    "locate",
    "parse_location",
    "split_scheme",
]

# An empty, "." or ".." segment, or a NUL, anywhere. One search keeps the check under a microsecond.
_SUSPECT = re.compile(r"(?:^|/)\.{0,2}(?:/|\Z)|\x00")

# What java.net.URI quotes in a path: ASCII outside its list, and separators and controls beyond.
_QUOTED = re.compile(
    r"[^A-Za-z0-9\-_.!~*'():@&=+$,;/\u00a1-\U0010ffff]"
    r"|[\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
)
_SURROGATE = re.compile(r"[\ud800-\udfff]")
SPELLS_UTF8 = sys.getfilesystemencoding().lower().replace("-", "") == "utf8"
"""Whether this process names files in UTF-8."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):(//)?")

#: Every spelling of a scheme and the one we print.
ALIASES: dict[str, str] = {
    "file": "file",
    "memory": "memory",
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "gcs": "gs",
    "az": "az",
    "azure": "az",
    "abfs": "abfss",
    "abfss": "abfss",
}


def check_key(key: str) -> str:
    """The key itself, if it stays below the root of a store and names one object.

    >>> check_key("_delta_log/00000000000000000000.json")
    '_delta_log/00000000000000000000.json'
    """
    if _SUSPECT.search(key):
        raise UserError(
            Code.PATH_UNSAFE,
            f"The key {key!r} cannot be used.",
            why="a key is relative and has no empty, '.' or '..' segment and no NUL",
            fix="Name the object by its path below the root of the store.",
            fields={"path": key},
        )
    return key


def check_file_name(name: str) -> None:
    """Refuse a name that this process would not spell in UTF-8, as the paths of a log are.

    Elsewhere Python would write another name than the log says, or take a file for one that no
    version names.
    """
    if not SPELLS_UTF8 and not name.isascii():
        shown = name.encode("ascii", "backslashreplace").decode()
        raise UserError(
            Code.PATH_UNSAFE,
            f"This process cannot use the file name '{shown}'.",
            why=f"Python spells names in {sys.getfilesystemencoding()} here, and tables in UTF-8",
            fix="Start the program with `LC_ALL=C.UTF-8`, or with PYTHONUTF8 set to 1.",
            fields={"path": shown, "encoding": sys.getfilesystemencoding()},
        )


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match.group().encode())


def encode_path(path: str) -> str:
    """A decoded relative path as it is written to the log.

    >>> encode_path("day=1 May/100%.parquet")
    'day=1%20May/100%25.parquet'
    """
    if _SURROGATE.search(path):
        raise UserError(
            Code.PATH_UNSAFE,
            f"The path {path!r} cannot be written to the log.",
            why="it is not valid Unicode",
            fix="Rename the file.",
            fields={"path": path},
        )
    encoded = _QUOTED.sub(_percent, path)
    head, slash, rest = encoded.partition("/")
    # A colon in the first segment of a relative reference would read as a scheme.
    return head.replace(":", "%3A") + slash + rest if ":" in head else encoded


def decode_path(encoded: str) -> str:
    """A path of the log, decoded once. Nothing else is changed.

    >>> decode_path("a%2520b/%C3%BC+1")
    'a%20b/ü+1'
    """
    if "%" not in encoded:
        return encoded
    try:
        return unquote(encoded, errors="strict")
    except UnicodeDecodeError as error:
        raise unsafe_path(encoded, "its escapes are not UTF-8") from error


def unsafe_path(path: str, why: str) -> CorruptTable:
    """The error for a path of the log that must not be followed."""
    return CorruptTable(
        Code.PATH_UNSAFE,
        f"The path {path!r} in the log cannot be used.",
        why=why,
        fix="Find out which writer made this commit, and restore the table to a version before it.",
        fields={"path": path},
    )


def normal_segments(path: str, *, original: str) -> str:
    """A decoded path of the log without empty and ``.`` segments, refusing to leave the root."""
    if not path:
        raise unsafe_path(original, "it is empty")
    if not _SUSPECT.search(path):
        return path
    if "\x00" in path:
        raise unsafe_path(original, "it has a NUL character")
    kept: list[str] = []
    for segment in path.split("/"):
        if segment in ("", "."):
            continue
        if segment != "..":
            kept.append(segment)
        elif kept:
            kept.pop()
        else:
            raise unsafe_path(original, "its '..' segments leave the root of the table")
    if not kept:
        raise unsafe_path(original, "it names the root, not a file")
    return "/".join(kept)


def check_log_path(encoded: str) -> None:
    """Refuse a path of the log that is not a file, or that ``..`` segments lead astray.

    A relative one stays below the table; an absolute one, which Delta allows, has no ``..``.
    """
    decoded = decode_path(encoded)
    if split_scheme(encoded) is None and not encoded.startswith("/"):
        normal_segments(decoded, original=encoded)
    elif "\x00" in decoded or ".." in decoded.split("/"):
        raise unsafe_path(encoded, "an absolute path must not have '..' segments or a NUL")


def check_new_path(encoded: str) -> None:
    """Refuse a path that no commit may bring into a log.

    Beyond what ``check_log_path`` refuses that is every ``..``: a file system goes through the
    folder before it, which need not be there, while others take both out of the text.
    """
    check_log_path(encoded)
    if ".." in decode_path(encoded).split("/"):
        raise unsafe_path(encoded, "it has a '..' segment, which readers resolve in different ways")


def split_scheme(text: str) -> str | None:
    """The scheme of a URL, as we print it, or None for a plain path.

    A word before a colon counts only if it is a scheme we know or if ``//`` follows.
    """
    match = _SCHEME.match(text)
    if match is None:
        return None
    known = ALIASES.get(match.group(1).lower())
    if known is not None:
        return known
    return match.group(1).lower() if match.group(2) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A place: scheme as we print it, bucket or container (``authority``), decoded path.

    ``path`` has neither a leading nor a trailing slash.
    """

    scheme: str
    authority: str = ""
    path: str = ""

    @property
    def url(self) -> str:
        """The place as a URL without a trailing slash."""
        path = encode_path(f"/{self.path}") if self.path else ""
        return f"{self.scheme}://{self.authority}{path}"

    @property
    def root(self) -> Location:
        """The bucket, container or file system the place is in."""
        return Location(scheme=self.scheme, authority=self.authority)

    def relative(self, other: Location) -> str | None:
        """The key of ``other`` below this place, or None if it is elsewhere."""
        if (other.scheme, other.authority) != (self.scheme, self.authority):
            return None
        if not self.path:
            return other.path or None
        prefix = f"{self.path}/"
        return other.path[len(prefix) :] if other.path.startswith(prefix) else None


def _refuse(text: str, why: str, fix: str) -> NoReturn:
    # The text may hold a secret: show the place without a query and without user names.
    shown = re.split(r"[?#]", re.sub(r"//[^/@]*@", "//…@", text))[0]
    raise UserError(
        Code.INVALID_ARGUMENT,
        f"{shown!r} cannot be opened.",
        why=why,
        fix=fix,
        fields={"url": shown},
    )


def parse_location(text: str) -> Location:
    """The place that a URL or a plain path names. A URL is decoded, a plain path is literal.

    >>> parse_location("s3a://bucket/a%20b/").url
    's3://bucket/a%20b'
    """
    if not text or "\x00" in text:
        _refuse(text, "it is empty or has a NUL character", "Give a path or a URL.")
    scheme = split_scheme(text)
    if scheme is None:
        return Location(scheme="file", path=_absolute(text))
    match = _SCHEME.match(text)
    rest = text[match.end() :] if match else text
    authority, slash, path = rest.partition("/") if match and match.group(2) else ("", "", rest)
    if scheme not in ALIASES.values():
        _refuse(text, f"the scheme {scheme!r} is not known", f"Use one of {', '.join(ALIASES)}.")
    try:
        decoded = unquote(slash + path, errors="strict")
    except UnicodeDecodeError:
        _refuse(text, "its escapes are not UTF-8", "Encode the URL as UTF-8.")
    if "\x00" in decoded:
        _refuse(text, "it has a NUL character", "Give a path or a URL.")
    if scheme == "file":
        if authority not in ("", "localhost"):
            _refuse(
                text,
                f"it names the host {authority.rpartition('@')[2]!r}",
                "Write file:///path, with three slashes.",
            )
        return Location(scheme=scheme, path=_absolute("/" + decoded))
    return _bucket_location(text, scheme, authority, decoded.strip("/"))


def _absolute(path: str) -> str:
    check_file_name(path)
    try:
        return os.path.abspath(path).strip("/")  # noqa: PTH100
    except FileNotFoundError:
        _refuse(
            path,
            "it is relative, and the working directory of this process is gone",
            "Give an absolute path, or change to a folder that exists.",
        )


def _bucket_location(text: str, scheme: str, authority: str, path: str) -> Location:
    if "?" in text or "#" in text:
        _refuse(
            text,
            "it has a query or a fragment",
            "Pass credentials and settings as options; write '?' as %3F and '#' as %23.",
        )
    # Only abfss names its account before the host; elsewhere an "@" is a pasted secret.
    if "@" in authority and (scheme != "abfss" or ":" in authority):
        _refuse(text, "it has credentials in it", "Pass them as options or in the environment.")
    if scheme != "memory" and not authority:
        _refuse(text, "it names no bucket", f"Write {scheme}://bucket/path.")
    if path and _SUSPECT.search(path):
        _refuse(text, "it has an empty, '.' or '..' segment", "Give the path without them.")
    return Location(scheme=scheme, authority=authority, path=path)


def locate(home: Location, encoded: str) -> Location:
    """Where an absolute path of the log is; one without a scheme is where the table is.

    >>> locate(parse_location("s3://lake/t"), "/other/a%20b").url
    's3://lake/other/a%20b'
    """
    scheme = split_scheme(encoded)
    if scheme is not None and scheme not in ALIASES.values():
        raise unsafe_path(encoded, f"the scheme {scheme!r} is not known")
    check_log_path(encoded)
    if scheme is None:
        path = normal_segments(decode_path(encoded), original=encoded)
        return Location(scheme=home.scheme, authority=home.authority, path=path)
    try:
        return parse_location(encoded)
    except UserError as error:
        raise unsafe_path(encoded, error.why) from error
