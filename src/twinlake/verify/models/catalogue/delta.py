"""The Delta models of the catalogue."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from twinlake.verify.models.catalogue.model_case import (
    CONTROL,
    DELTA,
    FINDING,
    MUTANT,
    SAFE,
    ModelCase,
    ModelSuite,
    case,
)
from twinlake.verify.models.delta import (
    ApplicationIds,
    Checkpoints,
    ConcurrentVectors,
    DeltaLog,
    DeltaRowTracking,
    DeltaVacuum,
    Isolation,
    LogStore,
)
from twinlake.verify.models.delta.isolation import COMMIT_ORDER, WRITE_SERIALIZABLE

__all__ = ["DELTA_MODELS"]

READ = "ConsistentRead"
REBUILT = "RetainedVersionsCanBeRebuilt"
TWO = ("a", "b")


def _logging(config: str, name: str, states: int, row: str, **parameters: Any) -> ModelCase:
    """A case of the log that TLC is measured on as well, in a row of the benchmarks."""
    locks = () if parameters.get("coordination") else ("CoordinatePrepareWrite",)
    return case(
        SAFE,
        name,
        config=config,
        benchmark=f"verify-tlc: {row}",
        unreached=locks,
        states=states,
        **parameters,
    )


LOG = ModelSuite(
    name="log",
    format=DELTA,
    shows="Writers are safe with put-if-absent, or with a lock, and with neither they are not.",
    model=DeltaLog,
    cases=(
        _logging("p1", "put-if-absent", 7_982, "one key"),
        _logging(
            "p1n",
            "put-if-absent, no partitions",
            7_982,
            "one key, no partitions",
            partitioned=False,
        ),
        _logging("p2", "two keys", 50_632, "two keys", col1_values=TWO, large=True),
        _logging(
            "p2n",
            "two keys, no partitions",
            48_072,
            "two keys, no partitions",
            col1_values=TWO,
            partitioned=False,
            large=True,
        ),
        _logging(
            "c2",
            "a lock instead",
            71_584,
            "two keys, a lock",
            col1_values=TWO,
            put_if_absent=False,
            coordination=True,
            large=True,
        ),
        _logging(
            "c2n",
            "a lock instead, no partitions",
            62_512,
            "two keys, no partitions, a lock",
            col1_values=TWO,
            put_if_absent=False,
            coordination=True,
            partitioned=False,
            large=True,
        ),
        _logging(
            "p1o4", "4 operations", 121_584, "one key, four operations", max_ops=4, large=True
        ),
        case(
            FINDING,
            "neither",
            config="u2",
            put_if_absent=False,
            col1_values=TWO,
            violates=READ,
            steps=8,
            shows="Two inserts both write log entry 1.",
        ),
    ),
)

STORE = ModelSuite(
    name="store",
    format=DELTA,
    shows="A lost reply must be settled by looking for one's own token.",
    model=LogStore,
    cases=(
        case(
            SAFE,
            "one fault",
            unreached=("Finish",),
            counterpart="retry without looking",
        ),
        case(
            SAFE,
            "2 faults, 3 writers",
            writers=3,
            faults=2,
            unreached=("Finish",),
            counterpart="blind overwrite",
        ),
        case(
            SAFE,
            "4 operations",
            max_ops=4,
            faults=2,
            unreached=("Finish",),
            counterpart="give up on unknown",
        ),
        case(
            MUTANT, "blind overwrite", mutant="blind-overwrite", violates="ReportsAreTrue", steps=4
        ),
        case(MUTANT, "give up on unknown", mutant="give-up", violates="ReportsAreTrue", steps=3),
        case(
            MUTANT, "retry without looking", mutant="retry-blindly", violates="ExactlyOnce", steps=4
        ),
        case(
            MUTANT, "non-atomic write", mutant="non-atomic", violates="EntriesAreComplete", steps=2
        ),
        case(
            CONTROL,
            "no faults, retry without looking",
            faults=0,
            mutant="retry-blindly",
            unreached=("Finish", "Settle"),
            shows="Without faults there is no unknown outcome to mistreat.",
        ),
        case(
            CONTROL,
            "no faults, give up on unknown",
            faults=0,
            mutant="give-up",
            unreached=("Finish", "Settle"),
            shows="Without faults there is no unknown outcome to mistreat.",
        ),
    ),
)

VECTORS = ModelSuite(
    name="deletion-vectors",
    format=DELTA,
    shows="Two deletes of one file conflict, or are united row by row; no delete is lost.",
    model=ConcurrentVectors,
    cases=(
        case(
            SAFE,
            "by file",
            rows=3,
            counterpart="conflicts by path only",
        ),
        case(
            SAFE,
            "by row",
            rows=3,
            row_level=True,
            counterpart="vector replaced",
        ),
        case(
            SAFE,
            "by row, 2 files, 3 writers",
            rows=2,
            files=2,
            row_level=True,
            writers=3,
            counterpart="vector replaced",
        ),
        case(
            MUTANT,
            "vector replaced",
            row_level=True,
            mutant="replaces-vector",
            violates=READ,
            steps=4,
        ),
        case(
            MUTANT,
            "conflicts by path only",
            mutant="path-only",
            violates="NothingIsDeletedTwice",
            steps=4,
        ),
        case(
            CONTROL,
            "vector replaced, by file",
            rows=3,
            mutant="replaces-vector",
            shows="Without row-level rebasing a vector is never united with another.",
        ),
    ),
)

ROWS = ModelSuite(
    name="row-tracking",
    format=DELTA,
    shows="Row ids are unique and stable if a commit that lost its version assigns them again.",
    model=DeltaRowTracking,
    cases=(
        case(
            SAFE,
            "2 writers",
            counterpart="row ids not reassigned",
        ),
        case(
            SAFE,
            "3 writers",
            writers=3,
            max_ops=4,
            counterpart="row ids renewed",
        ),
        case(
            MUTANT,
            "row ids not reassigned",
            max_ops=2,
            mutant="keeps-base-ids",
            violates="RowIdsAreUnique",
            steps=4,
        ),
        case(
            MUTANT,
            "row ids renewed",
            mutant="new-ids-on-rewrite",
            violates="RowIdsAreStable",
            steps=4,
        ),
    ),
)

CHECKPOINTS = ModelSuite(
    name="checkpoints",
    format=DELTA,
    shows="Every retained version can be rebuilt while the log is cleaned up.",
    model=Checkpoints,
    cases=(
        case(
            SAFE,
            "two versions retained",
            counterpart="clean-up to the newest checkpoint",
        ),
        case(
            SAFE,
            "one version retained",
            retained=1,
            counterpart="incomplete checkpoint accepted",
        ),
        case(
            SAFE,
            "three versions retained",
            retained=3,
            max_versions=5,
            counterpart="checkpoint without tombstones",
        ),
        case(
            MUTANT,
            "clean-up before all parts",
            mutant="cleans-too-early",
            violates=REBUILT,
            steps=4,
        ),
        case(
            MUTANT,
            "clean-up to the newest checkpoint",
            mutant="cleans-to-newest",
            violates=REBUILT,
            steps=6,
        ),
        case(
            MUTANT,
            "incomplete checkpoint accepted",
            mutant="accepts-incomplete",
            violates=REBUILT,
            steps=2,
        ),
        case(MUTANT, "reader trusts the hint", mutant="trusts-hint", violates=REBUILT, steps=5),
        case(
            MUTANT,
            "checkpoint without tombstones",
            mutant="drops-tombstones",
            violates="TombstonesOfRetainedVersionsSurvive",
            steps=4,
        ),
        case(
            CONTROL,
            "clean-up before all parts, one part",
            parts=1,
            mutant="cleans-too-early",
            shows="A checkpoint of one part is never incomplete.",
        ),
        case(
            CONTROL,
            "clean-up to the newest checkpoint, one version retained",
            retained=1,
            mutant="cleans-to-newest",
            shows="If only the newest version is retained, the newest checkpoint may be the bound.",
        ),
    ),
)

OPERATED = ("StartRestore", "Restore")
NEWEST = "NewestVersionIsWhole"

VACUUM = ModelSuite(
    name="vacuum",
    format=DELTA,
    shows="Vacuum is safe if and only if it keeps files longer than anybody may need them.",
    model=DeltaVacuum,
    cases=(
        case(
            SAFE,
            "retention longer than every operation",
            unreached=(*OPERATED, "Clone"),
            counterpart="retention as long as an operation",
        ),
        case(
            SAFE,
            "restore well within the retention",
            max_writes=1,
            max_restores=1,
            unreached=("Clone",),
            counterpart="restore at the end of the retention",
        ),
        case(
            SAFE,
            "vacuum that knows of clones",
            max_writes=1,
            max_clones=1,
            max_restores=1,
            knows_clones=True,
            counterpart="vacuum that does not know of clones",
        ),
        case(
            FINDING,
            "retention as long as an operation",
            retention=2,
            violates=NEWEST,
            steps=6,
            shows="Safe from one tick more than the longest reader or writer takes.",
        ),
        case(
            FINDING,
            "restore at the end of the retention",
            max_writes=1,
            max_restores=1,
            restorable=2,
            violates=NEWEST,
            steps=9,
            shows="What may be restored must be kept for as long as a restore takes, and longer.",
        ),
        case(
            FINDING,
            "vacuum that does not know of clones",
            max_writes=1,
            max_clones=1,
            violates="ClonesAreWhole",
            steps=8,
            shows="A shallow clone needs the files of its source for ever.",
        ),
        case(MUTANT, "no grace for new files", mutant="no-grace", violates=NEWEST, steps=4),
    ),
)

ORDER = "ASerialOrderExplainsEverything"
ONE = ("a",)

ISOLATION = ModelSuite(
    name="isolation",
    format=DELTA,
    shows="Which serial order explains what operations read, under the rules twinlake ships.",
    model=Isolation,
    options=MappingProxyType({"symmetry": True}),
    cases=(
        case(
            SAFE,
            "serializable",
            partitions=ONE,
            counterpart="serializable checked as write-serializable",
        ),
        case(
            SAFE,
            "serializable, two partitions",
            counterpart="an append hides what it read",
        ),
        case(
            SAFE,
            "serializable, 3 writers",
            writers=3,
            partitions=ONE,
            counterpart="added files are ignored",
        ),
        case(
            SAFE,
            "serializable, 5 operations",
            max_ops=5,
            partitions=ONE,
            large=True,
            counterpart="compaction commits like an update",
        ),
        case(
            SAFE,
            "write-serializable",
            isolation=WRITE_SERIALIZABLE,
            partitions=ONE,
            counterpart="write-serializable, two partitions",
        ),
        case(
            SAFE,
            "write-serializable, 5 operations",
            isolation=WRITE_SERIALIZABLE,
            max_ops=5,
            partitions=ONE,
            large=True,
            counterpart="removed files are ignored",
        ),
        case(
            FINDING,
            "write-serializable, two partitions",
            isolation=WRITE_SERIALIZABLE,
            violates=ORDER,
            steps=6,
            shows="A delete that did not see a blind append, and an insert that counted both "
            "what was appended and what is deleted: neither can be the first.",
        ),
        case(
            FINDING,
            "write-serializable by the order of versions",
            isolation=WRITE_SERIALIZABLE,
            order=COMMIT_ORDER,
            partitions=ONE,
            violates=ORDER,
            steps=4,
            shows="The order exists, but it is not the order of the versions.",
        ),
        case(
            MUTANT,
            "an append hides what it read",
            isolation=WRITE_SERIALIZABLE,
            mutant="hides-reads",
            partitions=ONE,
            violates=ORDER,
            steps=4,
        ),
        case(
            MUTANT,
            "added files are ignored",
            isolation=WRITE_SERIALIZABLE,
            mutant="ignores-added",
            partitions=ONE,
            violates=ORDER,
            steps=4,
        ),
        case(
            MUTANT,
            "removed files are ignored",
            isolation=WRITE_SERIALIZABLE,
            mutant="ignores-removed",
            partitions=ONE,
            violates=ORDER,
            steps=4,
        ),
        case(
            MUTANT,
            "serializable checked as write-serializable",
            mutant="relaxed",
            partitions=ONE,
            violates=ORDER,
            steps=4,
        ),
        case(
            MUTANT,
            "compaction commits like an update",
            mutant="compaction-changes-data",
            partitions=ONE,
            violates="AppendsAndCompactionsDoNotConflict",
            steps=4,
        ),
        case(
            CONTROL,
            "compaction asks for all rows and changes none",
            counterpart="compaction commits like an update",
            mutant="compaction-asks",
            partitions=ONE,
            shows="A commit that only rearranges rows is checked under snapshot isolation.",
        ),
    ),
)

BATCHES = "ExactlyOnceAndInOrder"
LATER = ("NoteId",)

APPLICATIONS = ModelSuite(
    name="application-ids",
    format=DELTA,
    shows="A stream that starts over, or runs twice, writes every batch exactly once.",
    model=ApplicationIds,
    options=MappingProxyType({"symmetry": True}),
    cases=(
        case(
            SAFE,
            "two instances",
            unreached=LATER,
            counterpart="another instance is no conflict",
        ),
        case(
            SAFE,
            "one instance",
            instances=1,
            unreached=LATER,
            counterpart="the last batch is not looked up",
        ),
        case(
            SAFE,
            "three instances, three batches",
            instances=3,
            batches=3,
            max_crashes=2,
            unreached=LATER,
            counterpart="the id is committed after the data",
        ),
        case(
            MUTANT,
            "the last batch is not looked up",
            instances=1,
            mutant="ignores-last-batch",
            violates=BATCHES,
            steps=5,
        ),
        case(
            MUTANT,
            "another instance is no conflict",
            max_crashes=0,
            mutant="unchecked-application",
            violates=BATCHES,
            steps=4,
        ),
        case(
            MUTANT,
            "the id is committed after the data",
            instances=1,
            mutant="notes-id-later",
            violates=BATCHES,
            steps=5,
        ),
        case(
            CONTROL,
            "another instance is no conflict, one instance",
            instances=1,
            mutant="unchecked-application",
            unreached=LATER,
            shows="With one instance there is nobody to lose to.",
        ),
    ),
)

DELTA_MODELS = (LOG, STORE, CHECKPOINTS, VACUUM, VECTORS, ROWS, ISOLATION, APPLICATIONS)
