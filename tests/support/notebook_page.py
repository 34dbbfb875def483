"""Pages that values show in a notebook, parsed."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any, Final

#: What a browser would run, or fetch from elsewhere.
FORBIDDEN: Final = {"script", "link", "img", "iframe", "object", "embed", "a", "form", "svg"}
HOSTILE: Final = "<script>alert('x')</script>"


class NotebookPage(HTMLParser):
    """The page of a value: its text, and its tables row by row.

    Fails if tags are not balanced, or if something is run or loaded.
    """

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.html: str = value._repr_html_()
        self.words: list[str] = []
        self.tags: list[str] = []
        self.rows: list[list[str]] = []
        self._open: list[str] = []
        self.feed(self.html)
        self.close()
        assert self._open == []
        assert not FORBIDDEN & set(self.tags)
        assert not any(mark in self.html for mark in ("url(", "@import", "src=", "href="))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert {name for name, _ in attrs} <= {"class", "open"}
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag != "br":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            return
        self.words.append(data)
        if {"td", "th"} & set(self._open):
            self.rows[-1][-1] += data

    @property
    def text(self) -> str:
        """All that a reader sees, folded or not."""
        return " ".join(self.words)
