"""Properties that ask for a protocol and are never stored in the table's configuration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from twinlake.protocol import keys
from twinlake.protocol.properties.checks import parse_properties
from twinlake.protocol.properties.registry import canonical_key
from twinlake.protocol.properties.value_parsers import integer

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ProtocolRequest", "is_protocol_key", "strip_protocol_keys"]

_KEYS: Final = frozenset(
    {keys.MIN_READER_VERSION, keys.MIN_WRITER_VERSION, keys.IGNORE_PROTOCOL_DEFAULTS}
)
_SESSION_PREFIX: Final = "spark.databricks.delta.properties.defaults."
_SESSION_VERSIONS: Final = {
    "minreaderversion": keys.MIN_READER_VERSION,
    "minwriterversion": keys.MIN_WRITER_VERSION,
}


@lru_cache(maxsize=4096)
def is_protocol_key(key: str) -> bool:
    """Whether the property asks something of the protocol instead of describing the table."""
    canonical = canonical_key(key)
    return canonical in _KEYS or canonical.startswith(keys.FEATURE_PREFIX)


def strip_protocol_keys(configuration: Mapping[str, str]) -> dict[str, str]:
    """The configuration as it may be stored.

    >>> strip_protocol_keys({"delta.feature.deletionVectors": "supported", "owner": "me"})
    {'owner': 'me'}
    """
    return {key: value for key, value in configuration.items() if not is_protocol_key(key)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolRequest:
    """What a set of properties asks of the protocol."""

    min_reader_version: int | None = None
    min_writer_version: int | None = None
    features: frozenset[str] = frozenset()
    ignore_defaults: bool = False

    @classmethod
    def of(cls, configuration: Mapping[str, str]) -> ProtocolRequest:
        """From table properties; wrong values raise as they do when they are set."""
        asked = parse_properties({k: v for k, v in configuration.items() if is_protocol_key(k)})
        number = integer(0)
        versions = {
            key: number(asked[key])
            for key in (keys.MIN_READER_VERSION, keys.MIN_WRITER_VERSION)
            if key in asked
        }
        return cls(
            min_reader_version=versions.get(keys.MIN_READER_VERSION),
            min_writer_version=versions.get(keys.MIN_WRITER_VERSION),
            features=frozenset(
                key.removeprefix(keys.FEATURE_PREFIX)
                for key in asked
                if key.startswith(keys.FEATURE_PREFIX)
            ),
            ignore_defaults=asked.get(keys.IGNORE_PROTOCOL_DEFAULTS, "").lower() == "true",
        )

    @classmethod
    def of_session(cls, settings: Mapping[str, str]) -> ProtocolRequest:
        """From a session's defaults for new tables (``...properties.defaults.*``)."""
        found: dict[str, str] = {}
        for key, value in settings.items():
            if not key.lower().startswith(_SESSION_PREFIX):
                continue
            rest = key[len(_SESSION_PREFIX) :]
            if rest.lower() in _SESSION_VERSIONS:
                found[_SESSION_VERSIONS[rest.lower()]] = value
            elif rest.lower().startswith("feature."):
                found["delta." + rest] = value
        return cls.of(found)

    def over(self, defaults: ProtocolRequest) -> ProtocolRequest:
        """This where it says something, else the defaults; features add up."""
        if self.ignore_defaults:
            return self
        mine, other = self, defaults
        return ProtocolRequest(
            min_reader_version=other.min_reader_version
            if mine.min_reader_version is None
            else mine.min_reader_version,
            min_writer_version=other.min_writer_version
            if mine.min_writer_version is None
            else mine.min_writer_version,
            features=mine.features | other.features,
        )
