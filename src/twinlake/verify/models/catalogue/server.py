"""The models of Iceberg commits that a server turns into Delta commits in the catalogue."""

from __future__ import annotations

from typing import Any

from twinlake.verify.models.catalogue.iceberg_writers import REDUCED
from twinlake.verify.models.catalogue.model_case import (
    CONTROL,
    FINDING,
    ICEBERG,
    MUTANT,
    SAFE,
    ModelCase,
    ModelSuite,
    case,
)
from twinlake.verify.models.iceberg.values import COPY_ON_WRITE, SERIALIZABLE
from twinlake.verify.models.server import ServerCommits, ServerReachability, TwinTableCleanup
from twinlake.verify.models.server.clients import DELTA_OPERATIONS, SINCE_BASE, SINCE_SCAN

__all__ = ["SERVER_MODELS"]

ONE, TWO = ("jack",), ("jack", "sarah")
READ, ONCE, REQUIRED = "ConsistentRead", "CommittedExactlyOnce", "RequirementsHeld"
COMPACTION, ABORT, RACE = "StartCompactionOperation", "WriteMetadataFiles (abort)", "LoseRace"
FAULTS = ("TimeOut", "SendAgain", "LookForSnapshot", "LoseAnswerOfStore", "Settle", "Crash")
DIRECT = ("DeltaStart", "DeltaPut", "DeltaRebase", "DeltaConflict")
READING = ("StartDeleteOperation", "StartUpdateOperation", "ReadDataFiles")


def _serving(kind: str, name: str, *unreached: str, **rest: Any) -> ModelCase:
    """A case with the fix, in which happens only what there is a budget for."""
    never = list(unreached)
    if not rest.get("max_compaction_ops"):
        never.append(COMPACTION)
    if not rest.get("faults"):
        never.extend(FAULTS)
    if not rest.get("delta_clients"):
        never.extend(DIRECT)
        if rest.get("servers", 1) == 1:
            never.append(RACE)
    wanted = {"fix": "A", **rest}
    return case(kind, name, unreached=() if rest.get("violates") else tuple(never), **wanted)


def _direct(kind: str, name: str, *unreached: str, **rest: Any) -> ModelCase:
    """A case with a client that writes the log directly, once by default."""
    wanted = {"delta_clients": 1, "max_delta_ops": 1, "stored_ids": ONE, **rest}
    return _serving(kind, name, *unreached, **wanted)


SERVER = ModelSuite(
    name="server",
    format=ICEBERG,
    shows="Commits through servers on a Delta log keep what a catalog's register keeps.",
    model=ServerCommits,
    options=REDUCED,
    cases=(
        _serving(
            SAFE,
            "one server",
            counterpart="without the fix",
        ),
        _serving(
            SAFE,
            "two servers",
            servers=2,
            counterpart="put again unchecked",
        ),
        _serving(
            SAFE,
            "two servers, two ids",
            servers=2,
            col1_values=TWO,
            large=True,
            counterpart="snapshot ids of a server's own",
        ),
        _serving(
            SAFE,
            "two servers, a file of two rows",
            servers=2,
            col1_values=TWO,
            stored_ids=TWO,
            max_write_ops=2,
            counterpart="two vectors",
        ),
        _serving(
            SAFE,
            "two servers, copy-on-write",
            servers=2,
            update_mode=COPY_ON_WRITE,
            delete_mode=COPY_ON_WRITE,
            fix=None,
            counterpart="put again unchecked",
        ),
        _serving(
            SAFE,
            "two servers, serializable",
            servers=2,
            isolation=SERIALIZABLE,
            fix=None,
            counterpart="put again unchecked",
        ),
        _serving(
            SAFE,
            "two servers, emptied files dropped",
            servers=2,
            drop_emptied=True,
            counterpart="without the fix, emptied files dropped, a file of two rows",
        ),
        _serving(
            SAFE,
            "two servers, compaction",
            servers=2,
            stored_ids=ONE,
            max_write_ops=2,
            max_compaction_ops=1,
            counterpart="put again unchecked",
        ),
        _direct(
            SAFE,
            "a direct client",
            servers=2,
            max_write_ops=1,
            counterpart="put again unchecked, a direct client",
        ),
        _direct(
            SAFE,
            "a direct client, every operation",
            col1_values=TWO,
            max_write_ops=1,
            delta_operations=DELTA_OPERATIONS,
            counterpart="put again with the files checked only",
        ),
        _direct(
            SAFE,
            "a direct client, two writes",
            max_write_ops=2,
            large=True,
            counterpart="cached view, a direct client",
        ),
        _direct(
            SAFE,
            "two direct clients",
            writers=1,
            delta_clients=2,
            max_delta_ops=2,
            max_write_ops=1,
            delta_operations=DELTA_OPERATIONS,
            large=True,
            counterpart="put again unchecked, a direct client",
        ),
        _serving(
            FINDING,
            "without the fix",
            fix=None,
            violates=READ,
            steps=21,
            moves=13,
            shows="The client refreshes before it commits, so the server has nothing to refuse.",
        ),
        _serving(
            FINDING,
            "without the fix, files checked since the base",
            fix=None,
            file_check=SINCE_BASE,
            violates=READ,
            steps=21,
            moves=13,
            shows="Delta's own check finds nothing: the file changed before the base, not after.",
        ),
        _serving(
            CONTROL,
            "without the fix, files checked since the scan",
            fix=None,
            file_check=SINCE_SCAN,
            shows="Delta's own check masks the anomaly once the client tells what it scanned.",
            counterpart="without the fix, files checked since the base",
        ),
        _serving(
            CONTROL,
            "without the fix, emptied files dropped",
            fix=None,
            drop_emptied=True,
            shows="The file of the only row is gone, and the client itself looks for that.",
            counterpart="without the fix, emptied files dropped, a file of two rows",
        ),
        _serving(
            FINDING,
            "without the fix, emptied files dropped, a file of two rows",
            fix=None,
            drop_emptied=True,
            col1_values=TWO,
            stored_ids=TWO,
            max_write_ops=2,
            violates=READ,
            steps=14,
            moves=8,
        ),
        _serving(
            MUTANT,
            "put again unchecked",
            mutant="retries-put",
            servers=2,
            stored_ids=ONE,
            max_write_ops=2,
            violates=REQUIRED,
            steps=14,
            moves=8,
        ),
        _direct(
            MUTANT,
            "put again unchecked, a direct client",
            mutant="retries-put",
            writers=1,
            max_write_ops=1,
            violates=REQUIRED,
            steps=9,
            moves=6,
        ),
        _direct(
            MUTANT,
            "put again with the files checked only",
            mutant="retries-put",
            file_check=SINCE_BASE,
            writers=1,
            max_write_ops=1,
            violates=REQUIRED,
            steps=9,
            moves=6,
            shows="No file changed, but the schema did.",
        ),
        _serving(CONTROL, "put again unchecked, nobody to race with", mutant="retries-put"),
        _serving(
            CONTROL,
            "put again with the files checked only, one file",
            mutant="retries-put",
            file_check=SINCE_BASE,
            servers=2,
            stored_ids=ONE,
            max_write_ops=2,
        ),
        _serving(
            MUTANT, "cached view", mutant="cached-view", violates=REQUIRED, steps=26, moves=17
        ),
        _direct(
            MUTANT,
            "cached view, a direct client",
            mutant="cached-view",
            writers=1,
            max_write_ops=2,
            violates=REQUIRED,
            steps=21,
            moves=15,
        ),
        _serving(CONTROL, "cached view, one client", ABORT, mutant="cached-view", writers=1),
        _serving(
            MUTANT,
            "snapshot ids of a server's own",
            mutant="local-ids",
            servers=2,
            violates="ServersShowTheSame",
            steps=20,
            moves=12,
        ),
        _serving(CONTROL, "snapshot ids of the only server's own", mutant="local-ids"),
        _serving(
            MUTANT,
            "two vectors",
            mutant="two-vectors",
            writers=1,
            col1_values=TWO,
            stored_ids=TWO,
            max_write_ops=1,
            violates="BothFacesReadTheSame",
            steps=7,
            moves=4,
        ),
        _serving(
            CONTROL, "two vectors, one row", mutant="two-vectors", stored_ids=ONE, max_write_ops=2
        ),
        _serving(
            MUTANT,
            "a refusal that asks to try again",
            fix=None,
            file_check=SINCE_SCAN,
            mutant="refuses-as-conflict",
            violates="OperationsEventuallyCommitOrAbort",
            steps=22,
            shows="The client refreshes, passes its own checks and sends the same, for ever.",
        ),
    ),
)

SERVER_FAULTS = ModelSuite(
    name="server-faults",
    format=ICEBERG,
    shows="Every operation is committed once at most, and no committed one is reported as failed.",
    model=ServerCommits,
    options=REDUCED,
    cases=(
        _serving(
            SAFE,
            "one fault",
            ABORT,
            *READING,
            writers=1,
            max_write_ops=1,
            faults=1,
            counterpart="no idempotency key",
        ),
        _serving(
            SAFE,
            "three faults, two servers",
            ABORT,
            *READING,
            writers=1,
            servers=2,
            max_write_ops=1,
            faults=3,
            counterpart="key looked up only once",
        ),
        _serving(
            SAFE,
            "one fault, two servers, two clients",
            "StartUpdateOperation",
            servers=2,
            stored_ids=ONE,
            allow_updates=False,
            max_write_ops=2,
            faults=1,
            counterpart="key looked up only once",
        ),
        _direct(
            SAFE,
            "one fault, a direct client",
            servers=2,
            max_write_ops=1,
            faults=1,
            counterpart="started over without an answer",
        ),
        _serving(
            SAFE,
            "one fault, three writes",
            faults=1,
            large=True,
            counterpart="server gives up on an unknown outcome",
        ),
        _serving(
            MUTANT,
            "no idempotency key",
            mutant="no-key",
            writers=1,
            max_write_ops=1,
            faults=1,
            violates=ONCE,
            steps=16,
            moves=12,
        ),
        _serving(CONTROL, "no idempotency key, no faults", mutant="no-key"),
        _serving(
            MUTANT,
            "key looked up only once",
            mutant="forgets-key",
            writers=1,
            servers=2,
            max_write_ops=1,
            faults=1,
            violates=ONCE,
            steps=18,
            moves=13,
        ),
        _serving(
            CONTROL,
            "key looked up only once, one server",
            ABORT,
            mutant="forgets-key",
            max_write_ops=2,
            faults=1,
        ),
        _serving(
            MUTANT,
            "started over without an answer",
            mutant="resends",
            writers=1,
            max_write_ops=1,
            faults=1,
            violates=ONCE,
            steps=11,
            moves=8,
        ),
        _serving(
            MUTANT,
            "unknown outcome told as failure",
            mutant="unknown-is-failure",
            writers=1,
            max_write_ops=1,
            faults=1,
            violates="ReportsAreTrue",
            steps=8,
            moves=6,
        ),
        _serving(
            CONTROL, "unknown outcome told as failure, no faults", mutant="unknown-is-failure"
        ),
        _serving(
            MUTANT,
            "server gives up on an unknown outcome",
            mutant="server-gives-up",
            writers=1,
            max_write_ops=1,
            faults=1,
            violates=ONCE,
            steps=12,
            moves=9,
        ),
    ),
)

SERVER_TOGETHER = ModelSuite(
    name="server-together",
    format=ICEBERG,
    shows="Clients, servers, a direct client and faults together: everything happens, and holds.",
    model=ServerReachability,
    options=REDUCED,
    cases=tuple(
        _direct(
            SAFE,
            name,
            writers=1,
            servers=servers,
            max_write_ops=1,
            max_compaction_ops=1,
            faults=1,
            large=servers > 1,
            counterpart="server-faults: no idempotency key",
        )
        for name, servers in (("one server", 1), ("two servers", 2))
    ),
)

SERVER_CLEANING = ModelSuite(
    name="server-cleaning",
    format=ICEBERG,
    shows="Vacuum and snapshot expiry take no file from a Delta or an Iceberg reader.",
    model=TwinTableCleanup,
    cases=(
        case(
            SAFE,
            "one write",
            counterpart="vacuum ignores the list",
        ),
        case(
            SAFE,
            "two writes",
            max_writes=2,
            max_ticks=3,
            large=True,
            counterpart="log cleaned under listed snapshots",
        ),
        case(
            SAFE,
            "long readers",
            longest=2,
            wait=3,
            max_ticks=5,
            counterpart="a wait no longer than the readers",
        ),
        case(
            FINDING,
            "a wait no longer than the readers",
            wait=1,
            violates="ListedSnapshotsAreWhole",
            steps=5,
        ),
        *(
            case(MUTANT, name, mutant=mutant, violates=violates, steps=steps)
            for name, mutant, violates, steps in (
                ("vacuum ignores the list", "vacuums-listed", "ListedSnapshotsAreWhole", 6),
                ("expired files deleted at once", "deletes-at-once", "ReadersFinish", 6),
                ("no grace for new files", "no-grace", "ListedSnapshotsAreWhole", 4),
                (
                    "log cleaned under listed snapshots",
                    "cleans-listed",
                    "ListedSnapshotsCanBeDerived",
                    3,
                ),
                ("entries counted", "counts-entries", "NumbersAreStable", 4),
            )
        ),
    ),
)

SERVER_MODELS = (SERVER, SERVER_FAULTS, SERVER_TOGETHER, SERVER_CLEANING)
