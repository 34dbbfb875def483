"""``_last_checkpoint``: the hint that spares readers a listing from the beginning.

It is a hint and nothing more: readers survive a missing, damaged or stale one, and it is never
moved back to an older checkpoint than the one it rightly names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from twinlake.log.json_checksum import hint_checksum
from twinlake.log.listing import complete_checkpoints, list_log, read_last_checkpoint
from twinlake.log.names import LAST_CHECKPOINT_KEY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.storage import Store

__all__ = ["hint_checksum", "replace_object", "write_last_checkpoint"]


def write_last_checkpoint(store: Store, hint: Mapping[str, Any]) -> bool:
    """Write the hint, with its checksum, unless a newer one rightly stands; says whether it did."""
    present = read_last_checkpoint(store)
    if (
        present is not None
        and present["version"] > hint["version"]
        and _names_a_checkpoint(store, present["version"])
    ):
        return False
    body = {**hint, "checksum": hint_checksum(hint)}
    replace_object(store, LAST_CHECKPOINT_KEY, msgspec.json.encode(body))
    return True


def replace_object(store: Store, key: str, data: bytes) -> None:
    """Write an object that may be there already.

    On local disks Hadoop keeps a hidden checksum beside each file it wrote, and refuses the file
    once somebody else has replaced it; so that checksum goes first.
    """
    folder, _, name = key.rpartition("/")
    store.delete([f"{folder}/.{name}.crc"])
    store.put(key, data)


def _names_a_checkpoint(store: Store, version: int) -> bool:
    files = list_log(store, version)
    return any(c.version == version for c in complete_checkpoints(files))
