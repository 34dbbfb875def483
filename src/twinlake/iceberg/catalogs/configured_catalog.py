"""Catalogs of PyIceberg's configuration.

The configuration is ``~/.pyiceberg.yaml``, or variables such as ``PYICEBERG_CATALOG__PROD__URI``.
PyIceberg comes with ``twinlake[catalogs]``.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, UserError
from twinlake.iceberg.catalogs.pointer import refused_catalog, unusable_catalog

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from twinlake.iceberg.catalogs.pointer import Pointer

__all__ = ["open_pointer"]

_NO_SWAP: Final[Mapping[str, str]] = {
    "rest": "the REST protocol moves pointers by the server alone: a client can register a file "
    "under a new name, but not swap the file of a name it knows",
    "hive": "a Hive metastore swaps conditionally only from Hive 4 on, and a client cannot see "
    "whether the server in front of it does",
    "glue": "the conditional update of Glue is not tested with twinlake",
    "dynamodb": "the conditional update of DynamoDB is not tested with twinlake",
    "bigquery": "the conditional update of BigQuery is not tested with twinlake",
    "in-memory": "such a catalog ends with the process that made it",
}
"""Kinds of catalogs that are refused, and why."""


@contextlib.contextmanager
def open_pointer(parts: Sequence[str]) -> Iterator[Pointer]:
    """The pointer of ``catalog, namespace..., table`` in a catalog that PyIceberg knows."""
    catalog, *namespace, table = parts
    kind, settings = _configured(catalog)
    if kind != "sql":
        why = _NO_SWAP.get(kind, f"catalogs of the kind {kind} are not known")
        raise refused_catalog(catalog, why)
    try:
        from twinlake.iceberg.catalogs.sql_pointer import open_sql_pointer
    except ImportError as error:
        raise unusable_catalog(catalog, error) from error
    with open_sql_pointer(catalog, settings, tuple(namespace), table) as pointer:
        yield pointer


def _configured(catalog: str) -> tuple[str, dict[str, Any]]:
    """The kind of a catalog and its settings."""
    try:
        from pyiceberg.catalog import infer_catalog_type
        from pyiceberg.utils.config import Config
    except ImportError as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"The catalog {catalog} cannot be used without PyIceberg.",
            why=str(error),
            fix="Run `pip install 'twinlake[catalogs]'`, or publish in the catalog of names "
            "with `twinlake sync PATH --publish NAMESPACE.TABLE`.",
            fields={"catalog": catalog},
        ) from error
    settings: Any = Config().get_catalog_config(catalog)
    if not settings:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"There is no catalog named {catalog}.",
            why="PyIceberg's configuration does not have it",
            fix="Add it to `~/.pyiceberg.yaml`, or set "
            f"`PYICEBERG_CATALOG__{catalog.upper()}__URI`.",
            fields={"catalog": catalog},
        )
    try:
        kind = settings.get("type") or infer_catalog_type(catalog, settings)
    except ValueError as error:
        raise refused_catalog(catalog, str(error)) from error
    # A type is text, or a member of PyIceberg's enumeration of them.
    return str(getattr(kind, "value", kind)).lower(), dict(settings)
