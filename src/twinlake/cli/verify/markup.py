"""Elements of HTML and SVG as text; whatever is not an element itself is escaped.

>>> element("p", "a < b", element("br"), class_="note")
'<p class="note">a &lt; b<br/></p>'
"""

from __future__ import annotations

from html import escape
from typing import Final

__all__ = ["Markup", "element"]

#: Elements that have no content.
_VOID: Final = frozenset({"br", "line", "path", "rect"})


class Markup(str):
    """Text that is already escaped."""

    __slots__ = ()


def element(name: str, *content: object, **attributes: object) -> Markup:
    """An element; attributes that are words of Python end in ``_``, and ``_`` stands for ``-``."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
    )
    if name in _VOID:
        return Markup(f"<{name}{given}/>")
    inner = "".join(part if isinstance(part, Markup) else escape(str(part)) for part in content)
    return Markup(f"<{name}{given}>{inner}</{name}>")
