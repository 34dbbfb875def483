"""The models that ``twinlake verify`` offers, and what configures each.

The models come from the catalogue of `twinlake.verify`, and what configures a model are its
fields: a new model, parameter or mutant appears on the command line by itself.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import typing
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, UserError
from twinlake.verify.checker import ModelError
from twinlake.verify.models import DeltaLog, IcebergV2
from twinlake.verify.models.catalogue import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from twinlake.verify.checker import Model
    from twinlake.verify.models.catalogue import ModelSuite

__all__ = [
    "Parameter",
    "base_of",
    "build",
    "extension_of",
    "extensions",
    "parameters_of",
    "slug",
    "unknown",
]

#: Fields of a model that have an option of their own.
_APART: Final = frozenset({"mutant"})


def slug(name: str) -> str:
    """A name as one word for the command line.

    >>> slug("2 faults, 3 writers")
    '2-faults-3-writers'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


@cache
def extensions(family: str) -> tuple[ModelSuite, ...]:
    """The models of a table format, the one that the others extend first."""
    return tuple(one for one in CATALOGUE if one.format == family)


def base_of(family: str) -> ModelSuite:
    """The model that the others of its format extend."""
    return next(one for one in extensions(family) if one.model in (IcebergV2, DeltaLog))


def extension_of(family: str, name: str | None) -> ModelSuite:
    """The model of this name; the base model if there is none."""
    if name is None:
        return base_of(family)
    for one in extensions(family):
        if one.name == slug(name):
            return one
    raise unknown("extension", name, [one.name for one in extensions(family)], family)


def unknown(what: str, name: str, known: Iterable[str], family: str) -> UserError:
    """The error for a name that is none of those known."""
    text = ", ".join(known)
    return UserError(
        Code.INVALID_ARGUMENT,
        f"There is no {what} {name!r} of the {family} models.",
        why=f"There {'are ' + text if text else 'is none'}.",
        fix=f"See `twinlake verify {family} --list`.",
        fields={what: name},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A field of a model, as an option needs it."""

    name: str
    #: ``int``, ``bool`` or ``str``.
    kind: str
    #: Whether it holds several of them.
    several: bool
    optional: bool
    default: Any
    choices: tuple[Any, ...]
    #: What the comment above the field says.
    comment: str


def parameters_of(model: type[Model]) -> tuple[Parameter, ...]:
    """What configures a model, in the order of definition."""
    hints = typing.get_type_hints(model)
    comments: dict[str, str] = {}
    choices: dict[str, tuple[Any, ...]] = {}
    for owner in reversed(model.__mro__):
        comments |= _comments(owner)
        choices |= getattr(sys.modules[owner.__module__], "CHOICES", {})
    return tuple(
        Parameter(
            name=one.name,
            **_typed(hints[one.name]),
            default=one.default,
            choices=tuple(choices.get(one.name, ())),
            comment=comments.get(one.name, ""),
        )
        for one in dataclasses.fields(model)  # type: ignore[arg-type]
        if one.name not in _APART
    )


def _typed(hint: Any) -> dict[str, Any]:
    parts = [hint]
    if typing.get_origin(hint) in (typing.Union, UnionType):
        parts = [part for part in typing.get_args(hint) if part is not type(None)]
    first = parts[0]
    several = typing.get_origin(first) is tuple
    item = typing.get_args(first)[0] if several else first
    if item not in (int, bool, str):
        raise TypeError(f"no option can hold a parameter of type {hint}")
    return {"kind": item.__name__, "several": several, "optional": parts != [hint]}


@cache
def _comments(owner: type) -> Mapping[str, str]:
    """The ``#:`` comments above the fields of a class.

    Remembered, because most models share their ancestors and reading source takes long.
    """
    try:
        lines = inspect.getsource(owner).splitlines()
    except (OSError, TypeError):
        return {}
    return dict(_commented(lines))


def _commented(lines: list[str]) -> Iterator[tuple[str, str]]:
    lines_above: list[str] = []
    for line in map(str.strip, lines):
        if line.startswith("#:"):
            lines_above.append(line[2:].strip())
            continue
        field = re.match(r"(\w+): ", line)
        if field and lines_above:
            yield field.group(1), " ".join(lines_above)
        lines_above = []


def build(extension: ModelSuite, parameters: Mapping[str, Any]) -> Model:
    """A model with these parameters.

    Raises:
        UserError: naming every parameter that the model lacks or cannot take.
    """
    model = extension.model
    known = _names(extension)
    strange = [name for name in parameters if name not in known]
    if strange:
        owners = [one for one in extensions(extension.format) if _names(one).issuperset(strange)]
        text = ", ".join(f"--extension {one.name}" for one in owners)
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{model.title} has no parameter {', '.join(strange)}.",
            why=f"Its parameters are {', '.join(sorted(known))}.",
            fix=f"Leave the option out{f', or add {text}' if text else ''}.",
            fields={"parameters": strange},
        )
    try:
        return model(**parameters)
    except ModelError as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{model.title} cannot be configured like this.",
            why=f"{error}.",
            fix="See `--help` for the values of each option, and `--list` for the mutants.",
            fields={"parameters": {key: str(value) for key, value in parameters.items()}},
        ) from error


def _names(extension: ModelSuite) -> set[str]:
    return {one.name for one in dataclasses.fields(extension.model)}  # type: ignore[arg-type]
