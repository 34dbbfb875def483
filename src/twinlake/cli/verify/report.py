"""The parts of ``twinlake verify all``, each a table of what must be and what is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from twinlake.cli.verify.code_run import NOT_COVERED, exploration_grid, replay_grid
from twinlake.cli.verify.models import extensions
from twinlake.cli.verify.progress import ProgressLine
from twinlake.cli.verify.schedules import follow_schedule
from twinlake.cli.view import Fields, Grid, Heading, Paragraph, View
from twinlake.verify.code import GROUPS, explore, model_replays, sweep
from twinlake.verify.models import IcebergV2
from twinlake.verify.models.delta import safe_retention
from twinlake.verify.models.iceberg import compare_fixes, safe_expiry, safe_grace
from twinlake.verify.models.server import compare_file_checks, safe_wait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from twinlake.cli.view import Block
    from twinlake.verify import Result
    from twinlake.verify.code import Exploration
    from twinlake.verify.models.catalogue import ModelCase, ModelSuite

__all__ = ["PARTS", "VerifyReport"]

_FAMILIES: Final = {"iceberg": "Iceberg", "delta": "Delta"}
#: What must come of the fixes with four writes, by fix and history rule: the property violated.
_FIXES: Final[dict[str | None, dict[str, str | None]]] = {
    None: {"key": "ConsistentRead", "row": "ConsistentRead"},
    "A": {"key": None, "row": None},
    "B": {"key": None, "row": None},
    "C": {"key": "ConsistentRead", "row": None},
}
#: Schedules with the fix they run under and what must come of them.
_SCHEDULED: Final = (
    ("document", None, "breaks ConsistentRead"),
    ("document", "A", "is refused"),
    ("serial", None, "all hold"),
)
#: How long the longest read or write takes where bounds are searched for.
_LONGEST: Final = (1, 2)
#: The workloads of the real code: two writers each. The one of the anomaly also with faults.
_CODE_GROUP: Final = "pairs"
_ANOMALY: Final = "delete-update.shared.vectors"


#: The parts in their order.
PARTS: Final = ("schedules", *_FAMILIES, "fixes", "servers", "bounds", "code", "replays")


@dataclass(slots=True, kw_only=True)
class VerifyReport:
    """Runs the parts one by one and keeps what they found."""

    large: bool = False
    only: tuple[str, ...] = PARTS
    ok: bool = True
    _data: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _unexpected: list[str] = field(default_factory=list)

    def parts(self) -> Iterator[View]:
        """The parts in order, each as soon as it is there."""
        single = {
            "schedules": self._schedules,
            "fixes": self._fixes,
            "servers": self._servers,
            "bounds": self._bounds,
            "code": self._explored,
            "replays": self._replayed,
        }
        for part in PARTS:
            if part not in self.only:
                continue
            if part in _FAMILIES:
                yield self._safe(part)
                yield self._mutants(part)
            else:
                yield single[part]()

    def views(self) -> Iterator[View]:
        """The parts, and what they come to."""
        yield from self.parts()
        yield self.summary()

    def summary(self) -> View:
        """Whether everything is as it must be."""
        count = sum(map(len, self._data.values()))
        blocks: list[Block] = [Heading("In all")]
        if self.ok:
            blocks.append(Paragraph(f"{count} results, all as expected."))
            blocks += [Paragraph("What this covers:"), Fields(self._covered())]
        else:
            wrong = tuple((f"{n}.", text) for n, text in enumerate(self._unexpected, 1))
            blocks += [Paragraph("UNEXPECTED:"), Fields(wrong)]
        return View(
            data={"ok": self.ok, "unexpected": self._unexpected, **self._data}, blocks=blocks
        )

    def _covered(self) -> tuple[tuple[str, str], ...]:
        """What was explored, in which sense, and what was not."""
        models = sum(len(self._data.get(family, ())) for family in _FAMILIES)
        code = self._data.get("code", ())
        swept = sum(one["mode"] == "sweep" for one in code)
        return (
            ("models", f"{models} configurations, each to the end or to what it must show"),
            (
                "code",
                f"{len(code) - swept} workloads, every order of their storage calls;"
                f" {swept} of them again with 1 fault at every call",
            ),
            ("not covered", NOT_COVERED),
        )

    # --- models ---------------------------------------------------------------------------------

    def _schedules(self) -> View:
        rows: list[tuple[object, ...]] = []
        for name, fix, wanted in _SCHEDULED:
            path = follow_schedule("iceberg", name, IcebergV2(fix=fix))
            outcome = "is refused" if path.refused else _broken(path.to_dict()["violated"])
            differences = [] if outcome == wanted else [f"expected {wanted}, found {outcome}"]
            record = {"schedule": name, "fix": fix, "outcome": outcome, "steps": len(path.trace)}
            expected = self._add("schedules", f"schedule {name}", record, differences)
            rows.append((*record.values(), expected))
        return self._view(
            "The published model's run",
            "UPDATE and DELETE of one row, overlapping as the document has them, and one by one.",
            Grid.of("schedule fix outcome steps:r as_expected", rows),
        )

    def _safe(self, family: str) -> View:
        rows = [
            (
                extension.name,
                case.name,
                _broken(result.violated),
                f"{result.states:,}",
                len(result.trace) if result.trace else None,
                f"{result.cpu_seconds:.2f}",
                self._compared(family, extension, case, result),
            )
            for extension, case, result in self._run(family, ("safe", "finding"))
        ]
        header = "model configuration outcome states:r steps:r cpu_s:r as_expected"
        return self._view(
            f"{_FAMILIES[family]}: as designed",
            "Configurations that are safe, and those of which it is known that they are not.",
            Grid.of(header, rows),
        )

    def _mutants(self, family: str) -> View:
        rows = [
            (
                extension.name,
                case.name,
                case.kind,
                _broken(result.violated),
                len(result.trace) if result.trace else None,
                self._compared(family, extension, case, result),
                _smallest(case),
            )
            for extension, case, result in self._run(family, ("mutant", "control"))
        ]
        header = "model mistake kind outcome steps:r as_expected smallest_configuration"
        return self._view(
            f"{_FAMILIES[family]}: with a mistake in it",
            "A mutant must be caught; a control looks like a mistake and must come out clean.",
            Grid.of(header, rows),
        )

    def _run(
        self, family: str, kinds: tuple[str, ...]
    ) -> Iterator[tuple[ModelSuite, ModelCase, Result]]:
        with ProgressLine() as line:
            for extension in extensions(family):
                for case in extension.cases:
                    if case.kind in kinds and (self.large or not case.large):
                        line.update(f"{extension.name}: {case.name}")
                        yield extension, case, extension.run(case)

    def _compared(self, family: str, extension: ModelSuite, case: ModelCase, result: Result) -> str:
        differences = extension.differences(case, result)
        record = {
            "extension": extension.name,
            "case": case.name,
            "kind": case.kind,
            "parameters": {
                name: list(value) if isinstance(value, tuple) else value
                for name, value in case.parameters.items()
            },
            "violated": result.violated,
            "states": result.states,
            "steps": len(result.trace) if result.trace else None,
            "cpu_seconds": round(result.cpu_seconds, 3),
        }
        expected = self._add(family, f"{extension.name}, {case.name}", record, differences)
        return ": ".join([expected, *(["; ".join(differences)] if differences else [])])

    def _add(
        self, part: str, name: str, record: Mapping[str, Any], differences: Sequence[str]
    ) -> str:
        """Keep a result; returns whether it is as expected."""
        self._data.setdefault(part, []).append({**record, "differences": list(differences)})
        if not differences:
            return "yes"
        self.ok = False
        self._unexpected.append(f"{name}: {'; '.join(differences)}")
        return "NO"

    def _fixes(self) -> View:
        rows: list[tuple[object, ...]] = []
        for one in compare_fixes(max_write_ops=4):
            wanted = _FIXES.get(one.fix)
            differences = [] if wanted == dict(one.violated) else [f"expected {wanted}"]
            record = {
                "fix": one.fix,
                "violated": dict(one.violated),
                "delete_aborts": dict(one.delete_aborts),
                "states": dict(one.states),
            }
            expected = self._add("fixes", f"fix {one.fix}", record, differences)
            by_rule = [
                (one.violated[rule] or "all hold", one.delete_aborts[rule])
                for rule in ("key", "row")
            ]
            rows.append((one.fix, *by_rule[0], *by_rule[1], expected))
        header = "fix by_key aborts:r by_row aborts:r as_expected"
        return self._view(
            "Fixes compared",
            "Merge-on-read DELETE with four writes on two ids. The history holds a DELETE to the "
            "key it named or to the rows it saw; aborts are states first reached by a DELETE that "
            "gives up, up to the first violation.",
            Grid.of(header, rows),
        )

    def _servers(self) -> View:
        rows: list[tuple[object, ...]] = []
        for one in compare_file_checks():
            # Only the version that was scanned tells the truth, and no request carries it; where
            # an emptied file leaves the log, a validation of the client finds that it is gone.
            wanted = one.file_check == "scan" or (one.drop_emptied and one.rows_in_file == 1)
            differences = [] if one.is_masked == wanted else [f"expected masked={wanted}"]
            record = {
                "file_check": one.file_check,
                "drop_emptied": one.drop_emptied,
                "rows_in_file": one.rows_in_file,
                "violated": one.violated,
                "steps": one.steps,
                "states": one.states,
                "masked": one.is_masked,
            }
            expected = self._add("servers", f"server {one}", record, differences)
            rows.append(
                (
                    one.file_check,
                    one.drop_emptied,
                    one.rows_in_file,
                    "masked" if one.is_masked else _broken(one.violated),
                    one.steps,
                    expected,
                )
            )
        header = "looks_since drops_emptied_files rows:r outcome steps:r as_expected"
        return self._view(
            "The anomaly through a server",
            "Iceberg commits that a server turns into Delta commits, without the fix: whether the "
            "server hides the anomaly depends on what it looks at.",
            Grid.of(header, rows),
        )

    def _bounds(self) -> View:
        found: dict[str, Callable[..., int | None]] = {
            "retention of VACUUM": safe_retention,
            "grace of orphan files": safe_grace,
            "retention of snapshots": safe_expiry,
            "wait of a twin, by either door": safe_wait,
        }
        rows: list[tuple[object, ...]] = []
        for what, search in found.items():
            for longest in _LONGEST:
                least = search(longest=longest)
                wanted = longest + 1
                differences = [] if least == wanted else [f"expected {wanted}, found {least}"]
                record = {"what": what, "longest": longest, "least": least}
                expected = self._add("bounds", f"{what}, {longest}", record, differences)
                rows.append((*record.values(), expected))
        return self._view(
            "How long files must stay",
            "The least number of ticks that is safe, by how long the longest read or write takes.",
            Grid.of("what longest:r least_that_is_safe:r as_expected", rows),
        )

    # --- the code -------------------------------------------------------------------------------

    def _explored(self) -> View:
        found: list[Exploration] = []
        names = GROUPS[_CODE_GROUP]
        with ProgressLine() as line:
            for name in names:
                line.update(name)
                found.append(explore(name))
            for name in names if self.large else (_ANOMALY,):
                line.update(f"{name}, with faults")
                found.append(sweep(name))
        for one in found:
            differences = [violation.message for violation in one.violations]
            if not one.complete:
                differences.append("not explored to the end")
            self._add("code", one.workload, one.to_dict(), differences)
        return self._view(
            "The code that commits",
            "Two writers on a store in memory, switched between at every storage call; then again "
            "with one fault of each kind at every call.",
            exploration_grid(found),
        )

    def _replayed(self) -> View:
        found = model_replays()
        for one in found:
            differences = [] if one.masked else ["the code shows it"]
            self._add("replays", one.name, one.to_dict(), differences)
        return self._view(
            "Counterexamples on the code",
            "What the models found, tried on the code that commits.",
            replay_grid(found),
        )

    def _view(self, title: str, text: str, grid: Grid) -> View:
        return View(data={}, blocks=[Heading(title), Paragraph(text), grid])


def _broken(violated: str | None) -> str:
    return "all hold" if violated is None else f"breaks {violated}"


def _smallest(case: ModelCase) -> str:
    settings = [
        f"{name}={'|'.join(map(str, value)) if isinstance(value, tuple) else value}"
        for name, value in case.parameters.items()
        if name != "mutant"
    ]
    return ", ".join(settings) or "defaults"
