"""Spellings of one file's path in a Delta log, and which of them Delta Spark takes for one."""

from __future__ import annotations

__all__ = ["SAME_IN_DELTA_SPARK", "spellings"]


def spellings(root: str, name: str = "b.parquet") -> dict[str, str]:
    """Paths that name the file ``d/aü NAME``; ``root`` is the table's folder, plain ASCII."""
    found = {
        "usual": "d/aü%20b.parquet",
        "dot": "./d/aü%20b.parquet",
        "double slash": "d//aü%20b.parquet",
        "up and down": "d/../d/aü%20b.parquet",
        "escaped letter": "d/%61ü%20b.parquet",
        "escaped umlaut": "d/a%C3%BC%20b.parquet",
        "lower-case escapes": "d/a%c3%bc%20b.parquet",
        "absolute": f"{root}/d/aü%20b.parquet",
        "absolute, escaped letter": f"{root}/%64/aü%20b.parquet",
        "absolute, double slash": f"{root}//d/aü%20b.parquet",
        "file:/": f"file:{root}/d/aü%20b.parquet",
        "file:///": f"file://{root}/d/aü%20b.parquet",
        "FILE:/": f"FILE:{root}/d/aü%20b.parquet",
    }
    return {how: path.replace("b.parquet", name) for how, path in found.items()}


SAME_IN_DELTA_SPARK = (
    {"usual", "dot", "double slash", "up and down"},
    {"escaped letter"},
    {"escaped umlaut", "lower-case escapes"},
    {
        "absolute",
        "absolute, escaped letter",
        "absolute, double slash",
        "file:/",
        "file:///",
        "FILE:/",
    },
)
"""Measured with Delta Spark 4.4.0: ``java.net.URI`` after Hadoop's ``Path``."""
