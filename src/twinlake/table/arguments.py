"""Arguments of public methods, held against their annotations.

A method that is given something else than it says would fail somewhere inside with whatever Python
happens to raise there, or do what nobody asked for. One table of annotations says what each takes.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from numbers import Integral, Real
from typing import Any, Final, TypeVar

from twinlake.errors import Code, UserError

__all__ = ["check_argument", "checked_arguments"]

T = TypeVar("T", bound=type)
_Test = Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool)


def _is_path(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, os.PathLike) and isinstance(os.fspath(value), str)
    )


def _are_texts(value: Any) -> bool:
    # An iterator is not looked into: that would use it up.
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        return False
    return not isinstance(value, Sequence | set | frozenset) or all(map(_is_text, value))


def _are_columns(value: Any) -> bool:
    return _is_text(value) or _are_texts(value)


def _are_some_columns(value: Any) -> bool:
    return _is_truth(value) or _are_texts(value)


def _is_txn(value: Any) -> bool:
    is_pair = isinstance(value, tuple) and len(value) == 2
    return is_pair and _is_text(value[0]) and _is_whole(value[1])


def _are_named(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_is_text, value))


def _are_named_texts(value: Any) -> bool:
    return _are_named(value) and all(map(_is_text, value.values()))


def _are_actions(value: Any) -> bool:
    from msgspec import Struct as Message

    from twinlake.protocol import Metadata, Protocol

    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        return False
    known = Message | Metadata | Protocol
    return not isinstance(value, Sequence) or all(isinstance(one, known) for one in value)


def _are_new_columns(value: Any) -> bool:
    from twinlake.table.operations import NewColumn

    return isinstance(value, Sequence) and all(isinstance(one, NewColumn) for one in value)


def _is_moment(value: Any) -> bool:
    return _is_text(value) or _is_whole(value) or isinstance(value, date)


_KINDS: Final[Mapping[str, tuple[_Test, str]]] = {
    "str": (_is_text, "text"),
    "int": (_is_whole, "a whole number"),
    "float": (_is_number, "a finite number"),
    "bool": (_is_truth, "true or false"),
    "str | os.PathLike[str]": (_is_path, "a path or a URL, as text or as a path object"),
    "str | int | dt.datetime | dt.date": (_is_moment, "a text, a datetime or milliseconds"),
    "Literal['full', 'lite']": (_is_text, "text"),
    "Sequence[str]": (_are_texts, "a list of texts"),
    "str | Sequence[str]": (_are_columns, "a column or a list of columns"),
    "bool | Sequence[str]": (_are_some_columns, "true, false or a list of columns"),
    "tuple[str, int]": (_is_txn, "an application id and a version"),
    "Iterable[str]": (_are_texts, "a list of texts"),
    "Iterable[Action]": (_are_actions, "a list of actions"),
    "Sequence[NewColumn]": (_are_new_columns, "a list of NewColumn"),
    "Mapping[str, object]": (_are_named, "a mapping with texts as keys"),
    "Mapping[str, Any]": (_are_named, "a mapping with texts as keys"),
    "Mapping[str, str]": (_are_named_texts, "a mapping of texts to texts"),
}
"""What a value of an annotation is, and how it is called; None is allowed where it says so."""

#: Values that other parts of the library make and check.
_FREE: Final = frozenset({"Any", "Runtime", "Struct", "Snapshot"})


def check_argument(annotation: str, name: str, value: Any, *, method: str) -> None:
    """Refuse a value that is not what the annotation says.

    Raises:
        UserError: with code INVALID_ARGUMENT.
    """
    kind = annotation.removesuffix(" | None")
    if value is None and kind != annotation:
        return
    if kind in _FREE:
        return
    test, expected = _KINDS[kind]
    if test(value):
        return
    shown = repr(value)
    raise UserError(
        Code.INVALID_ARGUMENT,
        f"{method} cannot take {shown if len(shown) <= 60 else f'{shown[:57]}...'} as {name}.",
        why=f"{name} is {expected}, and this is of type {type(value).__name__}",
        fix=f"Give {expected} as {name}.",
        fields={"argument": name, "type": type(value).__name__, "expected": expected},
    )


def checked_arguments(cls: T) -> T:
    """Check the arguments of every public method that the class defines."""
    for name, found in list(vars(cls).items()):
        function = getattr(found, "__func__", found)
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        checked = _checked(function, f"{cls.__name__}.{name}")
        kind = type(found) if isinstance(found, classmethod | staticmethod) else None
        setattr(cls, name, checked if kind is None else kind(checked))
    return cls


def _checked(function: Callable[..., Any], method: str) -> Callable[..., Any]:
    signature = inspect.signature(function)
    several = inspect.Parameter.VAR_POSITIONAL
    annotations = {
        parameter.name: (str(parameter.annotation), parameter.kind is several)
        for parameter in signature.parameters.values()
        if parameter.annotation is not inspect.Parameter.empty
    }

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            if name in annotations:
                annotation, is_several = annotations[name]
                for one in value if is_several else (value,):
                    check_argument(annotation, name, one, method=method)
        return function(*args, **kwargs)

    return call
