"""Schema values as DDL text.

What DDL has no words for is left out: arrays and map values that hold no nulls, column mapping
and other metadata. The schema JSON is the lossless form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from twinlake.schema.ddl.tokens import quote_text
from twinlake.schema.metadata_keys import (
    CHAR_VARCHAR_KEY,
    COLLATIONS_KEY,
    COMMENT_KEY,
    CURRENT_DEFAULT_KEY,
    GENERATION_EXPRESSION_KEY,
    IDENTITY_EXPLICIT_KEY,
    IDENTITY_START_KEY,
    IDENTITY_STEP_KEY,
)
from twinlake.schema.types import (
    Array,
    DataType,
    Geography,
    Geometry,
    Map,
    Primitive,
    Struct,
    StructField,
    UserDefined,
)

__all__ = ["CATALOG", "SQL", "Style", "render_ddl", "render_definition", "render_type"]

_SQL_NAMES: Final[Mapping[str, str]] = {
    "long": "bigint",
    "integer": "int",
    "short": "smallint",
    "byte": "tinyint",
}
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_SIZED: Final = re.compile(r"(?:var)?char\([0-9]+\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How types are spelled: for people, or as the catalog string Spark keeps in metadata."""

    case: Callable[[str], str]
    comma: str
    colon: str
    options: bool


SQL: Final = Style(case=str.upper, comma=", ", colon=": ", options=True)
CATALOG: Final = Style(case=str.lower, comma=",", colon=":", options=False)
_CATALOG_WITH_OPTIONS: Final = replace(CATALOG, options=True)

_NO_COLLATIONS: Final[Mapping[str, Any]] = {}


def render_ddl(schema: Struct) -> str:
    """The schema as a list of column definitions.

    >>> from twinlake.schema.types import LONG
    >>> render_ddl(Struct((StructField("id", LONG, nullable=False),)))
    'id BIGINT NOT NULL'
    """
    return ", ".join(_column(child) for child in schema)


def render_type(kind: DataType, *, style: Style = SQL) -> str:
    """The type as DDL spells it.

    >>> from twinlake.schema.types import LONG
    >>> render_type(Array(LONG))
    'ARRAY<BIGINT>'
    """
    return _type(kind, style, _NO_COLLATIONS, "")


def _column(field: StructField) -> str:
    return f"{_name(field.name)} {render_definition(field)}"


def render_definition(field: StructField, *, kind: str | None = None) -> str:
    """What follows the name of a column; ``kind`` stands for the type, where it is given."""
    parts = [kind or _column_type(field)]
    metadata = field.metadata
    if not field.nullable:
        parts.append("NOT NULL")
    if isinstance(default := metadata.get(CURRENT_DEFAULT_KEY), str):
        parts.append(f"DEFAULT {default}")
    if isinstance(expression := metadata.get(GENERATION_EXPRESSION_KEY), str):
        parts.append(f"GENERATED ALWAYS AS ({expression})")
    if IDENTITY_START_KEY in metadata and IDENTITY_STEP_KEY in metadata:
        how = "BY DEFAULT" if metadata.get(IDENTITY_EXPLICIT_KEY) else "ALWAYS"
        start, step = metadata[IDENTITY_START_KEY], metadata[IDENTITY_STEP_KEY]
        parts.append(f"GENERATED {how} AS IDENTITY (START WITH {start} INCREMENT BY {step})")
    if isinstance(comment := metadata.get(COMMENT_KEY), str):
        parts.append(f"COMMENT {quote_text(comment)}")
    return " ".join(parts)


def _column_type(field: StructField) -> str:
    spelled = field.metadata.get(CHAR_VARCHAR_KEY)
    # The stored spelling counts only while it still describes the whole of the column's type.
    if (
        isinstance(spelled, str)
        and _SIZED.search(spelled)
        and _SIZED.sub("string", spelled) == render_type(field.type, style=_CATALOG_WITH_OPTIONS)
    ):
        return spelled.upper() if _SIZED.fullmatch(spelled) else spelled
    return _type(field.type, SQL, _collations(field), field.name)


def _type(kind: DataType, style: Style, collations: Mapping[str, Any], path: str) -> str:
    match kind:
        case Struct(fields):
            inner = style.comma.join(_nested(child, style) for child in fields)
            return f"{style.case('struct')}<{inner}>"
        case Array(element):
            return f"{style.case('array')}<{_type(element, style, collations, path + '.element')}>"
        case Map(key, value):
            key_text = _type(key, style, collations, path + ".key")
            value_text = _type(value, style, collations, path + ".value")
            return f"{style.case('map')}<{key_text}{style.comma}{value_text}>"
        case UserDefined(sql_type):
            return _type(sql_type, style, collations, path)
        case Primitive("string") if isinstance(collation := collations.get(path), str):
            return f"STRING COLLATE {collation.split('.')[1] if '.' in collation else collation}"
        case Primitive(name):
            return style.case(_SQL_NAMES.get(name, name))
        case Geometry() | Geography():
            return str(kind)  # names of reference systems keep their case
        case _:
            return style.case(str(kind))


def _nested(field: StructField, style: Style) -> str:
    kind = _type(field.type, style, _collations(field), field.name)
    text = f"{_name(field.name)}{style.colon}{kind}"
    if style.options and not field.nullable:
        text += " NOT NULL"
    if style.options and isinstance(comment := field.metadata.get(COMMENT_KEY), str):
        text += f" COMMENT {quote_text(comment)}"
    return text


def _collations(field: StructField) -> Mapping[str, Any]:
    found = field.metadata.get(COLLATIONS_KEY)
    return found if isinstance(found, Mapping) else _NO_COLLATIONS


def _name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"
