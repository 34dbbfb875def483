"""Numbers as wide as the Delta protocol has them.

A wider one is an error of the line it stands in, not a surprise for whoever puts it into a
column later.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["Int", "Long"]

Int = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Long = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
