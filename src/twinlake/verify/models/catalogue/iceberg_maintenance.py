"""The models of cleanup, retries, manifests and transactions of Iceberg tables in the catalogue."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from twinlake.verify.models.catalogue.iceberg_writers import DANGLING, REDUCED
from twinlake.verify.models.catalogue.model_case import (
    CONTROL,
    FINDING,
    ICEBERG,
    MUTANT,
    SAFE,
    ModelSuite,
    case,
)
from twinlake.verify.models.iceberg import (
    ManifestRewriting,
    MultiTableTransaction,
    OrphanCleanup,
    RetryBudget,
    SnapshotRetention,
)
from twinlake.verify.models.iceberg.manifests import FAST_APPEND, MERGING_APPEND
from twinlake.verify.models.iceberg.retention import COMMITTED_AGE
from twinlake.verify.models.iceberg.transactions import ONE_BY_ONE, RECHECKED

__all__ = ["ICEBERG_MAINTENANCE_MODELS"]

EXIST = "CommittedFilesExist"
READ = "ConsistentRead"

ORPHANS = ModelSuite(
    name="orphan-cleanup",
    format=ICEBERG,
    shows="A grace age longer than the longest write is safe if files are listed first.",
    model=OrphanCleanup,
    cases=(
        case(
            SAFE,
            "grace longer than every write",
            counterpart="grace as long as a write",
        ),
        case(
            SAFE,
            "two writers",
            writers=2,
            counterpart="metadata is read before the listing",
        ),
        case(
            FINDING,
            "grace as long as a write",
            grace=2,
            violates=EXIST,
            steps=7,
            shows="Safe from one tick more than the longest write takes.",
        ),
        case(MUTANT, "no grace age", mutant="no-grace-age", violates=EXIST, steps=5),
        case(
            MUTANT,
            "metadata is read before the listing",
            mutant="metadata-first",
            violates=EXIST,
            steps=8,
            shows="A file that was committed between the two looks is taken for an orphan.",
        ),
        case(
            CONTROL,
            "metadata is read before the listing, grace longer by the pause",
            mutant="metadata-first",
            grace=4,
            max_ticks=7,
            shows="This order needs a grace age longer than a write and the cleaner's pause.",
        ),
        case(
            MUTANT,
            "age is judged at the deletion",
            mutant="ages-at-deletion",
            violates=EXIST,
            steps=8,
        ),
        case(
            MUTANT,
            "the cleaner runs only once",
            mutant="cleans-once",
            violates="OldOrphansGoAway",
            steps=12,
        ),
    ),
)

WHOLE, GO_AWAY = "RetainedSnapshotsAreWhole", "UnreachableFilesGoAway"
NO_ROLLBACK = ("StartRollback", "RollBack")
NO_READER = ("OpenSnapshot", "ReadFile")
AT_ONCE: dict[str, Any] = {"readers": 0, "retention": 0, "max_ticks": 0}

RETENTION = ModelSuite(
    name="retention",
    format=ICEBERG,
    shows="Expiry, rollbacks and long readers share the snapshots of one table.",
    model=SnapshotRetention,
    cases=(
        case(
            SAFE,
            "a long reader",
            unreached=NO_ROLLBACK,
            counterpart="retention as long as a reader",
        ),
        case(
            SAFE,
            "two expirers",
            expirers=2,
            unreached=("Tick", *NO_ROLLBACK, *NO_READER),
            **AT_ONCE,
            counterpart="the register is overwritten",
        ),
        case(
            SAFE,
            "a rollback to a snapshot that is being expired",
            operators=1,
            expirers=2,
            unreached=("Tick", *NO_READER),
            **AT_ONCE,
            counterpart="after a lost swap the plan stays",
        ),
        case(
            SAFE,
            "a rollback and a reader",
            operators=1,
            max_ticks=3,
            counterpart="a rollback puts an expired snapshot back",
        ),
        case(
            FINDING,
            "retention as long as a reader",
            retention=1,
            violates="ReadersFinish",
            steps=7,
            shows="Safe from one tick more than the longest reader takes.",
        ),
        case(
            FINDING,
            "age counts from the commit",
            age_from=COMMITTED_AGE,
            violates="ReadersFinish",
            steps=8,
            shows="A snapshot that was current for long is expired as soon as it is replaced, "
            "whoever reads it: no retention is long enough.",
        ),
        case(
            MUTANT,
            "the register is overwritten",
            expirers=2,
            mutant="blind-swap",
            violates=GO_AWAY,
            steps=5,
            **AT_ONCE,
        ),
        case(
            MUTANT,
            "files are deleted before the swap",
            mutant="deletes-first",
            violates=WHOLE,
            steps=3,
            **AT_ONCE,
        ),
        case(
            MUTANT,
            "after a lost swap the plan stays",
            operators=1,
            mutant="stale-plan",
            violates=WHOLE,
            steps=5,
            **AT_ONCE,
        ),
        case(
            CONTROL,
            "after a lost swap the plan stays, nobody rolls back",
            expirers=2,
            mutant="stale-plan",
            unreached=("Tick", *NO_ROLLBACK, *NO_READER),
            shows="What is old stays old, as long as nothing old becomes current again.",
            **AT_ONCE,
        ),
        case(
            MUTANT,
            "files of two expired snapshots stay",
            mutant="forgets-shared",
            violates=GO_AWAY,
            steps=5,
            **AT_ONCE,
        ),
        case(
            MUTANT,
            "a rollback puts an expired snapshot back",
            operators=1,
            mutant="rolls-back-blindly",
            violates=WHOLE,
            steps=6,
            **AT_ONCE,
        ),
    ),
)

TWO = ("jack", "sarah")
COMPACTION = ("StartCompactionOperation",)

RETRIES = ModelSuite(
    name="retry-budget",
    format=ICEBERG,
    shows="A writer may give up after some failed swaps, but must validate before every one.",
    model=RetryBudget,
    without=DANGLING,
    options=REDUCED,
    cases=(
        case(
            SAFE,
            "no retry",
            fix="A",
            max_retries=0,
            unreached=COMPACTION,
            counterpart="the last swap is forced",
        ),
        case(
            SAFE,
            "one retry, two ids",
            fix="A",
            col1_values=TWO,
            unreached=COMPACTION,
            counterpart="a retry does not validate again",
        ),
        case(
            SAFE,
            "no retry, compaction",
            fix="A",
            max_retries=0,
            max_compaction_ops=1,
            counterpart="failed swaps are not counted",
        ),
        case(
            MUTANT,
            "the last swap is forced",
            fix="A",
            col1_values=TWO,
            max_retries=0,
            mutant="forces-last-swap",
            violates=READ,
            steps=9,
            moves=7,
        ),
        case(
            MUTANT,
            "a retry does not validate again",
            fix="A",
            mutant="validates-once",
            violates=READ,
            steps=16,
            moves=11,
        ),
        case(
            MUTANT,
            "failed swaps are not counted",
            fix="A",
            col1_values=TWO,
            max_retries=0,
            mutant="retries-forever",
            violates="RetriesStayWithinTheBudget",
            steps=8,
            moves=6,
        ),
    ),
)

MANIFESTS = ModelSuite(
    name="manifests",
    format=ICEBERG,
    shows="Fast appends, merging appends and rewrites of manifests leave the same rows.",
    model=ManifestRewriting,
    options=REDUCED,
    cases=(
        case(
            SAFE,
            "both kinds of append",
            counterpart="a rewrite replaces all manifests",
        ),
        case(
            SAFE,
            "fast appends",
            appends=(FAST_APPEND,),
            counterpart="replaced manifests are not looked for",
        ),
        case(
            SAFE,
            "merging appends",
            appends=(MERGING_APPEND,),
            counterpart="a merged manifest is used again",
        ),
        case(
            SAFE,
            "two keys",
            keys=("a", "b"),
            max_ops=3,
            counterpart="entries lose their sequence numbers",
        ),
        case(
            MUTANT,
            "entries lose their sequence numbers",
            mutant="loses-sequence-numbers",
            violates=READ,
            steps=10,
            moves=6,
        ),
        case(
            MUTANT,
            "rewritten entries are marked as added",
            mutant="marks-added",
            violates="OnlyAppendsAdd",
            steps=7,
            moves=4,
        ),
        case(
            MUTANT,
            "a rewrite replaces all manifests",
            mutant="replaces-all-manifests",
            violates=READ,
            steps=10,
            moves=6,
        ),
        case(
            MUTANT,
            "replaced manifests are not looked for",
            mutant="unchecked-manifests",
            violates=READ,
            steps=10,
            moves=6,
        ),
        case(
            MUTANT,
            "a merged manifest is used again",
            mutant="reuses-merged",
            violates=READ,
            steps=8,
            moves=7,
        ),
    ),
)

HALF = "NobodySeesHalfATransaction"
IN_ONE_LOOK = ("SwapSecond", "OpenSecond", "LookAgain")

TRANSACTIONS = ModelSuite(
    name="two-tables",
    format=ICEBERG,
    shows="Two tables committed together are seen together, if the reader looks with care.",
    model=MultiTableTransaction,
    options=MappingProxyType({"symmetry": True}),
    cases=(
        case(
            SAFE,
            "read in one look",
            unreached=IN_ONE_LOOK,
            counterpart="registers are swapped one by one",
        ),
        case(
            SAFE,
            "read one by one and looked at again",
            reading=RECHECKED,
            unreached=("SwapSecond",),
            counterpart="read one by one",
        ),
        case(
            FINDING,
            "read one by one",
            reading=ONE_BY_ONE,
            violates=HALF,
            steps=5,
            shows="However atomic the commit: it may fall between the two looks of a reader.",
        ),
        case(
            MUTANT,
            "only the first table's requirements are checked",
            mutant="checks-first-table",
            violates="NoCommitIsLost",
            steps=6,
        ),
        case(
            MUTANT,
            "registers are swapped one by one",
            mutant="swaps-one-by-one",
            violates=HALF,
            steps=4,
        ),
        case(
            MUTANT,
            "what can be committed is committed",
            mutant="applies-what-it-can",
            violates=HALF,
            steps=7,
        ),
    ),
)

ICEBERG_MAINTENANCE_MODELS = (ORPHANS, RETENTION, RETRIES, MANIFESTS, TRANSACTIONS)
