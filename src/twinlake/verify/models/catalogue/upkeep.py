"""The models of what is deleted, retried and committed around an Iceberg table."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from twinlake.verify.models.catalogue.iceberg import DANGLING, REDUCED
from twinlake.verify.models.catalogue.rows import (
    CONTROL,
    FINDING,
    ICEBERG,
    MUTANT,
    SAFE,
    Extension,
    case,
)
from twinlake.verify.models.iceberg.cleanup import (
    AGES_AT_DELETION,
    CLEANS_ONCE,
    METADATA_FIRST,
    NO_GRACE_AGE,
    OrphanCleanup,
)
from twinlake.verify.models.iceberg.manifests import (
    FAST_APPEND,
    LOSES_SEQUENCE_NUMBERS,
    MARKS_ADDED,
    MERGING_APPEND,
    REPLACES_ALL_MANIFESTS,
    REUSES_MERGED,
    UNCHECKED_MANIFESTS,
    ManifestRewriting,
)
from twinlake.verify.models.iceberg.retention import (
    BLIND_SWAP,
    COMMITTED_AGE,
    DELETES_FIRST,
    FORGETS_SHARED,
    ROLLS_BACK_BLINDLY,
    STALE_PLAN,
    SnapshotRetention,
)
from twinlake.verify.models.iceberg.retries import (
    FORCES_LAST_SWAP,
    RETRIES_FOREVER,
    VALIDATES_ONCE,
    RetryBudget,
)
from twinlake.verify.models.iceberg.transactions import (
    APPLIES_WHAT_IT_CAN,
    CHECKS_FIRST_TABLE,
    ONE_BY_ONE,
    RECHECKED,
    SWAPS_ONE_BY_ONE,
    TwoTables,
)

__all__ = ["AROUND_TABLES"]

EXIST = "CommittedFilesExist"
READ = "ConsistentRead"

ORPHANS = Extension(
    name="orphan-cleanup",
    format=ICEBERG,
    shows="A grace age longer than the longest write is safe if files are listed first.",
    model=OrphanCleanup,
    cases=(
        case(SAFE, "grace longer than every write"),
        case(SAFE, "two writers", writers=2),
        case(
            FINDING,
            "grace as long as a write",
            grace=2,
            violates=EXIST,
            steps=7,
            shows="Safe from one tick more than the longest write takes.",
        ),
        case(MUTANT, "no grace age", mutant=NO_GRACE_AGE, violates=EXIST, steps=5),
        case(
            MUTANT,
            "metadata is read before the listing",
            mutant=METADATA_FIRST,
            violates=EXIST,
            steps=8,
            shows="A file that was committed between the two looks is taken for an orphan.",
        ),
        case(
            CONTROL,
            "metadata is read before the listing, grace longer by the pause",
            mutant=METADATA_FIRST,
            grace=4,
            max_ticks=7,
            shows="This order needs a grace age longer than a write and the cleaner's pause.",
        ),
        case(
            MUTANT,
            "age is judged at the deletion",
            mutant=AGES_AT_DELETION,
            violates=EXIST,
            steps=8,
        ),
        case(
            MUTANT,
            "the cleaner runs only once",
            mutant=CLEANS_ONCE,
            violates="OldOrphansGoAway",
            steps=12,
        ),
    ),
)

WHOLE, GO_AWAY = "RetainedSnapshotsAreWhole", "UnreachableFilesGoAway"
NO_ROLLBACK = ("StartRollback", "RollBack")
NO_READER = ("OpenSnapshot", "ReadFile")
AT_ONCE: dict[str, Any] = {"readers": 0, "retention": 0, "max_ticks": 0}

RETENTION = Extension(
    name="retention",
    format=ICEBERG,
    shows="Expiry, rollbacks and long readers share the snapshots of one table.",
    model=SnapshotRetention,
    cases=(
        case(SAFE, "a long reader", unreached=NO_ROLLBACK),
        case(
            SAFE,
            "two expirers",
            expirers=2,
            unreached=("Tick", *NO_ROLLBACK, *NO_READER),
            **AT_ONCE,
        ),
        case(
            SAFE,
            "a rollback to a snapshot that is being expired",
            operators=1,
            expirers=2,
            unreached=("Tick", *NO_READER),
            **AT_ONCE,
        ),
        case(SAFE, "a rollback and a reader", operators=1, max_ticks=3),
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
            mutant=BLIND_SWAP,
            violates=GO_AWAY,
            steps=5,
            **AT_ONCE,
        ),
        case(
            MUTANT,
            "files are deleted before the swap",
            mutant=DELETES_FIRST,
            violates=WHOLE,
            steps=3,
            **AT_ONCE,
        ),
        case(
            MUTANT,
            "after a lost swap the plan stays",
            operators=1,
            mutant=STALE_PLAN,
            violates=WHOLE,
            steps=5,
            **AT_ONCE,
        ),
        case(
            CONTROL,
            "after a lost swap the plan stays, nobody rolls back",
            expirers=2,
            mutant=STALE_PLAN,
            unreached=("Tick", *NO_ROLLBACK, *NO_READER),
            shows="What is old stays old, as long as nothing old becomes current again.",
            **AT_ONCE,
        ),
        case(
            MUTANT,
            "files of two expired snapshots stay",
            mutant=FORGETS_SHARED,
            violates=GO_AWAY,
            steps=5,
            **AT_ONCE,
        ),
        case(
            MUTANT,
            "a rollback puts an expired snapshot back",
            operators=1,
            mutant=ROLLS_BACK_BLINDLY,
            violates=WHOLE,
            steps=6,
            **AT_ONCE,
        ),
    ),
)

TWO = ("jack", "sarah")
COMPACTION = ("StartCompactionOperation",)

RETRIES = Extension(
    name="retry-budget",
    format=ICEBERG,
    shows="A writer may give up after some failed swaps, but must validate before every one.",
    model=RetryBudget,
    without=DANGLING,
    options=REDUCED,
    cases=(
        case(SAFE, "no retry", fix="A", max_retries=0, unreached=COMPACTION),
        case(SAFE, "one retry, two ids", fix="A", col1_values=TWO, unreached=COMPACTION),
        case(SAFE, "no retry, compaction", fix="A", max_retries=0, max_compaction_ops=1),
        case(
            MUTANT,
            "the last swap is forced",
            fix="A",
            col1_values=TWO,
            max_retries=0,
            mutant=FORCES_LAST_SWAP,
            violates=READ,
            steps=9,
            moves=7,
        ),
        case(
            MUTANT,
            "a retry does not validate again",
            fix="A",
            mutant=VALIDATES_ONCE,
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
            mutant=RETRIES_FOREVER,
            violates="RetriesStayWithinTheBudget",
            steps=8,
            moves=6,
        ),
    ),
)

MANIFESTS = Extension(
    name="manifests",
    format=ICEBERG,
    shows="Fast appends, merging appends and rewrites of manifests leave the same rows.",
    model=ManifestRewriting,
    options=REDUCED,
    cases=(
        case(SAFE, "both kinds of append"),
        case(SAFE, "fast appends", appends=(FAST_APPEND,)),
        case(SAFE, "merging appends", appends=(MERGING_APPEND,)),
        case(SAFE, "two keys", keys=("a", "b"), max_ops=3),
        case(
            MUTANT,
            "entries lose their sequence numbers",
            mutant=LOSES_SEQUENCE_NUMBERS,
            violates=READ,
            steps=10,
            moves=6,
        ),
        case(
            MUTANT,
            "rewritten entries are marked as added",
            mutant=MARKS_ADDED,
            violates="OnlyAppendsAdd",
            steps=7,
            moves=4,
        ),
        case(
            MUTANT,
            "a rewrite replaces all manifests",
            mutant=REPLACES_ALL_MANIFESTS,
            violates=READ,
            steps=10,
            moves=6,
        ),
        case(
            MUTANT,
            "replaced manifests are not looked for",
            mutant=UNCHECKED_MANIFESTS,
            violates=READ,
            steps=10,
            moves=6,
        ),
        case(
            MUTANT,
            "a merged manifest is used again",
            mutant=REUSES_MERGED,
            violates=READ,
            steps=8,
            moves=7,
        ),
    ),
)

HALF = "NobodySeesHalfATransaction"
IN_ONE_LOOK = ("SwapSecond", "OpenSecond", "LookAgain")

TRANSACTIONS = Extension(
    name="two-tables",
    format=ICEBERG,
    shows="Two tables committed together are seen together, if the reader looks with care.",
    model=TwoTables,
    options=MappingProxyType({"symmetry": True}),
    cases=(
        case(SAFE, "read in one look", unreached=IN_ONE_LOOK),
        case(
            SAFE,
            "read one by one and looked at again",
            reading=RECHECKED,
            unreached=("SwapSecond",),
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
            mutant=CHECKS_FIRST_TABLE,
            violates="NoCommitIsLost",
            steps=6,
        ),
        case(
            MUTANT,
            "registers are swapped one by one",
            mutant=SWAPS_ONE_BY_ONE,
            violates=HALF,
            steps=4,
        ),
        case(
            MUTANT,
            "what can be committed is committed",
            mutant=APPLIES_WHAT_IT_CAN,
            violates=HALF,
            steps=7,
        ),
    ),
)

AROUND_TABLES = (ORPHANS, RETENTION, RETRIES, MANIFESTS, TRANSACTIONS)
