"""The page "who reads what", from the outcomes of a full run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from tests.support.matrix.columns import GROUPS
from tests.support.matrix.known import KNOWN, known_for
from tests.support.matrix.readers import READERS
from tests.support.matrix.run import DIFFERENT, EQUAL, ERROR, REFUSED, STOPPED, Outcome
from tests.support.matrix.settings import FEATURES, SETTINGS
from tests.support.matrix.writers import WRITERS

__all__ = ["notes", "page"]

_INTRO: Final = """\
<!-- Written by `python -m tests.support.matrix --write` from a full run. Do not edit. -->

# Who reads what

Every Delta type, under every compat feature, written by every writer under every setting of Spark
and Delta that changes files, and read by every reader. What can come out:

| | |
|---|---|
| equal | the reader returns the rows that were written |
| refused | the commit, or the creation of the table, is refused with an error |
| stopped | the table can be written, but the Iceberg side stays behind and `lag` names the file |
| error | the reader refuses the table or fails with an error |
| note *n* | the reader differs; the note says why |

Each table below is of one compat feature: a row for each type, a column for each reader. An entry
sums up all writers and settings; what single settings do is in the last tables. The versions:
Delta Spark 4.4.0, Iceberg Spark 1.11.0, PyIceberg 0.12, DuckDB 1.5.5, delta-rs 1.6.6."""


def page(outcomes: Sequence[Outcome]) -> str:
    """The whole page."""
    parts = [_INTRO]
    for feature in FEATURES:
        chosen = [o for o in outcomes if o.cell.feature == feature]
        title = "No compat feature" if feature == "none" else f"`{feature}`"
        parts += [f"## {title}", _types(chosen, is_iceberg=feature != "none")]
    parts += ["## Writers and settings", _settings(outcomes), "## Notes", notes()]
    return "\n\n".join(parts) + "\n"


def notes() -> str:
    """The notes, numbered; they are those of the code."""
    return "\n".join(f"{at}. {known.reason}" for at, known in enumerate(KNOWN, start=1))


def _types(outcomes: Iterable[Outcome], *, is_iceberg: bool) -> str:
    readers = [name for name, r in READERS.items() if is_iceberg or not r.is_iceberg]
    found: defaultdict[tuple[str, str, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        found[outcome.cell.group, outcome.column, outcome.reader].append(outcome)
    lines = [
        f"| type | {' | '.join(readers)} |",
        f"|---|{'---|' * len(readers)}",
    ]
    for group in GROUPS.values():
        for column in group.columns:
            entries = [_entry(found[group.name, column.name, reader]) for reader in readers]
            if any(entries) and column.name != "data":
                lines.append(f"| {_type(group.name, column.type)} | {' | '.join(entries)} |")
    return "\n".join(lines)


def _type(group: str, kind: str) -> str:
    shown = f"`{kind}`"
    if group.startswith("partitions"):
        shown += ", partition column"
    told = group.removeprefix("partitions").strip()
    return f"{shown} ({told})" if told in _TELLING else shown


_TELLING: Final = ("dates and times before 1900", "before 1900", "by binary that is not ASCII")


def _entry(outcomes: Sequence[Outcome]) -> str:
    """All that came out, the usual first."""
    if not outcomes:
        return ""
    results = {outcome.result for outcome in outcomes}
    if results == {REFUSED}:
        return REFUSED
    parts = [result for result in (EQUAL, STOPPED) if result in results]
    numbers = {KNOWN.index(k) + 1 for o in outcomes if (k := known_for(o)) is not None}
    parts += [f"note {number}" for number in sorted(numbers)]
    if ERROR in results:
        parts.append(ERROR)
    if any(o.result == DIFFERENT and not known_for(o) for o in outcomes):
        parts.append("**different**")
    return ", ".join(parts)


def _settings(outcomes: Iterable[Outcome]) -> str:
    """For each writer a table: settings by compat features, over all types and readers."""
    found: defaultdict[tuple[str, str, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        cell = outcome.cell
        found[cell.writer, cell.setting, cell.feature].append(outcome)
    parts = []
    for writer in WRITERS:
        lines = [f"| setting | {' | '.join(FEATURES)} |", f"|---|{'---|' * len(FEATURES)}"]
        for setting in SETTINGS:
            entries = [_summed(found[writer, setting.name, feature]) for feature in FEATURES]
            if any(entries):
                lines.append(f"| {setting.name} | {' | '.join(entries)} |")
        parts.append(f"### {writer}\n\n" + "\n".join(lines))
    return "\n\n".join(parts)


def _summed(outcomes: Sequence[Outcome]) -> str:
    """As an entry, with what only some types have in it."""
    entry = _entry(outcomes)
    some = any(o.result == REFUSED for o in outcomes) and entry != REFUSED
    return f"{entry}, some types refused" if some else entry
