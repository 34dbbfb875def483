"""Settings of S3 in twinlake's words and in PyIceberg's, so that people say them once.

What neither side is given, both find in the environment by themselves. For other object stores the
two have no settings in common that were tested; there PyIceberg takes its own properties.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from twinlake.storage import parse_location, store_config

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.storage import Store

__all__ = ["pyiceberg_properties", "settings_of", "store_options"]

_S3: Final = "s3"
_SAME: Final[tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]] = (
    ("endpoint", ("endpoint_url",), ("s3.endpoint",)),
    ("region", ("default_region",), ("s3.region", "client.region")),
    ("access_key_id", (), ("s3.access-key-id", "client.access-key-id")),
    ("secret_access_key", (), ("s3.secret-access-key", "client.secret-access-key")),
    ("session_token", ("token",), ("s3.session-token", "client.session-token")),
    ("skip_signature", (), ("s3.anonymous",)),
    ("virtual_hosted_style_request", (), ("s3.force-virtual-addressing",)),
)
"""A setting of ours, its other names, and PyIceberg's, the most special one first."""


def settings_of(store: Store) -> Mapping[str, Any] | None:
    """What a store was opened with, secrets among them; None where there is nothing to say."""
    return store_config(store).options or None


def pyiceberg_properties(store: Store) -> dict[str, str]:
    """What PyIceberg needs to know to read the files of a store."""
    if parse_location(store.url).scheme != _S3:
        return {}
    given = {
        name.lower().removeprefix("aws_"): value
        for name, value in (settings_of(store) or {}).items()
    }
    found: dict[str, str] = {}
    for own, others, theirs in _SAME:
        value = next((given[name] for name in (own, *others) if name in given), None)
        if value is not None:
            found[theirs[0]] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def store_options(location: str, properties: Mapping[str, Any]) -> dict[str, str]:
    """What a store at a location needs to know, from the properties of an Iceberg catalog.

    >>> store_options("s3://b/t", {"s3.endpoint": "http://127.0.0.1:9000"})
    {'endpoint': 'http://127.0.0.1:9000', 'allow_http': 'true'}
    """
    if parse_location(location).scheme != _S3:
        return {}
    found: dict[str, str] = {}
    for own, _, theirs in _SAME:
        value = next((properties[name] for name in theirs if name in properties), None)
        if value is not None:
            found[own] = str(value)
    if found.get("endpoint", "").startswith("http://"):
        # Whoever writes such an address down has chosen to do without encryption.
        found["allow_http"] = "true"
    return found
