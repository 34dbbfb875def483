"""Catalogs in which the Iceberg side of a table has a name."""

from twinlake.iceberg.catalogs.configured_catalog import open_pointer
from twinlake.iceberg.catalogs.file_io import pyiceberg_properties, settings_of
from twinlake.iceberg.catalogs.pointer import Pointer, overtaken

__all__ = [
    "Pointer",
    "open_pointer",
    "overtaken",
    "pyiceberg_properties",
    "settings_of",
]
