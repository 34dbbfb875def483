"""The steps of a trace as text: arguments, checks, changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.verify.checker import TraceStep

__all__ = ["argument_text", "change_text", "check_text", "local_text", "value_text"]

#: The columns that a predicate or an assignment of the Iceberg models is about, in their order.
_COLUMNS: Final = ("id", "col2", "col3")
_BY_COLUMN: Final = frozenset({"predicate", "set"})
#: Variables that only bound a model or give out names: no table has them.
_COUNTERS: Final = frozenset({"started", "names", "inserting"})
#: What a record need not say.
_EMPTY: Final[tuple[Any, ...]] = (None, "", [], (), {})
_STATUS: Final = {"ADDED": "+", "DELETED": "-"}


def value_text(value: Any) -> str:
    """A value of a model, short.

    >>> value_text({"path": "data-1", "rows": [["jack", "red"]], "partition": None})
    'data-1[(jack, red)]'
    >>> value_text([["data-1", 0], None])
    '(data-1, 0), none'
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return _record(value)
    if isinstance(value, list | tuple):
        if len(value) == 1:
            return value_text(value[0])
        if value and any(isinstance(part, list | tuple | Mapping) for part in value):
            return ", ".join(map(_inner, value))
        return f"({', '.join(map(value_text, value))})"
    return str(value)


def _inner(value: Any) -> str:
    """A value within another: records without a name of their own get brackets."""
    text = value_text(value)
    return f"{{{text}}}" if isinstance(value, Mapping) and "path" not in value else text


def _record(value: Mapping[str, Any]) -> str:
    known = {key: part for key, part in value.items() if part not in _EMPTY}
    name = known.pop("path", None)
    if not known:
        return "()" if name is None else str(name)
    if len(known) == 1 and name is not None:
        return f"{name}[{value_text(next(iter(known.values())))}]"
    text = ", ".join(f"{key} {_inner(part)}" for key, part in known.items())
    return text if name is None else f"{name}[{text}]"


def argument_text(step: TraceStep) -> str:
    """The arguments of a step as ``key=value``."""
    arguments = step.to_dict()["arguments"]
    return "; ".join(f"{key}={_argument(key, value)}" for key, value in arguments.items())


def _argument(key: str, value: Any) -> str:
    if key in _BY_COLUMN and isinstance(value, list) and len(value) == len(_COLUMNS):
        pairs = zip(_COLUMNS, value, strict=True)
        return " and ".join(
            f"{name}:{value_text(part)}" for name, part in pairs if part is not None
        )
    return value_text(value)


def check_text(step: TraceStep) -> str:
    """The checks that a step ran, each with its result."""
    return "; ".join(
        f"{one.name}: {'passed' if one.passed else 'FAILED'}"
        + (f" ({one.detail})" if one.detail else "")
        for one in step.checks
    )


def change_text(step: TraceStep, *, counters: bool = False) -> str:
    """What a step changed for everybody, and nothing else; ``counters``: also those of models."""
    changes = step.to_dict()["changes"]
    key = step.arguments.get("key")
    if key is not None and isinstance(changes.get(key), str):
        # A storage call names its object among its arguments.
        return str(changes[key])
    return "; ".join(
        part
        for name, change in changes.items()
        if counters or name not in _COUNTERS
        for part in _changed(name, change)
    )


def local_text(step: TraceStep) -> str:
    """What a step changed in what its actor holds."""
    changes = step.to_dict()["actor_changes"]
    return "; ".join(part for name, change in changes.items() for part in _changed(name, change))


def _changed(name: str, change: Any) -> Iterator[str]:
    if not isinstance(change, Mapping):
        yield f"{name}: {value_text(change)}"
    elif change.keys() == {"from", "to"}:
        yield from _difference(name, change["from"], change["to"])
    elif change.keys() == {"appended"}:
        yield f"{name} +{value_text(change['appended'])}"
    elif {"version", "files"} <= change.keys():
        yield _version(change)
    else:
        yield f"{name}: {value_text(change)}"


def _version(change: Mapping[str, Any]) -> str:
    """A committed version: files that came and went, and the history it adds."""
    moved = [
        f"{_STATUS[status]}{path}" for path, status in change["files"].items() if status in _STATUS
    ]
    recorded = [
        f"{one['id']}.col{one['column'] + 1}={value_text(one['value'])}"
        for one in change.get("history", ())
    ]
    text = " ".join([f"version {change['version']} {change.get('operation', '')}".rstrip(), *moved])
    return f"{text}; history {' '.join(recorded)}" if recorded else text


def _difference(name: str, before: Any, after: Any) -> Iterator[str]:
    before, after = _as_record(before), _as_record(after)
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in (*before, *(key for key in after if key not in before)):
            if before.get(key) != after.get(key):
                yield from _difference(f"{name}.{key}", before.get(key), after.get(key))
        return
    if isinstance(before, list) and isinstance(after, list):
        new = _beyond(after, before)
        old = _beyond(before, after)
        if new and not old:
            yield f"{name} +{value_text(new)}"
            return
        if old and not new:
            yield f"{name} -{value_text(old)}"
            return
        if new and _are_records(new + old) and len(new) + len(old) < len(before) + len(after):
            yield f"{name} -{value_text(old)} +{value_text(new)}"
            return
    yield f"{name} {value_text(before)} → {value_text(after)}"


def _are_records(values: list[Any]) -> bool:
    return all(isinstance(one, list | Mapping) for one in values)


def _as_record(value: Any) -> Any:
    """Pairs with different names as a mapping, so that only what differs is shown."""
    if not isinstance(value, list) or not value:
        return value
    if all(isinstance(one, list) and len(one) == 2 and isinstance(one[0], str) for one in value):
        names = [one[0] for one in value]
        if len(set(names)) == len(names):
            return dict(value)
    return value


def _beyond(longer: list[Any], shorter: list[Any]) -> list[Any]:
    """What a list has that the other lacks, each as often as it has it more."""
    left = list(longer)
    for one in shorter:
        if one in left:
            left.remove(one)
    return left
