"""Every check of a commit, as a registry; all failures are raised together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.commit.checks import actions, compat, features, files, schema
from twinlake.commit.checks.check import CommitCheck
from twinlake.errors import Code, UserError, listed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.commit.checks.check import CheckFailure, Draft
    from twinlake.errors import TwinlakeError

__all__ = ["CHECKS", "COMPAT_CHECK", "run_checks"]

COMPAT_CHECK: Final = CommitCheck(
    id="CMT-15", name="rules of the compat features hold", run=compat.compat_rules
)
CHECKS: Final[tuple[CommitCheck, ...]] = (
    CommitCheck(id="CMT-01", name="one of a kind", run=actions.single_actions),
    CommitCheck(id="CMT-02", name="first version is complete", run=actions.first_version),
    CommitCheck(id="CMT-03", name="no file twice", run=files.duplicate_files),
    CommitCheck(id="CMT-04", name="no path live twice", run=files.live_files),
    CommitCheck(id="CMT-05", name="append-only", run=files.append_only),
    CommitCheck(id="CMT-06", name="dataChange is consistent", run=files.data_change),
    CommitCheck(id="CMT-07", name="partition values are complete", run=files.partition_values),
    CommitCheck(id="CMT-08", name="row counts where needed", run=files.row_counts),
    CommitCheck(id="CMT-09", name="features in use are supported", run=features.features_in_use),
    CommitCheck(id="CMT-10", name="system domains are left alone", run=actions.system_domains),
    CommitCheck(id="CMT-11", name="no steering property stored", run=features.stored_properties),
    CommitCheck(id="CMT-12", name="features are kept", run=features.features_kept),
    CommitCheck(id="CMT-13", name="row tracking is complete", run=features.row_tracking),
    CommitCheck(id="CMT-14", name="every action can be read again", run=actions.readable_actions),
    COMPAT_CHECK,
    CommitCheck(id="CMT-16", name="the schema is valid", run=schema.valid_schema),
    CommitCheck(
        id="CMT-17", name="the columns still fit the files", run=schema.schema_change_rules
    ),
    CommitCheck(id="CMT-18", name="statistics can be parsed", run=files.parsable_statistics),
    CommitCheck(
        id="CMT-19", name="partition values can be parsed", run=files.parsable_partition_values
    ),
    CommitCheck(
        id="CMT-20", name="Iceberg metadata can be made when asked", run=features.sync_property
    ),
)
"""Every check, in the order its findings are reported."""


def run_checks(draft: Draft, checks: Iterable[CommitCheck] = CHECKS) -> None:
    """Raise one error that lists everything the checks found."""
    found = [(check.id, violation) for check in checks for violation in check.run(draft)]
    if found:
        raise _error(draft, found)


def _error(draft: Draft, found: list[tuple[str, CheckFailure]]) -> TwinlakeError:
    if len(found) == 1 and found[0][1].error is not None:
        return found[0][1].error
    codes = {violation.code for _, violation in found}
    classes = [violation.delta_class for _, violation in found if violation.delta_class]
    fixes = list(dict.fromkeys(violation.fix for _, violation in found if violation.fix))
    return UserError(
        codes.pop() if len(codes) == 1 else Code.COMMIT_INVALID,
        f"{draft.change.operation.name} cannot be committed.",
        why=listed(violation.message for _, violation in found) + ".",
        fix=listed(fixes, " ") or "Correct the actions of the commit.",
        rule=found[0][0],
        delta_class=classes[0] if classes else None,
        fields={
            **{k: v for _, one in found if one.error for k, v in one.error.fields.items()},
            "violations": [
                {
                    "check": check,
                    "message": violation.message,
                    "code": str(violation.code),
                    **({"path": violation.path} if violation.path else {}),
                    **({"rule": violation.rule} if violation.rule else {}),
                }
                for check, violation in found
            ],
        },
    )
