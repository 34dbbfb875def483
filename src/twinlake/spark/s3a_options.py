"""Settings of Hadoop's S3A connector as options of our own store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from twinlake.storage import Location

__all__ = ["s3a_options"]

_OPTIONS: Final[Mapping[str, str]] = {
    "fs.s3a.endpoint": "endpoint",
    "fs.s3a.endpoint.region": "region",
    "fs.s3a.access.key": "access_key_id",
    "fs.s3a.secret.key": "secret_access_key",
    "fs.s3a.session.token": "session_token",
}


def s3a_options(location: Location, setting: Callable[[str], str | None]) -> dict[str, Any]:
    """The options for a location; those of its bucket go before those of all buckets."""
    if location.scheme != "s3":
        return {}

    def found(key: str) -> str | None:
        own = setting(key.replace("fs.s3a.", f"fs.s3a.bucket.{location.authority}.", 1))
        return own or setting(key)

    options: dict[str, Any] = {}
    for key, option in _OPTIONS.items():
        if value := found(key):
            options[option] = value
    endpoint = options.get("endpoint", "")
    plain = found("fs.s3a.connection.ssl.enabled") == "false"
    if endpoint and "://" not in endpoint:
        endpoint = options["endpoint"] = f"{'http' if plain else 'https'}://{endpoint}"
    if endpoint.startswith("http://"):
        options["allow_http"] = True
    return options
