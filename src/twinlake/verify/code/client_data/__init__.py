"""What Iceberg clients leave behind: rows in Parquet files, and what they were answered and shown.

Values only. What clients do belongs in ``server``.
"""

from twinlake.verify.code.client_data.exchange import (
    KEY_MARK,
    AnswerKind,
    ClientExchange,
    SentRequest,
)
from twinlake.verify.code.client_data.parquet_rows import (
    is_parquet,
    read_parquet_rows,
    write_parquet_rows,
)

__all__ = [
    "KEY_MARK",
    "AnswerKind",
    "ClientExchange",
    "SentRequest",
    "is_parquet",
    "read_parquet_rows",
    "write_parquet_rows",
]
