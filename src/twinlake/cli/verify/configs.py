"""The named configurations of ``twinlake verify``, each with what it must show.

``seed`` and its neighbours are named here; every case of the catalogue is a configuration of its
extension. ``--config`` and ``--mutant`` choose one of them, and options change it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from twinlake.cli.verify.models import base_of, extension_of, extensions, slug, unknown
from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from twinlake.verify.models.catalogue import ModelCase, ModelSuite

__all__ = ["Config", "choose", "of_case", "rows"]

_COW: Final = "COPY_ON_WRITE"
_SER: Final = "SERIALIZABLE"
_READ: Final = "ConsistentRead"
_DANGLING: Final = "NoDanglingDeleteFiles"
_REDUCED: Final[dict[str, Any]] = {"symmetry": True, "reduction": True}
_SORTED: Final[dict[str, Any]] = {"symmetry": True}


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A configuration of a base model that has a name of its own."""

    parameters: Mapping[str, Any]
    states: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    violates: str | None = None
    steps: int | None = None


_A: Final[dict[str, Any]] = {"fix": "A"}
_NAMELESS: Final[dict[str, Any]] = {"identity": "canonical"}
_A1: Final[dict[str, Any]] = {**_A, **_NAMELESS}
_A2: Final[dict[str, Any]] = {**_A1, "col1_values": ("jack", "sarah")}
_KEYS: Final[dict[str, Any]] = {"col1_values": ("a", "b")}
_LOCKED: Final[dict[str, Any]] = {"put_if_absent": False, "coordination": True}
_UPDATES_COPY: Final[dict[str, Any]] = {"update_mode": _COW, "max_write_ops": 4}

_ROWS: Final[Mapping[str, Mapping[str, _Row]]] = {
    "iceberg": {
        "seed": _Row(parameters={}, violates=_READ, steps=14),
        "seed-fixed": _Row(parameters=_A, states=2_741),
        "seed-canonical": _Row(parameters=_NAMELESS, states=1_851, violates=_READ, steps=14),
        "seed-canonical-fixed": _Row(parameters=_A1, states=1_837),
        "seed-reduced": _Row(
            parameters=_NAMELESS, options=_REDUCED, states=106, violates=_READ, steps=14
        ),
        "seed-reduced-fixed": _Row(parameters=_A1, options=_REDUCED, states=115),
        "serializable": _Row(
            parameters={**_NAMELESS, "isolation": _SER}, options=_REDUCED, states=117
        ),
        "copy-on-write": _Row(
            parameters={**_NAMELESS, "update_mode": _COW, "delete_mode": _COW},
            options=_REDUCED,
            states=115,
        ),
        "update-copies": _Row(
            parameters={**_NAMELESS, **_UPDATES_COPY}, options=_REDUCED, states=393, violates=_READ
        ),
        "update-copies-fixed": _Row(
            parameters={**_A1, **_UPDATES_COPY}, options=_REDUCED, states=405
        ),
        "update-copies-serializable": _Row(
            parameters={**_NAMELESS, **_UPDATES_COPY, "isolation": _SER},
            options=_REDUCED,
            states=421,
        ),
        "two-ids": _Row(parameters={**_A2, "identity": "faithful"}, states=29_233),
        "two-ids-canonical": _Row(parameters=_A2, states=8_869),
        "two-ids-4-writes": _Row(parameters={**_A2, "max_write_ops": 4}, states=72_585),
        "two-ids-5-writes": _Row(
            parameters={**_A2, "max_write_ops": 5}, options=_SORTED, states=268_473
        ),
        "two-ids-6-writes": _Row(
            parameters={**_A2, "max_write_ops": 6}, options=_REDUCED, states=204_949
        ),
        "three-writers": _Row(
            parameters={**_A2, "writers": 3, "max_write_ops": 5}, options=_SORTED, states=985_129
        ),
        "three-writers-compaction": _Row(
            parameters={**_A2, "writers": 3, "max_write_ops": 4, "max_compaction_ops": 2},
            options={**_SORTED, "without": (_DANGLING,)},
            states=5_240_909,
        ),
        "dangling-deletes": _Row(
            parameters={
                **_NAMELESS,
                "writers": 1,
                "col1_values": ("jack", "sarah"),
                "max_compaction_ops": 2,
            },
            violates=_DANGLING,
            steps=23,
        ),
    },
    "delta": {
        "p1": _Row(parameters={}, states=7_982),
        "p1n": _Row(parameters={"partitioned": False}, states=7_982),
        "p2": _Row(parameters=_KEYS, states=50_632),
        "p2n": _Row(parameters={**_KEYS, "partitioned": False}, states=48_072),
        "c2": _Row(parameters={**_KEYS, **_LOCKED}, states=71_584),
        "c2n": _Row(parameters={**_KEYS, **_LOCKED, "partitioned": False}, states=62_512),
        "p1o4": _Row(parameters={"max_ops": 4}, states=121_584),
        "u2": _Row(parameters={**_KEYS, "put_if_absent": False}, violates=_READ, steps=8),
    },
}


def rows(family: str) -> Iterator[Config]:
    """The configurations of a base model that have a name of their own."""
    base = base_of(family)
    for name, row in _ROWS[family].items():
        yield Config(
            name=name,
            extension=base,
            parameters=row.parameters,
            options=row.options,
            violates=row.violates,
            steps=row.steps,
            states=row.states,
            kind="safe" if row.violates is None else "finding",
        )


def of_case(extension: ModelSuite, case: ModelCase) -> Config:
    """A case of the catalogue as a configuration."""
    return Config(
        name=slug(case.name),
        extension=extension,
        parameters=case.parameters,
        options={"without": extension.without, **extension.options},
        violates=case.violates,
        steps=case.steps,
        states=None if extension.options else case.states,
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
