"""The conflict rules that twinlake commits by, for models to ask: the rules, not a copy."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from twinlake.actions import AddFile, Metadata, Protocol, RemoveFile, SetTransaction
from twinlake.commit import (
    RULES,
    Base,
    Change,
    Conflicting,
    Operation,
    ReadSet,
    Winner,
    assemble,
    check_all_conflicts,
    client_context,
)
from twinlake.protocol import keys

if TYPE_CHECKING:
    from twinlake.actions import Action
    from twinlake.schema.predicates import Expr

__all__ = [
    "ADDED_FILES",
    "APPLICATIONS",
    "EVERYTHING",
    "REMOVED_FILES",
    "CheckedCommit",
    "PartitionedPath",
    "RuleConflict",
    "conflict",
]

#: Rules that mutants leave out, by their ids.
ADDED_FILES = frozenset({"OCC-07"})
REMOVED_FILES = frozenset({"OCC-08", "OCC-09"})
APPLICATIONS = frozenset({"OCC-04"})

PARTITION = "p"
#: Instead of a partition: the rows of all of them were asked for.
EVERYTHING = "*"
SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": name, "type": "string", "nullable": True, "metadata": {}}
            for name in (PARTITION, "x")
        ],
    }
)


class PartitionedPath(NamedTuple):
    """A file that a commit adds."""

    path: str
    partition: str


class CheckedCommit(NamedTuple):
    """What a model's operation commits and has read, as far as rules look at it."""

    operation: str
    added: tuple[PartitionedPath, ...] = ()
    removed: tuple[str, ...] = ()
    data_change: bool = True
    #: The files it has read, and the partition whose rows it asked for.
    files: frozenset[str] = frozenset()
    asked: str | None = None
    #: The application and the number it writes under.
    application: tuple[str, int] | None = None


class RuleConflict(NamedTuple):
    """Which rule refused a commit, and at which version."""

    rule: str
    version: int
    why: str


@lru_cache(maxsize=100_000)
def conflict(
    mine: CheckedCommit,
    read_version: int,
    winners: tuple[CheckedCommit, ...],
    *,
    isolation: str,
    without: frozenset[str] = frozenset(),
) -> RuleConflict | None:
    """Whether a commit that read a version loses to those after it; ``None`` if it may follow."""
    rules = tuple(rule for rule in RULES if rule.id not in without)
    since = tuple(
        Winner(version=version, actions=_body(one, version - 1, isolation))
        for version, one in enumerate(winners, read_version + 1)
    )
    outcome = check_all_conflicts(
        _change(mine, read_version, isolation), since, client_context(), rules
    )
    if not isinstance(outcome, Conflicting):
        return None
    return RuleConflict(outcome.rule.id, outcome.winner.version, outcome.clash.why)


def _change(commit: CheckedCommit, version: int, isolation: str) -> Change:
    metadata = Metadata(
        id="table",
        schema_string=SCHEMA,
        partition_columns=(PARTITION,),
        configuration={keys.ISOLATION_LEVEL: isolation},
    )
    predicates = () if commit.asked is None else (_asked(commit.asked),)
    applications = frozenset((commit.application[0],)) if commit.application else frozenset()
    return Change(
        base=Base(version=version, protocol=Protocol(1, 2), metadata=metadata),
        operation=Operation(name=commit.operation),
        actions=_actions(commit),
        reads=ReadSet(files=commit.files, predicates=predicates, app_ids=applications),
        read_version=version,
    )


def _actions(commit: CheckedCommit) -> tuple[Action, ...]:
    actions: list[Action] = [
        AddFile(
            path=one.path,
            partition_values={PARTITION: one.partition},
            size=1,
            modification_time=0,
            data_change=commit.data_change,
        )
        for one in commit.added
    ]
    actions += [
        RemoveFile(path=path, data_change=commit.data_change, deletion_timestamp=0)
        for path in commit.removed
    ]
    if commit.application is not None:
        app_id, number = commit.application
        actions.append(SetTransaction(app_id=app_id, version=number))
    return tuple(actions)


@lru_cache(maxsize=10_000)
def _body(commit: CheckedCommit, version: int, isolation: str) -> tuple[Action, ...]:
    """The actions of a committed version, with what the commit says of itself."""
    body = assemble(_change(commit, version, isolation), txn_id="model", engine_info="model")
    return body.actions


@lru_cache(maxsize=100)
def _asked(partition: str) -> Expr:
    from twinlake.schema.predicates import parse_predicate

    metadata = Metadata(id="table", schema_string=SCHEMA, partition_columns=(PARTITION,))
    text = "true" if partition == EVERYTHING else f"{PARTITION} = '{partition}'"
    return parse_predicate(text, metadata.schema)
