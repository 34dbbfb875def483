"""The published model of writers of an Iceberg table in the catalogue, with what others share.

Every case with a ``config`` is what ``twinlake verify iceberg --config`` calls by that name.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

from twinlake.verify.models.catalogue.model_case import (
    FINDING,
    ICEBERG,
    MUTANT,
    NOTHING,
    SAFE,
    ModelCase,
    ModelSuite,
    case,
)
from twinlake.verify.models.iceberg import IcebergV2
from twinlake.verify.models.iceberg.values import COPY_ON_WRITE, SERIALIZABLE

__all__ = ["DANGLING", "READ", "REDUCED", "TWO", "WRITERS", "writing"]

TWO = ("jack", "sarah")
READ = "ConsistentRead"

#: A delete file may well be left without its data file: readers tolerate it.
DANGLING = ("NoDanglingDeleteFiles",)
REDUCED = MappingProxyType({"symmetry": True, "reduction": True})

_SORTED = MappingProxyType({"symmetry": True})
_NAMELESS: Final[dict[str, Any]] = {"identity": "canonical"}
_FIXED: Final[dict[str, Any]] = {"fix": "A", **_NAMELESS}
_TWO_IDS: Final[dict[str, Any]] = {**_FIXED, "col1_values": TWO}
_UPDATES_COPY: Final[dict[str, Any]] = {"update_mode": COPY_ON_WRITE, "max_write_ops": 4}
_PUBLISHED: Final = "snapshot isolation as published"
_UNORDERED: Final = "No serial order of the statements has this result either."


def writing(kind: str, name: str, *unreached: str, **rest: Any) -> ModelCase:
    """A case of a model of writers, in which compactions start only if there is a budget."""
    if not rest.get("max_compaction_ops"):
        unreached = (*unreached, "StartCompactionOperation")
    return case(kind, name, unreached=() if rest.get("violates") else unreached, **rest)


def _config(kind: str, config: str, name: str, **rest: Any) -> ModelCase:
    """A case that has a name of its own on the command line; nothing is left out of its search."""
    wanted = {"search": NOTHING, **rest}
    if kind == SAFE and "benchmark" not in rest:
        wanted["counterpart"] = _PUBLISHED
    return writing(kind, name, config=config, **wanted)


WRITERS = ModelSuite(
    name="writers",
    format=ICEBERG,
    shows="A merge-on-read DELETE that does not look at new delete files loses to an UPDATE.",
    model=IcebergV2,
    without=DANGLING,
    cases=(
        _config(
            FINDING,
            "seed",
            _PUBLISHED,
            violates=READ,
            steps=14,
            shows=f"DELETE and UPDATE of one row both commit, and the row is still there. "
            f"{_UNORDERED}",
        ),
        _config(
            SAFE,
            "seed-fixed",
            "with the fix",
            benchmark="verify-seed: with the fix",
            fix="A",
            states=2_741,
        ),
        _config(
            FINDING,
            "seed-canonical",
            "canonical names",
            states=1_851,
            violates=READ,
            steps=14,
            shows=f"The names of files do not matter. {_UNORDERED}",
            **_NAMELESS,
        ),
        _config(
            SAFE, "seed-canonical-fixed", "with the fix, canonical names", states=1_837, **_FIXED
        ),
        _config(
            FINDING,
            "seed-reduced",
            "canonical names, reduced",
            search=REDUCED,
            states=106,
            violates=READ,
            steps=14,
            moves=6,
            shows=f"The reductions keep the trace. {_UNORDERED}",
            **_NAMELESS,
        ),
        _config(
            SAFE,
            "seed-reduced-fixed",
            "with the fix, canonical names, reduced",
            search=REDUCED,
            states=115,
            **_FIXED,
        ),
        _config(
            SAFE,
            "serializable",
            "serializable, canonical names, reduced",
            search=REDUCED,
            states=117,
            isolation=SERIALIZABLE,
            **_NAMELESS,
        ),
        _config(
            SAFE,
            "copy-on-write",
            "copy-on-write, canonical names, reduced",
            search=REDUCED,
            states=115,
            update_mode=COPY_ON_WRITE,
            delete_mode=COPY_ON_WRITE,
            **_NAMELESS,
        ),
        _config(
            FINDING,
            "update-copies",
            "only updates copy",
            search=REDUCED,
            states=393,
            violates=READ,
            steps=18,
            moves=8,
            has_serial_order=True,
            shows="By `ConsistentRead` alone: a serial order of the statements has this result.",
            **_NAMELESS,
            **_UPDATES_COPY,
        ),
        _config(
            SAFE,
            "update-copies-fixed",
            "only updates copy, with the fix",
            search=REDUCED,
            states=405,
            **_FIXED,
            **_UPDATES_COPY,
        ),
        _config(
            SAFE,
            "update-copies-serializable",
            "only updates copy, serializable",
            search=REDUCED,
            states=421,
            isolation=SERIALIZABLE,
            **_NAMELESS,
            **_UPDATES_COPY,
        ),
        _config(
            SAFE,
            "two-ids",
            "two ids",
            states=29_233,
            large=True,
            **{**_TWO_IDS, "identity": "faithful"},
        ),
        _config(SAFE, "two-ids-canonical", "two ids, canonical names", states=8_869, **_TWO_IDS),
        _config(
            SAFE,
            "two-ids-4-writes",
            "two ids, 4 writes",
            states=72_585,
            large=True,
            max_write_ops=4,
            **_TWO_IDS,
        ),
        _config(
            SAFE,
            "two-ids-5-writes",
            "two ids, 5 writes",
            search=_SORTED,
            states=268_473,
            large=True,
            max_write_ops=5,
            **_TWO_IDS,
        ),
        _config(
            SAFE,
            "two-ids-6-writes",
            "two ids, 6 writes",
            search=REDUCED,
            states=204_949,
            large=True,
            max_write_ops=6,
            **_TWO_IDS,
        ),
        _config(
            SAFE,
            "three-writers",
            "three writers",
            search=_SORTED,
            states=985_129,
            large=True,
            writers=3,
            max_write_ops=5,
            **_TWO_IDS,
        ),
        _config(
            SAFE,
            "three-writers-compaction",
            "three writers, compaction",
            benchmark="verify-large: 5,240,909 states",
            search=MappingProxyType({**_SORTED, "without": DANGLING}),
            states=5_240_909,
            large=True,
            writers=3,
            max_write_ops=4,
            max_compaction_ops=2,
            **_TWO_IDS,
        ),
        _config(
            FINDING,
            "dangling-deletes",
            "dangling delete files",
            violates=DANGLING[0],
            steps=23,
            shows="A compaction drops a data file and leaves the delete file. Readers tolerate it.",
            writers=1,
            col1_values=TWO,
            max_compaction_ops=2,
            **_NAMELESS,
        ),
        writing(SAFE, "serializable", isolation=SERIALIZABLE, counterpart=_PUBLISHED),
        writing(
            SAFE,
            "copy-on-write",
            update_mode=COPY_ON_WRITE,
            delete_mode=COPY_ON_WRITE,
            counterpart="copy-on-write ignores deletes",
        ),
        writing(SAFE, "with fix B", fix="B", identity="canonical", counterpart=_PUBLISHED),
        writing(
            SAFE,
            "with the fix, compaction",
            fix="A",
            identity="canonical",
            max_compaction_ops=1,
            counterpart=_PUBLISHED,
        ),
        writing(
            MUTANT,
            "copy-on-write ignores deletes",
            mutant="cow-ignores-deletes",
            violates=READ,
            steps=23,
            writers=1,
            identity="canonical",
            update_mode=COPY_ON_WRITE,
            col1_values=TWO,
            max_write_ops=4,
            max_compaction_ops=1,
        ),
    ),
)
