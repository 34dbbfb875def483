"""Values of properties that look like secrets are masked in every output.

Properties are in metadata, in the operation parameters of commits (as JSON within JSON) and in
differences, so all output passes through here. Only ``log --raw`` and the rows of tables do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from twinlake.protocol.properties.registry import is_secret

__all__ = ["MASK", "Verbatim", "redact", "redact_property"]

MASK: Final = "********"
_PROPERTY_CHANGE: Final = {"key", "before", "after"}


class Verbatim(list[Any]):
    """Lines of the log or rows of a table, which are printed unmasked."""


def redact_property(key: str, value: str | None) -> str | None:
    """The value of a property, masked if it is a secret.

    >>> redact_property("fs.s3a.secret.key", "hunter2"), redact_property("team", "orders")
    ('********', 'orders')
    """
    return MASK if value is not None and is_secret(key) else value


def redact(value: Any) -> Any:
    """Plain data with its secrets masked at every depth.

    >>> redact({"properties": '{"my.password":"x","a":"1"}'})
    {'properties': '{"my.password":"********","a":"1"}'}
    """
    if isinstance(value, str):
        return _redact_text(value)
    if isinstance(value, Mapping):
        if value.keys() == _PROPERTY_CHANGE and is_secret(str(value["key"])):
            return {k: v if k == "key" or v is None else MASK for k, v in value.items()}
        return {k: _redact_member(k, v) for k, v in value.items()}
    if isinstance(value, Verbatim):
        return list(value)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [redact(item) for item in value]
    return value


def _redact_member(key: Any, value: Any) -> Any:
    if isinstance(key, str) and isinstance(value, str) and is_secret(key):
        return MASK
    return redact(value)


def _redact_text(text: str) -> str:
    if not text.startswith("{"):
        return text
    try:
        inner = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    clean = redact(inner)
    return text if clean == inner else msgspec.json.encode(clean).decode()
