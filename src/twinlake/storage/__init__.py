"""Bytes under keys with an atomic create: local disk, S3, GCS, Azure, and memory with faults.

``open_store`` makes a store from a path or a URL; ``resolve`` finds what a path of the log means.
"""

from twinlake.storage.interface import (
    Committed,
    Configured,
    Conflict,
    CreateOutcome,
    Durable,
    ObjectMeta,
    OnDisk,
    Reopenable,
    Store,
    StoreConfig,
    Unknown,
    store_config,
)
from twinlake.storage.local import LocalStore
from twinlake.storage.memory import Fault, FaultKind, FaultPlan, MemoryStore, SimulatedCrash
from twinlake.storage.object_store import ObjectStore
from twinlake.storage.os_errors import OS_ERRORS, os_error, os_errors
from twinlake.storage.paths import (
    Location,
    check_file_name,
    check_key,
    check_log_path,
    check_new_path,
    decode_path,
    encode_path,
    locate,
    parse_location,
    split_scheme,
)
from twinlake.storage.store_registry import open_store, register_scheme, resolve, schemes

__all__ = [
    "OS_ERRORS",
    "Committed",
    "Configured",
    "Conflict",
    "CreateOutcome",
    "Durable",
    "Fault",
    "FaultKind",
    "FaultPlan",
    "LocalStore",
    "Location",
    "MemoryStore",
    "ObjectMeta",
    "ObjectStore",
    "OnDisk",
    "Reopenable",
    "SimulatedCrash",
    "Store",
    "StoreConfig",
    "Unknown",
    "check_file_name",
    "check_key",
    "check_log_path",
    "check_new_path",
    "decode_path",
    "encode_path",
    "locate",
    "open_store",
    "os_error",
    "os_errors",
    "parse_location",
    "register_scheme",
    "resolve",
    "schemes",
    "split_scheme",
    "store_config",
]
