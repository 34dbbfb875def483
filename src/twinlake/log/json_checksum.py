"""The checksum that ``_last_checkpoint`` carries, the same whatever the order of its keys."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

__all__ = ["hint_checksum"]

_BARE: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def hint_checksum(hint: Mapping[str, Any]) -> str:
    """The MD5 of the canonical form (Delta protocol, JSON checksum).

    >>> hint_checksum({"version": 3, "size": 2}) == hint_checksum({"size": 2, "version": 3})
    True
    """
    leaves = sorted(_leaves({k: v for k, v in hint.items() if k != "checksum"}, ()))
    text = ",".join(f"{path}={value}" for path, value in leaves)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, _quoted(str(key))))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for position, inner in enumerate(value):
            yield from _leaves(inner, (*path, str(position)))
    else:
        yield "+".join(path), _scalar(value)


def _scalar(value: Any) -> str:
    return _quoted(value) if isinstance(value, str) else msgspec.json.encode(value).decode()


def _quoted(text: str) -> str:
    escaped = "".join(chr(b) if b in _BARE else f"%{b:02X}" for b in text.encode())
    return f'"{escaped}"'
