"""What a row of the catalogue is: a model with its configurations and what each must show."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from twinlake.verify.checker import Model, ModelError, check

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.verify.checker import Result

__all__ = [
    "CONTROL",
    "DELTA",
    "FINDING",
    "ICEBERG",
    "KINDS",
    "MUTANT",
    "SAFE",
    "ModelCase",
    "ModelSuite",
    "case",
]

#: What a configuration is there for: it is safe as designed; it has a deliberate mistake, which
#: must be caught; it has a change that must turn out to be harmless; it is as designed and breaks
#: a property all the same, which is something to know.
SAFE, MUTANT, CONTROL, FINDING = KINDS = ("safe", "mutant", "control", "finding")

ICEBERG, DELTA = "iceberg", "delta"

_REDUCTIONS = ("symmetry", "value_symmetry", "reduction")

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCase:
    """One configuration of a model, and what a check of it must show."""

    name: str
    kind: str
    #: The parameters of the model; the others have their defaults.
    parameters: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    #: The property that does not hold, with the steps of a shortest trace to where it fails (or
    #: to the cycle on which it does) and the moves of that trace under reductions.
    violates: str | None = None
    steps: int | None = None
    moves: int | None = None
    #: Actions that cannot happen as configured; all others must be reached.
    unreached: frozenset[str] = frozenset()
    #: How many states there are, searched like this, where that is a known number.
    states: int | None = None
    #: Why it comes out as it does, where the name does not say it.
    shows: str = ""
    #: Whether a serial order of the acknowledged statements has the result of its trace all the
    #: same, so that it is a finding by ``ConsistentRead`` alone, which reports more than is wrong.
    has_serial_order: bool = False
    #: Whether it takes more than some seconds.
    large: bool = False
    #: What else ``--config`` calls it on the command line, if it configures a base model.
    config: str = ""
    #: How it is searched, as arguments of ``check``, if not as its suite is.
    search: Mapping[str, Any] | None = None
    #: What it is there for, unless it is a finding or a mutant itself: the case that breaks the
    #: property which holds here, by its name, or as ``suite: name`` in another suite;
    counterpart: str = ""
    #: or the row of the benchmarks that measures it, as ``case: row``.
    benchmark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSuite:
    """A model with all its configurations."""

    name: str
    #: The table format it is about: ``iceberg`` or ``delta``.
    format: str
    #: In a sentence, what it shows.
    shows: str
    model: type[Model]
    cases: tuple[ModelCase, ...]
    #: Properties that are not asked of it.
    without: tuple[str, ...] = ()
    #: The reductions it is searched with: arguments of ``check``.
    options: Mapping[str, bool] = field(default_factory=lambda: NOTHING)

    def __post_init__(self) -> None:
        names = [one.name for one in self.cases]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ModelError(f"{self.name} has two cases {twice[0]!r}")

    def of_kind(self, kind: str) -> tuple[ModelCase, ...]:
        """Its cases of one kind."""
        return tuple(one for one in self.cases if one.kind == kind)

    @property
    def safe(self) -> tuple[ModelCase, ...]:
        """Configurations in which everything holds."""
        return self.of_kind(SAFE)

    @property
    def mutants(self) -> tuple[ModelCase, ...]:
        """Deliberate mistakes; each must be caught."""
        return self.of_kind(MUTANT)

    @property
    def controls(self) -> tuple[ModelCase, ...]:
        """Changes that look like mistakes and are none; each must come out clean."""
        return self.of_kind(CONTROL)

    def case(self, name: str) -> ModelCase:
        """The case of this name."""
        for one in self.cases:
            if one.name == name:
                return one
        raise ModelError(f"{self.name} has no case {name!r}")

    def build(self, case: ModelCase) -> Model:
        """The model, configured as the case says."""
        return self.model(**case.parameters)

    def search(self, case: ModelCase) -> dict[str, Any]:
        """How a case is searched: arguments of ``check``."""
        if case.search is not None:
            return dict(case.search)
        return {"without": self.without, **self.options}

    def run(self, case: ModelCase, **options: Any) -> Result:
        """Check the model as the case configures it; options of ``check`` may be overridden."""
        return check(self.build(case), **{**self.search(case), **options})

    def differences(self, case: ModelCase, result: Result) -> tuple[str, ...]:
        """How a result differs from what the case says; nothing if it is as expected."""
        wrong: list[str] = []

        def compare(what: str, wanted: object, found: object) -> None:
            if wanted != found:
                wrong.append(f"{what}: expected {wanted}, found {found}")

        compare("violated property", case.violates, result.violated)
        if case.violates is None:
            compare("everything holds", True, result.ok)
            compare("unreached actions", sorted(case.unreached), sorted(result.unreached))
        trace = result.trace
        if case.steps is not None:
            compare("steps of the trace", case.steps, trace.path_length if trace else None)
        # Moves and states depend on the reductions: they are compared under the case's own.
        search = self.search(case)
        if all(bool(result.options.get(name)) == bool(search.get(name)) for name in _REDUCTIONS):
            if case.moves is not None:
                compare("moves of the trace", case.moves, trace.moves if trace else None)
            if case.states is not None:
                compare("states", case.states, result.states)
        return tuple(wrong)


def case(kind: str, name: str, *, unreached: tuple[str, ...] = (), **given: Any) -> ModelCase:
    """A case: what it must show, and the model's parameters, both as keyword arguments."""
    expected = {one: given.pop(one) for one in ModelCase.__dataclass_fields__ if one in given}
    return ModelCase(
        kind=kind,
        name=name,
        unreached=frozenset(unreached),
        parameters=MappingProxyType(given),
        **expected,
    )
