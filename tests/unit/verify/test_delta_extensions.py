"""What the Delta log model leaves out: each part safe as designed, each mutant caught."""

from __future__ import annotations

import pytest

from twinlake.verify import check
from twinlake.verify.checker import Model, ModelError
from twinlake.verify.models.delta import (
    ACCEPTS_INCOMPLETE,
    BLIND_OVERWRITE,
    CLEANS_TO_NEWEST,
    CLEANS_TOO_EARLY,
    GIVE_UP,
    KEEPS_BASE_IDS,
    NEW_IDS_ON_REWRITE,
    NO_GRACE,
    NON_ATOMIC,
    PATH_ONLY,
    REPLACES_VECTOR,
    RETRY_BLINDLY,
    Checkpoints,
    ConcurrentVectors,
    LogStore,
    RowTracking,
    Vacuum,
    safe_retention,
)

#: The model, and the actions that its configuration cannot reach.
SAFE: dict[str, tuple[Model, tuple[str, ...]]] = {
    "store": (LogStore(), ("Finish",)),
    "store, 2 faults, 3 writers": (LogStore(writers=3, faults=2), ("Finish",)),
    "store, 4 operations": (LogStore(max_ops=4, faults=2), ("Finish",)),
    "vectors by file": (ConcurrentVectors(rows=3), ()),
    "vectors by row": (ConcurrentVectors(rows=3, row_level=True), ()),
    "vectors by row, 2 files": (
        ConcurrentVectors(rows=2, files=2, row_level=True, writers=3),
        (),
    ),
    "row tracking": (RowTracking(), ()),
    "row tracking, 3 writers": (RowTracking(writers=3, max_ops=4), ()),
    "checkpoints": (Checkpoints(), ()),
    "checkpoints, one version retained": (Checkpoints(retained=1), ()),
    "checkpoints, three retained": (Checkpoints(retained=3, max_versions=5), ()),
    "vacuum": (Vacuum(), ()),
}


@pytest.mark.parametrize("name", SAFE)
def test_safe_configuration_is_clean(name: str) -> None:
    model, unreached = SAFE[name]
    result = check(model)
    assert result.ok
    assert result.unreached == unreached
    assert check(model, symmetry=True).ok


#: The mutant, the property it breaks, and the length of the shortest trace.
MUTANTS: dict[str, tuple[Model, str, int]] = {
    "blind overwrite": (LogStore(mutant=BLIND_OVERWRITE), "ReportsAreTrue", 4),
    "give up on unknown": (LogStore(mutant=GIVE_UP), "ReportsAreTrue", 3),
    "retry without looking": (LogStore(mutant=RETRY_BLINDLY), "ExactlyOnce", 4),
    "non-atomic write": (LogStore(mutant=NON_ATOMIC), "EntriesAreComplete", 2),
    "vector replaced": (
        ConcurrentVectors(row_level=True, mutant=REPLACES_VECTOR),
        "ConsistentRead",
        4,
    ),
    "conflicts by path only": (ConcurrentVectors(mutant=PATH_ONLY), "NothingIsDeletedTwice", 4),
    "row ids not reassigned": (
        RowTracking(max_ops=2, mutant=KEEPS_BASE_IDS),
        "RowIdsAreUnique",
        4,
    ),
    "row ids renewed": (RowTracking(mutant=NEW_IDS_ON_REWRITE), "RowIdsAreStable", 4),
    "clean-up before all parts": (
        Checkpoints(mutant=CLEANS_TOO_EARLY),
        "RetainedVersionsCanBeRebuilt",
        4,
    ),
    "clean-up to the newest checkpoint": (
        Checkpoints(mutant=CLEANS_TO_NEWEST),
        "RetainedVersionsCanBeRebuilt",
        6,
    ),
    "incomplete checkpoint accepted": (
        Checkpoints(mutant=ACCEPTS_INCOMPLETE),
        "RetainedVersionsCanBeRebuilt",
        2,
    ),
    "vacuum without grace": (Vacuum(mutant=NO_GRACE), "NewestVersionIsWhole", 5),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    model, broken, steps = MUTANTS[name]
    result = check(model)
    assert result.violated == broken
    assert result.trace is not None
    assert len(result.trace) == steps


@pytest.mark.parametrize(
    "model",
    [
        # Without faults there is no unknown outcome to mistreat.
        LogStore(faults=0, mutant=RETRY_BLINDLY),
        LogStore(faults=0, mutant=GIVE_UP),
        # Without row-level rebasing a vector is never united with another.
        ConcurrentVectors(rows=3, mutant=REPLACES_VECTOR),
        # A checkpoint of one part is never incomplete.
        Checkpoints(parts=1, mutant=CLEANS_TOO_EARLY),
        # If only the newest version is retained, the newest checkpoint may bound the clean-up.
        Checkpoints(retained=1, mutant=CLEANS_TO_NEWEST),
    ],
    ids=["retry", "give up", "vector", "one part", "one version"],
)
def test_mutant_is_harmless_where_it_should_be(model: Model) -> None:
    assert check(model).ok


@pytest.mark.parametrize("longest", [0, 1, 2, 3])
def test_vacuum_is_safe_from_one_tick_more_than_the_longest_operation(longest: int) -> None:
    assert safe_retention(longest=longest) == longest + 1


def test_vacuum_takes_files_from_a_long_reader() -> None:
    result = check(Vacuum(retention=1, longest=2, max_writes=1), stop_at_first=False)
    assert result.verdicts["ReadersFinish"] == "violated"


@pytest.mark.parametrize("kind", [LogStore, ConcurrentVectors, RowTracking, Checkpoints, Vacuum])
def test_unknown_mutant_is_refused(kind: type[LogStore]) -> None:
    with pytest.raises(ModelError, match="is no mutant"):
        kind(mutant="typo")
