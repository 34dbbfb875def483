"""Which locations a request may name: those below its warehouse or an allowed location.

A location of Iceberg is literal text. It is resolved before anything is read: schemes, symbolic
links, and segments that become ``..`` or a slash when they are decoded, however often.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from twinlake.errors import Code, UserError
from twinlake.log import LOG_FOLDER, has_table
from twinlake.storage import Location, parse_location, split_scheme
from twinlake.table import shared_store

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.rest.names import TableIdentity
    from twinlake.storage import Store

__all__ = ["LocationPolicy", "home_location", "home_locations", "table_store"]

#: Folders that tables keep for themselves.
_TABLE_FOLDERS: Final = frozenset({"_delta_log", "_iceberg", "_change_data"})
#: In bytes. Keys of object stores end at 1024, and the files of the table come below.
_LONGEST: Final = 800
_LONGEST_SEGMENT: Final = 255
_MOST_DECODINGS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class LocationPolicy:
    """Where the tables of a warehouse may be."""

    warehouse: Location
    allowed: tuple[Location, ...] = ()

    def resolve(self, text: str) -> str:
        """The URL of the table that a location means; ``UserError`` where none may be."""
        place = _resolved(_literal(text))
        homes = (self.warehouse, *self.allowed)
        found = next((one for one in homes if one.relative(place) is not None), None)
        if found is None:
            raise _refused(text, f"it is not below {' or '.join(one.url for one in homes)}")
        below = found.relative(place) or ""
        if _TABLE_FOLDERS & set(below.split("/")):
            raise _refused(text, "tables keep their own files there")
        if place.scheme == "file" and _is_cut_off(Path(f"/{place.path}")):
            raise _refused(text, "it is a file or lies below one, not in a folder")
        return place.url

    def refuse_overlap(self, url: str) -> None:
        """Refuse a new table below or around another, whether or not the catalog knows that one."""
        self.refuse_inside_table(url)
        for found in table_store(url).list_from(""):
            inner, mark, _ = found.key.partition(f"/{LOG_FOLDER}/")
            if mark:
                raise _refused(url, f"the table {url}/{inner} lies in it")

    def refuse_inside_table(self, url: str) -> None:
        """Refuse a location below a Delta table."""
        place = parse_location(url)
        home = next(h for h in (self.warehouse, *self.allowed) if h.relative(place) is not None)
        parts = (home.relative(place) or "").split("/")
        for depth in range(len(parts)):
            above = Location(
                scheme=home.scheme,
                authority=home.authority,
                path="/".join([*filter(None, [home.path]), *parts[:depth]]),
            )
            if above.path and has_table(table_store(above.url)):
                raise _refused(url, f"the table {above.url} is around it")

    def new_root(self, identity: TableIdentity, unique: str) -> str:
        """A location of its own for a new table: readable, and never used before."""
        levels = (*identity.namespace.levels, f"{identity.name}-{unique[:8]}")
        path = "/".join([*filter(None, [self.warehouse.path]), *map(_folder, levels)])
        warehouse = self.warehouse
        return Location(scheme=warehouse.scheme, authority=warehouse.authority, path=path).url


def home_location(text: str) -> Location:
    """A warehouse or an allowed location as the operator wrote it; symbolic links are followed."""
    return _resolved(parse_location(text))


def table_store(url: str) -> Store:
    """The store of a table; the same one each time, so that what is known of it is found again."""
    return shared_store(url, True, None)


def _folder(name: str) -> str:
    """A name as a folder: what URLs or file systems read in a special way is replaced."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in name)
    # Delta readers skip folders that begin so.
    return kept.lower().lstrip("_.")[:80] or "table"


def _literal(text: str) -> Location:
    """The place that a literal location names."""
    if not text or not text.isprintable() or "\\" in text or len(text.encode()) > _LONGEST:
        raise _refused(text, "it is empty, too long, or has characters that no location has")
    scheme = split_scheme(text)
    if scheme is None:
        authority, path = "", text
        if not text.startswith("/"):
            raise _refused(text, "it is relative")
        scheme = "file"
    else:
        rest = text[text.index(":") + 1 :]
        authority, _, path = rest[2:].partition("/") if rest.startswith("//") else ("", "", rest)
    if scheme == "file":
        authority = authority.removeprefix("localhost")
    elif "?" in text or "#" in text or ("@" in authority and scheme != "abfss"):
        raise _refused(text, "it has a query, a fragment or credentials")
    parts = list(path.strip("/").split("/"))
    for part in parts:
        _check_segment(text, part)
    # Parsed once more as a URL, which refuses schemes and hosts that no store has.
    return parse_location(Location(scheme=scheme, authority=authority, path="/".join(parts)).url)


def _check_segment(text: str, segment: str) -> None:
    """Refuse a segment that is special as it stands, or once it is decoded, however often."""
    if len(segment.encode()) > _LONGEST_SEGMENT:
        raise _refused(text, f"a name in it has more than {_LONGEST_SEGMENT} bytes")
    for _ in range(_MOST_DECODINGS):
        if segment in ("", ".", "..") or any(c in segment for c in "/\\\x00"):
            raise _refused(text, "it has an empty, '.' or '..' segment")
        decoded = unquote(segment)
        if decoded == segment:
            return
        segment = decoded
    raise _refused(text, "it is encoded too many times")


def _resolved(place: Location) -> Location:
    if place.scheme != "file":
        return place
    try:
        real = Path(f"/{place.path}").resolve()
    except (OSError, RuntimeError) as error:
        # Python 3.12 and older raise the latter for links that lead round in a circle.
        raise _refused(place.url, "a symbolic link in it leads nowhere") from error
    return Location(scheme="file", path=str(real).strip("/"))


def _is_cut_off(path: Path) -> bool:
    """Whether no folder can be made at a path, because something else is there."""
    try:
        above = next(one for one in (path, *path.parents) if one.exists())
    except OSError:
        return True
    return not above.is_dir()


def _refused(text: str, why: str) -> UserError:
    # The text may hold a secret where nobody expects one.
    shown = re.sub(r"//[^/@]*@", "//...@", text[:_LONGEST])
    return UserError(
        Code.PATH_UNSAFE,
        f"The location {shown!r} cannot be used.",
        why=why,
        fix="Leave the location out, choose one below the warehouse, or start the server with "
        "`--allow-location` and a folder around it.",
        fields={"location": shown},
    )


def home_locations(texts: Iterable[str]) -> tuple[Location, ...]:
    """Several of them."""
    return tuple(home_location(text) for text in texts)
