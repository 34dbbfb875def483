"""The named configurations of ``twinlake verify``, each with what it must show.

Every case of the catalogue is a configuration of its extension; those of a base model with a name
of their own, as ``seed``, have it there. ``--config`` and ``--mutant`` choose one of them, and
options change it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from twinlake.cli.verify.models import base_of, extension_of, extensions, slug, unknown
from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from twinlake.verify.models.catalogue import ModelCase, ModelSuite

__all__ = ["Config", "choose", "of_case", "rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A configuration of a model: its parameters, and how it is searched."""

    name: str
    extension: ModelSuite
    parameters: Mapping[str, Any] = field(default_factory=dict)
    #: Arguments of the check.
    options: Mapping[str, Any] = field(default_factory=dict)
    #: The property that it breaks; ``None``: all hold.
    violates: str | None = None
    steps: int | None = None
    states: int | None = None
    kind: str = "safe"
    shows: str = ""

    @property
    def expectation(self) -> str:
        """What is known of the outcome, in words."""
        if self.violates is None:
            text = "all properties hold"
        else:
            text = f"breaks {self.violates}"
            if self.steps is not None:
                text += f" in {self.steps} steps"
        return text if self.states is None else f"{text}, {self.states:,} states"


def rows(family: str) -> Iterator[Config]:
    """The configurations of a base model that have a name of their own."""
    base = base_of(family)
    for case in base.cases:
        if case.config:
            yield replace(of_case(base, case), name=case.config)


def of_case(extension: ModelSuite, case: ModelCase) -> Config:
    """A case of the catalogue as a configuration."""
    return Config(
        name=slug(case.name),
        extension=extension,
        parameters=case.parameters,
        options=extension.search(case),
        violates=case.violates,
        steps=case.steps,
        states=case.states,
        kind=case.kind,
        shows=case.shows,
    )


def choose(family: str, extension: str | None, config: str | None, mutant: str | None) -> Config:
    """The configuration that was asked for.

    Without any name it is the base model as it stands, which is the first row; with an extension
    alone, the first configuration of it that is safe; with a mutant, the one that shows it.
    """
    chosen = extension_of(family, extension)
    if config is not None and mutant is not None:
        raise UserError(
            Code.INVALID_ARGUMENT,
            "A configuration and a mutant were named at once.",
            why="A mutant comes with the smallest configuration that shows it.",
            fix="Name one of them, and change single parameters with options.",
            fields={"config": config, "mutant": mutant},
        )
    if mutant is not None:
        searched = extensions(family) if extension is None else (chosen,)
        return _of_mutant(family, searched, mutant)
    if config is not None:
        return _of_name(family, chosen, config, is_base=extension is None)
    if extension is None:
        return next(rows(family))
    return of_case(chosen, next(iter(chosen.safe), chosen.cases[0]))


def _of_name(family: str, extension: ModelSuite, name: str, *, is_base: bool) -> Config:
    known: dict[str, Config] = {}
    if is_base:
        known = {one.name: one for one in rows(family)}
    for case in extension.cases:
        known.setdefault(slug(case.name), of_case(extension, case))
    if slug(name) not in known:
        raise unknown("configuration", name, known, family)
    return known[slug(name)]


def _of_mutant(family: str, searched: Sequence[ModelSuite], name: str) -> Config:
    """The case of a mutant, by its own name or by that of the mistake in it."""
    found = [(one, case) for one in searched for case in (*one.mutants, *one.controls)]
    for extension, case in found:
        if slug(name) in (slug(case.name), slug(str(case.parameters.get("mutant")))):
            return of_case(extension, case)
    raise unknown("mutant", name, [slug(case.name) for _, case in found], family)
