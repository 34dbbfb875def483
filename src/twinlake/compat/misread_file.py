"""Files whose rows Iceberg readers do not return as Delta readers do.

They break a rule about footers. Not every file that breaks one is read wrong, and whose reading of
the rules a table is judged by changes nothing about what readers return.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.compat.compat_feature import enabled_compats
from twinlake.compat.evaluation import judge
from twinlake.compat.rule import Profile, Scope
from twinlake.compat.subject import Subject
from twinlake.schema import walk_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from twinlake.compat.rule import Violation
    from twinlake.compat.subject import FileFooter, State

__all__ = ["misread_files"]

_PARTITION_COLUMNS: Final = "-11"
_FIELD_IDS: Final = "-14"


def misread_files(
    footers: Sequence[FileFooter], state: State
) -> Iterator[tuple[FileFooter, Violation]]:
    """The files that Iceberg readers do not return the rows of, each with the first reason."""
    # Most files are sound: what is wrong is asked of each file only where something is.
    for footer in footers if _violations(footers, state) else ():
        for violation in _violations((footer,), state):
            if _changes_rows(violation, footer):
                yield footer, violation
                break


def _violations(footers: Sequence[FileFooter], state: State) -> tuple[Violation, ...]:
    base = next(one for one in enabled_compats(state.metadata) if not one.is_writer)
    subject = Subject(after=state, footers=footers)
    return judge(subject, base, profile=Profile.SPEC, scopes=(Scope.FOOTER,)).violations


def _changes_rows(violation: Violation, footer: FileFooter) -> bool:
    if violation.rule.endswith(_PARTITION_COLUMNS):
        # Iceberg's column projection takes them from the manifest where files lack them.
        return False
    if violation.rule.endswith(_FIELD_IDS):
        # A file without any id is read by the name mapping. Of one with some, readers that go by
        # ids miss columns, and PyIceberg stops at a column that the mapping does not know.
        return _has_ids(footer)
    return True


def _has_ids(footer: FileFooter) -> bool:
    root = footer.root
    return root is not None and any(node.field_id is not None for _, node in walk_nodes(root))
