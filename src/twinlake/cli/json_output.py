"""The output of every command with ``--json``: exactly one JSON document on standard output.

Errors too (``{"error": {...}}``); their text goes to standard error beside it.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

from twinlake.cli.error_text import error_lines
from twinlake.cli.output import is_utf8
from twinlake.protocol.properties import redact

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.cli.view import View
    from twinlake.errors import TwinlakeError

__all__ = ["JsonOutput"]


class JsonOutput:
    """One JSON document on standard output."""

    is_terminal = False

    def show(self, view: View) -> None:
        """The data of the view."""
        self._write(view.data)

    def show_all(self, views: Iterable[View]) -> None:
        """All views in one document."""
        self._write({"steps": [dict(view.data) for view in views]})

    def error(self, error: TwinlakeError) -> None:
        """Three lines on standard error, one object on standard output."""
        click.echo("\n".join(error_lines(error)), err=True)
        self._write({"error": {**error.to_dict(), "type": type(error).__name__}})

    def _write(self, data: Any) -> None:
        shown = redact(data)
        try:
            # Values beyond JSON (dates, decimals, not-a-number) become text or null.
            encoded = msgspec.json.encode(shown, enc_hook=str)
            text = msgspec.json.format(encoded, indent=2).decode()
        except UnicodeEncodeError:
            # A path that is not Unicode has lone surrogates, which only escapes can hold.
            text = json.dumps(shown, indent=2, default=str)
        if not is_utf8(sys.stdout):
            text = json.dumps(json.loads(text), indent=2)
        sys.stdout.write(text + "\n")
