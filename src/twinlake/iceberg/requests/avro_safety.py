"""Whether an Avro file of a stranger can be handed to the Avro library, found out before it is.

The library follows the schema that the file itself brings, in native code: a record that holds
itself ends the process, an array of items without bytes fills the memory, and so does a block that
unpacks to more than there is room for.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["check_avro"]

_MAGIC: Final = b"Obj\x01"
_SYNC_SIZE: Final = 16
#: No number of Avro takes more bytes.
_LONGEST_VARINT: Final = 10
#: Those of Iceberg's specification nest six levels, and name a type and its fields on each.
_DEEPEST_SCHEMA: Final = 40
_LARGEST_SCHEMA: Final = 1 << 22
_PRIMITIVES: Final = frozenset(
    {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
)
_CODECS: Final = (b"null", b"deflate")


def check_avro(data: bytes, limit: int) -> None:
    """``ValueError`` where a file is not to be decoded, or unpacks to more than ``limit`` bytes.

    Nothing of what is unpacked is kept.
    """
    if not data.startswith(_MAGIC):
        raise ValueError("it is no Avro file")
    metadata, at = _header(data, len(_MAGIC))
    codec = metadata.get(b"avro.codec", b"null")
    if codec not in _CODECS:
        raise ValueError(
            f"its codec is {codec.decode(errors='replace')}; null and deflate are read, "
            "which writers use with write.avro.compression-codec=gzip"
        )
    _check_schema(metadata.get(b"avro.schema", b""))
    left = limit
    for block in _blocks(data, at + _SYNC_SIZE):
        size = len(block)
        if codec == b"deflate":
            size = len(zlib.decompressobj(-zlib.MAX_WBITS).decompress(block, left + 1))
        left -= size
        if left < 0:
            raise ValueError(f"it unpacks to more than {limit:,} bytes")


def _check_schema(text: bytes) -> None:
    if len(text) > _LARGEST_SCHEMA:
        raise ValueError(f"its schema has {len(text):,} bytes")
    try:
        schema = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"its schema is none: {error}") from error
    _SchemaWalk().has_bytes(schema, 0)


@dataclass(slots=True)
class _SchemaWalk:
    """Looks at the types of a schema, each where it is defined."""

    known: dict[str, bool] = field(default_factory=dict)
    """Whether values of the types that have a name take bytes."""
    open: set[str] = field(default_factory=set)
    """The records that are being looked at."""

    def has_bytes(self, kind: Any, depth: int) -> bool:
        """Whether a value of a type takes at least one byte."""
        if depth > _DEEPEST_SCHEMA:
            raise ValueError("its schema nests too deep")
        match kind:
            case str():
                return self._named(kind)
            case list():
                for one in kind:
                    self.has_bytes(one, depth + 1)
                return True
            case {"type": "record" | "error", "fields": list(fields)}:
                return self._record(_name(kind), fields, depth)
            case {"type": "array", "items": inner}:
                if not self.has_bytes(inner, depth + 1):
                    raise ValueError("its schema has an array whose items take no bytes")
                return True
            case {"type": "map", "values": inner}:
                self.has_bytes(inner, depth + 1)
                return True
            case {"type": "fixed", "size": int(size)}:
                self.known[_name(kind)] = size > 0
                return size > 0
            case {"type": "enum"}:
                self.known[_name(kind)] = True
                return True
            case {"type": inner}:
                return self.has_bytes(inner, depth + 1)
        raise ValueError("its schema has a type that is none")

    def _record(self, name: str, fields: list[Any], depth: int) -> bool:
        self.open.add(name)
        found = [self.has_bytes(_type_of(one), depth + 1) for one in fields]
        self.open.discard(name)
        self.known[name] = any(found)
        return any(found)

    def _named(self, name: str) -> bool:
        short = name.rpartition(".")[2]
        if short in self.open:
            raise ValueError(f"its schema has the record {name}, which holds itself")
        if short in self.known:
            return self.known[short]
        if name not in _PRIMITIVES:
            raise ValueError(f"its schema has the type {name}, which it does not define")
        return name != "null"


def _type_of(one: Any) -> Any:
    if not isinstance(one, dict) or "type" not in one:
        raise ValueError("its schema has a field without a type")
    return one["type"]


def _name(kind: Mapping[str, Any]) -> str:
    # Without its namespace: two types of one name are then one, which is on the safe side.
    return str(kind.get("name")).rpartition(".")[2]


def _blocks(data: bytes, at: int) -> Iterator[bytes]:
    """The blocks of an object container file as they are stored."""
    while at < len(data):
        _, at = _varint(data, at)
        size, at = _varint(data, at)
        if size < 0 or at + size + _SYNC_SIZE > len(data):
            raise ValueError("a block ends after the file")
        yield data[at : at + size]
        at += size + _SYNC_SIZE


def _header(data: bytes, at: int) -> tuple[Mapping[bytes, bytes], int]:
    found: dict[bytes, bytes] = {}
    while True:
        count, at = _varint(data, at)
        if count == 0:
            return found, at
        if count < 0:
            # A negative count is followed by the size of the block in bytes.
            count, (_, at) = -count, _varint(data, at)
        for _ in range(count):
            key, at = _bytes(data, at)
            found[key], at = _bytes(data, at)


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _varint(data, at)
    if size < 0 or at + size > len(data):
        raise ValueError("a text ends after the file")
    return data[at : at + size], at + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    for index in range(at, min(at + _LONGEST_VARINT, len(data))):
        byte = data[index]
        number |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return (number >> 1) ^ -(number & 1), index + 1
        shift += 7
    raise ValueError("a number is longer than any, or than the file")
