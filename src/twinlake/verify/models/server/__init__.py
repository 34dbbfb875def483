"""Iceberg commits turned into Delta commits by servers, as models."""

from twinlake.verify.models.server.cleaning import (
    CLEANS_LISTED,
    COUNTS_ENTRIES,
    DELETES_AT_ONCE,
    NO_GRACE,
    VACUUMS_LISTED,
    CleanedTwice,
    safe_wait,
)
from twinlake.verify.models.server.clients import NO_CHECK, SINCE_BASE, SINCE_SCAN
from twinlake.verify.models.server.masking import Masking, compare_file_checks
from twinlake.verify.models.server.model import EverythingHappens, ThroughServer
from twinlake.verify.models.server.mutants import (
    CACHED_VIEW,
    FORGETS_KEY,
    LOCAL_IDS,
    NO_KEY,
    REFUSES_AS_CONFLICT,
    RESENDS,
    RETRIES_PUT,
    SERVER_GIVES_UP,
    TWO_VECTORS,
    UNKNOWN_IS_FAILURE,
)

__all__ = [
    "CACHED_VIEW",
    "CLEANS_LISTED",
    "COUNTS_ENTRIES",
    "DELETES_AT_ONCE",
    "FORGETS_KEY",
    "LOCAL_IDS",
    "NO_CHECK",
    "NO_GRACE",
    "NO_KEY",
    "REFUSES_AS_CONFLICT",
    "RESENDS",
    "RETRIES_PUT",
    "SERVER_GIVES_UP",
    "SINCE_BASE",
    "SINCE_SCAN",
    "TWO_VECTORS",
    "UNKNOWN_IS_FAILURE",
    "VACUUMS_LISTED",
    "CleanedTwice",
    "EverythingHappens",
    "Masking",
    "ThroughServer",
    "compare_file_checks",
    "safe_wait",
]
