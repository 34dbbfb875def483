"""How Spark's Java spells the names of files, and what it cannot read for that.

Java takes the encoding from the locale it is started in, and puts a question mark for whatever that
lacks: under ``LC_ALL=C`` for everything beyond ASCII. No setting of Spark's changes it later.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from pyspark import SparkContext

from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["check_file_names", "non_utf8_encoding"]

_FIX: Final = "Start Spark with `LC_ALL=C.UTF-8`: Java takes its encoding of names from there."


def non_utf8_encoding() -> str | None:
    """The encoding in which Java spells names, if that is not all of Unicode."""
    context: Any = SparkContext._active_spark_context
    return None if context is None else _narrow_encoding(context._jvm)


@cache
def _narrow_encoding(jvm: Any) -> str | None:
    found = jvm.java.lang.System.getProperty("sun.jnu.encoding")
    return None if found is None or found.upper().replace("-", "") == "UTF8" else str(found)


def check_file_names(urls: Iterable[str]) -> None:
    """Refuse to read local files whose names Java would not find."""
    encoding = non_utf8_encoding()
    if encoding is None:
        return
    odd = [url for url in urls if url.startswith("file:") and not unquote(url).isascii()]
    if odd:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"Spark cannot read {len(odd)} files of the table.",
            why=f"its Java spells file names in {encoding}, which lacks letters of {odd[0]!r}",
            fix=_FIX,
            fields={"encoding": encoding, "path": odd[0], "files": len(odd)},
        )
