"""Sessions: the pinned settings of the data plane, and a session on this machine.

What reads and writes with a session is in the other folders. Only ``settings`` imports PySpark: a
command that needs it reports that it is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake._lazy_exports import lazy_exports
from twinlake.spark.session.local import local_session, stderr_into

if TYPE_CHECKING:
    from twinlake.spark.session.settings import (
        PINNED,
        check_classic,
        check_session,
        default_properties,
        inner_session,
        open_table,
        session_conf,
        settings_of,
    )

__all__ = [
    "PINNED",
    "check_classic",
    "check_session",
    "default_properties",
    "inner_session",
    "local_session",
    "open_table",
    "session_conf",
    "settings_of",
    "stderr_into",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {"twinlake.spark.session.settings": tuple(set(__all__) - {"local_session", "stderr_into"})},
    )
