"""An existing Iceberg table as its metadata file describes it, for import.

Found by the path of a metadata file, by a folder with ``metadata/`` below it, or by a name in a
catalog that PyIceberg knows. Format versions 1 and 2.
"""

from __future__ import annotations

import gzip
import os
import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec

from twinlake.errors import Code, StorageError, UserError
from twinlake.iceberg.catalogs.file_io import store_options
from twinlake.storage import encode_path, open_store, parse_location, resolve

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twinlake.storage import Store

__all__ = ["SourceSnapshot", "SourceTable", "find_metadata", "key_or_url", "plain_location"]

_NAMESPACE: Final = uuid.UUID("f0c1d0a4-7a0e-5f5d-9a3c-6f2b8f3f7e11")
_GZIP: Final = b"\x1f\x8b"
_MOST: Final = 2
_NAME: Final = re.compile(r"(?:v(\d+)|(\d+)-[^/]*?)(?:\.gz)?\.metadata\.json(?:\.gz)?")
_ENDINGS: Final = (".metadata.json", ".metadata.json.gz")
_OLD_SCHEMES: Final = {"s3a://": "s3://", "s3n://": "s3://", "file://": "", "file:": ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSnapshot:
    """One snapshot of the line that leads to the current one."""

    id: int
    timestamp_ms: int
    sequence_number: int
    schema_id: int
    operation: str
    manifest_list: str | None
    manifests: tuple[str, ...] = ()
    """Format version 1 may list manifests without a file for it."""


@dataclass(frozen=True, slots=True)
class SourceTable:
    """The metadata file."""

    document: Mapping[str, Any]
    metadata_location: str

    @property
    def format_version(self) -> int:
        """Of Iceberg."""
        return int(self.document.get("format-version", 1))

    @property
    def location(self) -> str:
        """Where the table is, as a plain path or a URL."""
        return plain_location(self.document["location"]).rstrip("/")

    @property
    def table_id(self) -> str:
        """The table's own id; one from its location where an old writer gave it none."""
        return str(self.document.get("table-uuid") or uuid.uuid5(_NAMESPACE, self.location))

    @property
    def last_column_id(self) -> int:
        """The highest id that was ever given to a column."""
        return int(self.document["last-column-id"])

    @property
    def schemas(self) -> dict[int, Mapping[str, Any]]:
        """Schemas by id, oldest first."""
        listed = self.document.get("schemas") or [self.document["schema"]]
        return {int(one.get("schema-id", 0)): one for one in listed}

    @property
    def current_schema_id(self) -> int:
        """Which of them counts now."""
        return int(self.document.get("current-schema-id", 0))

    @property
    def specs(self) -> dict[int, list[Mapping[str, Any]]]:
        """The fields of each partition spec."""
        listed = self.document.get("partition-specs")
        if listed is None:
            listed = [{"spec-id": 0, "fields": self.document.get("partition-spec", [])}]
        return {int(one["spec-id"]): one["fields"] for one in listed}

    @property
    def default_spec_id(self) -> int:
        """The spec that new files would lie under."""
        return int(self.document.get("default-spec-id", 0))

    @property
    def properties(self) -> Mapping[str, str]:
        """What was set on the table."""
        return self.document.get("properties") or {}

    @property
    def refs(self) -> Mapping[str, Mapping[str, Any]]:
        """Branches and tags; ``main`` among them."""
        return self.document.get("refs") or {}

    def ancestry(self) -> tuple[SourceSnapshot, ...]:
        """The snapshots that led to the current one and are still known, oldest first."""
        known = {one["snapshot-id"]: one for one in self.document.get("snapshots") or ()}
        found: list[SourceSnapshot] = []
        at = self.document.get("current-snapshot-id")
        while at is not None and at in known:
            one = known.pop(at)
            found.append(self._snapshot(one))
            at = one.get("parent-snapshot-id")
        return tuple(reversed(found))

    def _snapshot(self, one: Mapping[str, Any]) -> SourceSnapshot:
        return SourceSnapshot(
            id=one["snapshot-id"],
            timestamp_ms=one["timestamp-ms"],
            sequence_number=one.get("sequence-number", 0),
            schema_id=one.get("schema-id", self.current_schema_id),
            operation=(one.get("summary") or {}).get("operation", "append"),
            manifest_list=one.get("manifest-list"),
            manifests=tuple(one.get("manifests") or ()),
        )

    def problems(self) -> Iterator[str]:
        """What of the table as a whole Delta cannot say."""
        if self.format_version > _MOST:
            yield f"it is of format version {self.format_version}; 1 and 2 can be imported"
        for name, ref in self.refs.items():
            if ref.get("type") == "branch" and name != "main":
                yield f"branch {name}: Delta has one line of versions"
        if self._has_partitions_only():
            yield "all columns are partitions; Delta needs one that is not"
        if self.document.get("encryption-keys") or "encryption.key-id" in self.properties:
            yield "it is encrypted"

    def _has_partitions_only(self) -> bool:
        columns = {one["id"] for one in self.schemas[self.current_schema_id]["fields"]}
        parts = self.specs[self.default_spec_id]
        sources = {part["source-id"] for part in parts if part["transform"] == "identity"}
        return bool(sources) and columns <= sources


def find_metadata(
    source: str, *, durable: bool = True, options: Mapping[str, Any] | None = None
) -> tuple[SourceTable, Store]:
    """The table at a metadata file, a folder, or a name; and a store at its location."""
    location, is_location = source, _is_location(source)
    if not is_location:
        location, own = _by_name(source)
        options = {**own, **(options or {})} or None
    metadata_location = plain_location(location).rstrip("/")
    given = metadata_location
    if not metadata_location.endswith(_ENDINGS):
        metadata_location = _newest(metadata_location, options)
    folder, _, name = metadata_location.rpartition("/")
    try:
        data = open_store(_as_url(folder or "/"), options=options).read(name)
        text = gzip.decompress(data) if data.startswith(_GZIP) else data
        document = msgspec.json.decode(text, type=dict[str, Any])
        table = SourceTable(document, metadata_location)
        _ = table.schemas[table.current_schema_id], table.specs[table.default_spec_id]
        _ = table.location, table.last_column_id
    except StorageError as error:
        if error.code is not Code.STORAGE_NOT_FOUND:
            raise
        raise _not_found(source, error.what) from error
    except (msgspec.DecodeError, OSError, LookupError, TypeError, ValueError) as error:
        raise _not_found(
            source, f"{metadata_location} is no Iceberg metadata file: {error}"
        ) from error
    if is_location:
        _check_location(table, given)
    return table, open_store(_as_url(table.location), durable=durable, options=options)


def _check_location(table: SourceTable, given: str) -> None:
    """Refuse metadata of a table that is elsewhere: the log would be made there, unasked."""
    if given == table.metadata_location:
        # A property lets writers keep the metadata of a table apart from it.
        apart = table.properties.get("write.metadata.path")
        is_there = _is_below(given, table.location) or (
            apart is not None and _is_below(given, plain_location(apart))
        )
    else:
        is_there = _real(given) == _real(table.location)
    if not is_there:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{given} is not where its Iceberg metadata says the table is: {table.location}.",
            why="the table was copied or moved, and the metadata still names the files over there",
            fix=f"Import {table.location}, or rewrite the paths in the metadata of the copy "
            "first, with Iceberg's Spark procedure `rewrite_table_path`.",
            fields={"source": given, "location": table.location},
        )


def _is_below(location: str, folder: str) -> bool:
    return _real(location).startswith(f"{_real(folder).rstrip('/')}/")


def _real(location: str) -> str:
    """A plain location in the one spelling by which locations can be compared.

    >>> _real("s3://b/t/"), _real("//lake/./t/")
    ('s3://b/t', '/lake/t')
    """
    if "://" in location:
        return parse_location(_as_url(location)).url
    return "/" + os.path.realpath(location).lstrip("/")


def plain_location(text: str) -> str:
    """A location without the spellings that other engines have for the same location.

    >>> plain_location("file:/lake/t"), plain_location("s3a://b/t")
    ('/lake/t', 's3://b/t')
    """
    for old, new in _OLD_SCHEMES.items():
        if text.startswith(old):
            return new + text[len(old) :]
    return text


def _as_url(location: str) -> str:
    """A plain location as stores take it: Iceberg's text is literal, and a URL is encoded.

    >>> _as_url("s3://b/100% x"), _as_url("/lake/100% x")
    ('s3://b/100%25%20x', '/lake/100% x')
    """
    scheme, mark, rest = location.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority}{slash}{quote(path)}" if mark else location


def key_or_url(location: str, path: str) -> tuple[str, bool]:
    """A literal path as the Delta log spells it, and whether it is below the table.

    >>> key_or_url("/lake/t", "file:///lake/t/data/a b.parquet")
    ('data/a%20b.parquet', True)
    """
    plain = plain_location(path)
    if plain.startswith(f"{location}/"):
        return encode_path(plain[len(location) + 1 :]), True
    return (_as_url(plain) if "://" in plain else f"file://{quote(plain)}"), False


def read_file(store: Store, location: str, path: str) -> bytes:
    """A file that the metadata names."""
    found, key = resolve(store, key_or_url(location, path)[0])
    return found.read(key)


def _is_location(source: str) -> bool:
    from pathlib import Path

    return "/" in source or source.endswith(_ENDINGS) or Path(source).exists()


def _by_name(name: str) -> tuple[str, dict[str, str]]:
    """The metadata file of a name, and what its catalog knows of the store it is in."""
    catalog, _, table = name.partition(".")
    try:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.utils.config import Config
    except ImportError as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{name} is no path, and looking up names needs PyIceberg.",
            fix="Give a path, or run `pip install 'twinlake[catalogs]'`.",
        ) from error
    try:
        # PyIceberg itself looks at the environment only once.
        settings: Any = Config().get_catalog_config(catalog) or {}
        opened = load_catalog(catalog, **settings)
        try:
            found = opened.load_table(table)
            metadata_location = found.metadata_location
            return metadata_location, store_options(
                _as_url(plain_location(metadata_location)), found.io.properties
            )
        finally:
            opened.close()
    except Exception as error:
        # Each kind of catalog fails in its own words.
        raise _not_found(name, f"{type(error).__name__}: {error}") from error


def _newest(folder: str, options: Mapping[str, Any] | None) -> str:
    """The metadata file of a folder: the one the hint names, or the newest."""
    store = open_store(_as_url(folder), options=options)
    names: dict[int, list[str]] = {}
    for item in store.list_from("metadata"):
        name = item.key.removeprefix("metadata/")
        if (match := _NAME.fullmatch(name)) is not None:
            names.setdefault(int(match[1] or match[2]), []).append(name)
    if not names:
        raise _not_found(folder, "there is no metadata file in metadata/")
    try:
        hint = store.read("metadata/version-hint.text").decode().strip()
    except StorageError as error:
        if error.code is not Code.STORAGE_NOT_FOUND:
            raise
        hint = ""
    number = int(hint) if hint.isdigit() and int(hint) in names else max(names)
    chosen = names[number]
    if len(chosen) > 1:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{folder} has several metadata files of number {number}.",
            why=f"only the catalog knows which of {', '.join(sorted(chosen))} counts",
            fix="Give the path of the metadata file, or the name of the table.",
            fields={"files": sorted(chosen)},
        )
    return f"{folder}/metadata/{chosen[0]}"


def _not_found(source: str, why: str) -> UserError:
    return UserError(
        Code.TABLE_NOT_FOUND,
        f"There is no Iceberg table at {source}.",
        why=why,
        fix="Give a metadata file, the folder of the table, or its name as "
        "CATALOG.NAMESPACE.TABLE.",
        fields={"source": source},
    )
