"""A Parquet scan over exactly the files of a snapshot, without a listing by Spark.

Spark lists every path it is given, which takes tens of seconds for ten thousand of them. The
record that its own file sink leaves behind (``_spark_metadata``) is taken as the list instead, so
we write one into a scratch folder, let Spark read it, and delete it at once.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.log import CanonicalPaths
from twinlake.spark.jvm_encoding import check_file_names
from twinlake.spark.spark_types import java_class, jvm_type
from twinlake.storage import decode_path, encode_path, parse_location, split_scheme

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from twinlake.schema import Struct

__all__ = ["file_keys", "hadoop_root", "read_files"]

_PLAIN: Final = re.compile(r"(?:[A-Za-z0-9_\-=][A-Za-z0-9_\-.=]*/)*[A-Za-z0-9_\-=.]+").fullmatch
_BLOCK: Final = 128 << 20
#: Schemes as Hadoop's file systems register them, by the name we print.
_HADOOP_SCHEMES: Final = {"s3": "s3a"}


def hadoop_root(url: str) -> str:
    """A folder as Hadoop prints it: ``file:/a%20b``, ``s3a://bucket/ü``.

    >>> hadoop_root("file:///data/my%20table"), hadoop_root("s3://lake/t")
    ('file:/data/my%20table', 's3a://lake/t')
    """
    location = parse_location(url)
    path = encode_path(f"/{location.path}") if location.path else ""
    if location.scheme == "file":
        return f"file:{path}"
    return f"{_HADOOP_SCHEMES.get(location.scheme, location.scheme)}://{location.authority}{path}"


def file_keys(root: str, paths: Sequence[str]) -> list[str]:
    """The files of the log as ``_metadata.file_path`` will spell them; ``root`` is Hadoop's."""
    return [f"{root}/{path}" if _PLAIN(path) else _odd_key(root, path) for path in paths]


def _odd_key(root: str, path: str) -> str:
    file = CanonicalPaths.of(root).file(path)
    if split_scheme(file) is not None:
        return hadoop_root(file)
    # A leading slash keeps a colon in the first segment from being taken for a scheme.
    return root + encode_path(f"/{decode_path(file)}")


def read_files(
    spark: SparkSession,
    inner: Any,
    files: Sequence[tuple[str, int, int]],
    schema: Struct,
    *,
    partitioned: bool,
) -> Any:
    """The analysed JVM plan of a Parquet scan with this schema over files: (key, size, time).

    The time is what rows have in ``_metadata.file_modification_time``, in milliseconds.
    ``partitioned``: the folders are the Hive encoding of trailing columns of the schema. Names
    that begin with ``_`` or ``.`` must not be among the files: Spark drops them in silence.
    """
    check_file_names(key for key, _, _ in files)
    reader = inner.read().schema(jvm_type(spark, schema))
    if not partitioned:
        # Also keeps folders that only look like partitions from becoming columns.
        reader = reader.option("recursiveFileLookup", "true")
    scratch = _write_list(files)
    try:
        return reader.parquet(_strings(spark, [scratch.as_uri()])).queryExecution().analyzed()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _write_list(files: Sequence[tuple[str, int, int]]) -> Path:
    scratch = Path(tempfile.mkdtemp(prefix="twinlake-files-"))
    folder = scratch / "_spark_metadata"
    folder.mkdir()
    encode = msgspec.json.Encoder().encode
    entry = {
        "path": "",
        "size": 0,
        "isDir": False,
        "modificationTime": 0,
        "blockReplication": 1,
        "blockSize": _BLOCK,
        "action": "add",
    }
    lines = [b"v1"]
    for key, size, time in files:
        entry["path"], entry["size"], entry["modificationTime"] = key, size, time
        lines.append(encode(entry))
    (folder / "0").write_bytes(b"\n".join(lines))
    return scratch


def _strings(spark: SparkSession, values: Sequence[str]) -> Any:
    gateway: Any = spark.sparkContext._gateway
    array = gateway.new_array(java_class(spark, "java.lang.String"), len(values))
    for position, value in enumerate(values):
        array[position] = value
    return array
