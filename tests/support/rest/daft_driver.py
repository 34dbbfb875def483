"""daft on a table of the catalog, in a process of its own: reads it, appends to it, reads again."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from typing import Any


def main(url: str, name: str) -> None:
    """Print the rows before and after an append, as JSON."""
    from pyiceberg.catalog.rest import RestCatalog

    # It has no types to check by, and is not in the environment of the tests.
    daft: Any = import_module("daft")
    table = RestCatalog("lake", uri=url).load_table(name)
    before = daft.read_iceberg(table).sort("id").to_pylist()
    daft.from_pydict({"id": [7], "name": ["by daft"]}).write_iceberg(table, mode="append")
    after = daft.read_iceberg(table.refresh()).sort("id").to_pylist()
    json.dump({"before": before, "after": after}, sys.stdout)
    sys.stdout.flush()
    # Its threads end the interpreter with an abort now and then, when all is done.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
