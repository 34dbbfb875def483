"""Credentials never reach a screen: values under keys that look like secrets are masked.

Properties turn up in metadata, in what commits say of their operation (as JSON within JSON) and
in differences, so everything that is shown goes through here. ``log --raw`` alone does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from twinlake.protocol import is_secret

__all__ = ["MASK", "Verbatim", "mask_property", "masked"]

MASK: Final = "********"
_PROPERTY_CHANGE: Final = {"key", "before", "after"}


class Verbatim(list[str]):
    """Lines that a person asked for as they are."""


def mask_property(key: str, value: str | None) -> str | None:
    """A property's value, fit for showing.

    >>> mask_property("fs.s3a.secret.key", "hunter2"), mask_property("team", "orders")
    ('********', 'orders')
    """
    return MASK if value is not None and is_secret(key) else value


def masked(value: Any) -> Any:
    """Plain data with its secrets masked, however deep they are.

    >>> masked({"properties": '{"my.password":"x","a":"1"}'})
    {'properties': '{"my.password":"********","a":"1"}'}
    """
    if isinstance(value, str):
        return _masked_text(value)
    if isinstance(value, Mapping):
        if value.keys() == _PROPERTY_CHANGE and is_secret(str(value["key"])):
            return {k: v if k == "key" or v is None else MASK for k, v in value.items()}
        return {k: _member(k, v) for k, v in value.items()}
    if isinstance(value, Verbatim):
        return list(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [masked(item) for item in value]
    return value


def _member(key: Any, value: Any) -> Any:
    if isinstance(key, str) and isinstance(value, str) and is_secret(key):
        return MASK
    return masked(value)


def _masked_text(text: str) -> str:
    if not text.startswith("{"):
        return text
    try:
        inner = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    clean = masked(inner)
    return text if clean == inner else msgspec.json.encode(clean).decode()
