"""What a draft looks like, as questions that the known differences ask."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.support.kernel.drafts import ID, MAX_ID, MODE, NESTED, Draft, fields_of
from twinlake.compat import COMPATS

__all__ = [
    "Test",
    "default_only_java_takes",
    "default_only_sql_takes",
    "has_field_with",
    "has_incomplete_ids",
    "identity_goes_unseen",
    "is_enabled_now",
    "is_left_to_the_kernel",
    "is_on",
    "marked",
    "mode_in_other_case",
    "only_comments_change",
    "only_in_collections",
    "partitions_by_a_capital",
    "supports",
    "writer_feature_is_toggled",
    "writers_only",
]

Test = Callable[[Draft], bool]


def supports(draft: Draft | None, *names: str) -> bool:
    """Whether any of the features is listed for writers."""
    return draft is not None and not (draft.writer_features or set()).isdisjoint(names)


def is_on(draft: Draft, key: str) -> bool:
    """Whether the switch is true in any case of its letters."""
    return draft.configuration.get(key, "").lower() == "true"


def mode_in_other_case(draft: Draft) -> bool:
    """The mode is a right one, but not in small letters."""
    mode = draft.configuration.get(MODE, "")
    return mode != mode.lower() and mode.lower() in ("name", "id")


def has_incomplete_ids(draft: Draft) -> bool:
    """Some id is missing, taken twice, or above the highest."""
    ids: list[int | None] = []
    for spot in fields_of(draft.schema):
        own = spot.field["metadata"]
        ids.append(own.get(ID))
        wanted = json.dumps(spot.field["type"]) if isinstance(spot.field["type"], dict) else ""
        nested = own.get(NESTED, {})
        if wanted and len(nested) < _parts(spot.field["type"]):
            ids.append(None)
        ids.extend(nested.values())
    known = [number for number in ids if number is not None]
    highest = int(draft.configuration.get(MAX_ID, "0"))
    return None in ids or len(set(known)) < len(known) or max(known) > highest


def _parts(kind: Any) -> int:
    """How many elements, keys and values a field's own type has."""
    if not isinstance(kind, dict) or kind["type"] == "struct":
        return 0
    if kind["type"] == "array":
        return 1 + _parts(kind["elementType"])
    return 2 + _parts(kind["keyType"]) + _parts(kind["valueType"])


def has_field_with(draft: Draft, present: set[str], absent: set[str]) -> bool:
    """Some field has all of these keys and none of those."""
    return any(
        present <= spot.field["metadata"].keys() and absent.isdisjoint(spot.field["metadata"])
        for spot in fields_of(draft.schema)
    )


def marked(draft: Draft, *keys: str) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """For each field with any of the keys: those it has, and what it lies below."""
    for spot in fields_of(draft.schema):
        held = frozenset(keys) & spot.field["metadata"].keys()
        if held:
            yield held, spot.below


def only_in_collections(*keys: str) -> Test:
    """The keys are only on fields below arrays and maps."""
    return lambda draft: all(below for _, below in marked(draft, *keys))


_IDENTITY: Final = (
    "delta.identity.start", "delta.identity.step", "delta.identity.allowExplicitInsert",
    "delta.identity.highWaterMark",
)  # fmt: skip


def identity_goes_unseen(draft: Draft) -> bool:
    """Identity columns are below arrays and maps, or just a high water mark."""
    mark = frozenset({"delta.identity.highWaterMark"})
    return all(below or held == mark for held, below in marked(draft, *_IDENTITY))


def is_enabled_now(key: str) -> Test:
    """An update of the table switches the property on."""

    def test(draft: Draft) -> bool:
        before = draft.before
        return (
            before is not None
            and not draft.replaces
            and is_on(draft, key)
            and not is_on(before, key)
        )

    return test


def writer_feature_is_toggled(draft: Draft) -> bool:
    """The first writer feature is enabled or disabled."""
    key = COMPATS["icebergWriterCompatV1"].key
    before = draft.before
    return before is not None and is_on(draft, key) != is_on(before, key)


def _without_comments(draft: Draft) -> str:
    bare = draft.copy()
    for spot in fields_of(bare.schema):
        spot.field["metadata"].pop("comment", None)
    return json.dumps(bare.schema)


def only_comments_change(draft: Draft) -> bool:
    """Nothing differs from the schema before but comments."""
    return draft.before is not None and _without_comments(draft) == _without_comments(draft.before)


_SQL_ONLY: Final = re.compile(r"null|\s.*|.*\s|.*[0-9](l|d|s|y|f|bd)|[a-z]+ ?'.*'", re.IGNORECASE)


def _defaults(draft: Draft) -> Iterator[tuple[str, str]]:
    """The defaults of columns with the types of the columns."""
    for spot in fields_of(draft.schema):
        if "CURRENT_DEFAULT" in spot.field["metadata"]:
            yield str(spot.field["type"]), spot.field["metadata"]["CURRENT_DEFAULT"]


def is_left_to_the_kernel(draft: Draft) -> bool:
    """A new or replaced table does not set what the kernel sets by itself."""
    keys = (MODE, f"delta.enableIcebergCompatV{draft.version}", "delta.enableRowTracking")
    missing = [key for key in keys if key not in draft.configuration]
    return (draft.creates or draft.replaces) and bool(missing)


_MOMENT: Final = re.compile(
    # Without quotes, in a year that Python does not have, with nanoseconds or none behind the dot,
    # a small t, seconds in the zone.
    r"[0-9].*|'(\+|0000).*|.*\.([0-9]{7,}.*|')|.*t.*|.*\+[0-9:]{8}'"
)
_NUMBER: Final = re.compile(r"NaN|Infinity|0x.*|.*e.*|[^\x00-\x7f]")
_JAVA_ONLY: Final = {
    "boolean": re.compile(r".*"),
    "string": re.compile(r"(['\"]).*\1"),
    "binary": re.compile(r"(['\"]).*\1"),
    "date": _MOMENT,
    "timestamp": _MOMENT,
    "timestamp_ntz": _MOMENT,
}


def default_only_java_takes(draft: Draft) -> bool:
    """A default that Java's parsers take for a value of the type, and SQL does not."""
    return any(_JAVA_ONLY.get(kind, _NUMBER).fullmatch(text) for kind, text in _defaults(draft))


def default_only_sql_takes(draft: Draft) -> bool:
    """A default that SQL takes for a literal of the type, and Java's parsers do not."""
    return any(
        kind == "byte" or kind.startswith("timestamp") or _SQL_ONLY.fullmatch(text)
        for kind, text in _defaults(draft)
    )


def partitions_by_a_capital(draft: Draft) -> bool:
    """A partition column has a capital letter in its name."""
    names = [child["name"] for child in draft.schema["fields"]]
    return any(name in draft.partitions and name != name.lower() for name in names)


def writers_only(draft: Draft, *names: str) -> bool:
    """A feature of readers and writers that only writers are told of."""
    return any(supports(draft, n) and n not in (draft.reader_features or ()) for n in names)
