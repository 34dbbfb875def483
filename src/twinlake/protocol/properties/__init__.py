"""Table properties: the registry of those that are known, their values and their checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from twinlake.protocol.properties.redaction import MASK, Verbatim, redact, redact_property

__all__ = ["MASK", "Verbatim", "redact", "redact_property"]

if not TYPE_CHECKING:  # the package itself is imported by modules that these need
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "twinlake.protocol.properties.redaction": (
                "MASK",
                "Verbatim",
                "redact",
                "redact_property",
            )
        },
    )
