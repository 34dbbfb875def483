"""Data files by Spark's own Parquet writer: the fast way, wherever it can make what is wanted.

Spark writes into a staging folder inside the table, on the same file system; the files are then
renamed to their final names, which costs nothing. Statistics come from their footers.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

from pyspark.sql import functions
from pyspark.sql.classic.column import Column, _to_seq

from twinlake.actions import AddFile
from twinlake.commit.plans import STAGING_PREFIX
from twinlake.errors import Code, CorruptTable, StorageError, UserError
from twinlake.files import FileLayout, file_tags
from twinlake.log import StatsColumns, read_footer, stats_json
from twinlake.schema import (
    BOOLEAN,
    BYTE,
    DATE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    Decimal,
    Geography,
    Geometry,
    Interval,
    Struct,
    StructField,
    field_id,
    map_fields,
    nested_ids,
    parse_partition_path,
    parse_partition_value,
    render_partition_path,
    render_partition_value,
    render_schema,
    walk_fields,
    walk_types,
)
from twinlake.spark.job_storage_errors import job_storage_error
from twinlake.spark.jvm_encoding import non_utf8_encoding
from twinlake.spark.session import inner_session
from twinlake.spark.spark_types import java_class, quoted
from twinlake.storage import Durable, OnDisk, encode_path, os_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from twinlake.files import FileTarget
    from twinlake.storage import Store

__all__ = ["NativeWriter"]

_FIELD_ID: Final = "parquet.field.id"
_COMPLETE: Final = "org$apache$spark$sql$classic$ObservationManager$$tryComplete"
_THREADS: Final = 8
# Types whose spelling in a folder's name gives back the very value.
_EXACT_IN_FOLDERS: Final = frozenset(
    {STRING, BOOLEAN, BYTE, SHORT, INTEGER, LONG, DATE, TIMESTAMP, TIMESTAMP_NTZ}
)
_OPTIONS: Final[Mapping[str, str]] = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # The zone in which folders spell timestamps.
    "timeZone": "UTC",
}


class NativeWriter:
    """Spark's Parquet writer, for tables in a folder of this machine."""

    def refusal(self, target: FileTarget) -> str | None:
        """Why Spark's writer cannot make such files; None if it can."""
        return next(_refusals(target, FileLayout.of(target)), None)

    def write(self, frame: DataFrame, target: FileTarget) -> tuple[AddFile, ...]:
        """The new files; a failed job leaves nothing."""
        store = target.store()
        layout = FileLayout.of(target)
        staging = f"{STAGING_PREFIX}{uuid4()}"
        folder = _local(store).local_path(staging)
        what = f"Could not write data files in {store.url}."
        try:
            with os_errors(what, store.url):
                # Where that fails, Hadoop reports no more than "Mkdirs failed".
                os.makedirs(folder)  # noqa: PTH103
                os.rmdir(folder)  # noqa: PTH106
            with _job_errors(what):
                _run(frame, layout, folder)
            with os_errors(what, store.url):
                return _move_files(store, target, layout, staging)
        finally:
            # A task that outlives its failed job may still put a file there.
            for _ in range(2):
                shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _job_errors(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        found = job_storage_error(error)
        if found is None:
            raise
        found.what = what
        raise found from error


def _run(frame: DataFrame, layout: FileLayout, folder: str) -> None:
    """Have Spark write the frame into the folder."""
    spark = frame.sparkSession
    observed = "CollectMetrics" in str(cast("Any", frame)._jdf.queryExecution().analyzed())
    inner = inner_session(spark, with_listeners=observed)
    kept = [i for i, f in enumerate(layout.columns) if f.type != VOID]
    fields = [layout.columns[i] for i in kept]
    source: Any = frame
    if _has_deep_ids(frame, fields, layout.field_ids):
        chosen = frame if len(kept) == len(layout.columns) else frame.select(*_columns(frame, kept))
        execution = cast("Any", chosen)._jdf.queryExecution()
        kinds = java_class(spark, "org.apache.spark.sql.types.DataType")
        schema = kinds.fromJson(_spark_schema(fields, layout))
        # The same rows under another schema: names and ids at every level, nothing copied.
        written = inner.internalCreateDataFrame(execution.toRdd(), schema, False)
    else:
        execution = None
        source = _named(frame, layout, kept)
        plan = source._jdf.queryExecution().analyzed()
        written = java_class(spark, "org.apache.spark.sql.classic.Dataset").ofRows(inner, plan)
    writer = written.write().mode("error")
    for key, value in _OPTIONS.items():
        writer = writer.option(key, value)
    if layout.partitions:
        names = [layout.columns[i].name for i in layout.partitions]
        writer = writer.partitionBy(_to_seq(spark.sparkContext, names))
    # Not a URL: Hadoop takes what follows the scheme as it is.
    writer.parquet(f"file://{folder}")
    if execution is not None and observed:
        _complete_observations(spark, execution)


def _complete_observations(spark: SparkSession, execution: Any) -> None:
    """Complete the observations of a frame that ran as an RDD; they would wait forever."""
    manager = cast("Any", spark)._jsparkSession.observationManager()
    with contextlib.suppress(Exception):
        getattr(manager, _COMPLETE)(execution)


def _columns(frame: DataFrame, positions: list[int]) -> list[Any]:
    return [functions.col(quoted(frame.columns[i])) for i in positions]


def _named(frame: DataFrame, layout: FileLayout, kept: list[int]) -> DataFrame:
    """The frame with the names and ids of the files, and nulls allowed everywhere."""
    given = frame.schema.fields
    wanted = [layout.columns[i] for i in kept]
    same = len(given) == len(kept) and all(
        g.name == w.name and g.nullable and _FIELD_ID not in g.metadata
        for g, w in zip(given, wanted, strict=True)
    )
    if same and not layout.field_ids:
        return frame
    spark = frame.sparkSession
    expressions = java_class(spark, "org.apache.spark.sql.classic.ExpressionUtils")
    nullable = java_class(spark, "org.apache.spark.sql.catalyst.expressions.KnownNullable")
    columns = []
    for position, column in zip(kept, _columns(frame, kept), strict=True):
        field = layout.columns[position]
        if not given[position].nullable:
            column = Column(expressions.column(nullable(expressions.expression(column._jc))))
        columns.append(column.alias(field.name, metadata=_ids(field, layout.field_ids)))
    return frame.select(*columns)


def _has_deep_ids(frame: DataFrame, fields: list[StructField], field_ids: bool) -> bool:
    """Whether members of structs need other names or ids than the frame has."""
    if field_ids:
        return any(len(path) > 1 for path, _ in walk_fields(Struct(tuple(fields))))
    # Ids of the frame's own origin must not get into the files of a table without them.
    return any(_FIELD_ID in f.dataType.json() for f in frame.schema.fields)


def _ids(field: StructField, field_ids: bool) -> dict[str, int]:
    number = field_id(field) if field_ids else None
    return {} if number is None else {_FIELD_ID: number}


def _spark_schema(fields: list[StructField], layout: FileLayout) -> str:
    def plain(_: object, field: StructField) -> StructField:
        return replace(field, metadata=_ids(field, layout.field_ids))

    return render_schema(cast("Struct", map_fields(Struct(tuple(fields)), plain)))


def _move_files(
    store: Store, target: FileTarget, layout: FileLayout, staging: str
) -> tuple[AddFile, ...]:
    """Move the files of a finished job into the table; the actions that add them."""
    found = sorted(m.key for m in store.list_from(staging) if m.key.endswith(".parquet"))
    keys = [key for key in found if not key.rsplit("/", 1)[1].startswith((".", "_"))]
    if not keys and not layout.partitions:
        raise StorageError(
            Code.STORAGE,
            "Spark wrote files that this process cannot see.",
            why="the executors do not share the folder of the table with the driver",
            fix="Use a folder that all machines share, an object store, or "
            "`spark.conf.set('spark.twinlake.writer', 'arrow')`.",
            fields={"store": store.url},
        )
    columns = target.stats_columns
    moved: list[str] = []

    def one(key: str) -> AddFile | None:
        return _move_file(store, target, layout, columns, key, staging, moved)

    try:
        if len(keys) == 1:
            adds = [one(keys[0])]
        else:
            with ThreadPoolExecutor(_THREADS) as pool:
                adds = list(pool.map(one, keys))
    except BaseException:
        with contextlib.suppress(Exception):
            store.delete(moved)
        raise
    return tuple(add for add in adds if add is not None)


def _move_file(
    store: Store,
    target: FileTarget,
    layout: FileLayout,
    columns: StatsColumns | None,
    key: str,
    staging: str,
    moved: list[str],
) -> AddFile | None:
    """Rename one file into the table; None for a file without rows, which stays behind."""
    footer = read_footer(store, key)
    if not footer.metadata.num_rows:
        return None
    folder, _, name = key[len(staging) + 1 :].rpartition("/")
    values = _partition_values(folder, layout)
    new_key = "/".join(p for p in (target.folder, render_partition_path(values), name) if p)
    disk = _local(store)
    path = disk.local_path(new_key)
    os.makedirs(path[: path.rindex("/")], exist_ok=True)  # noqa: PTH103
    moved.append(new_key)
    os.rename(disk.local_path(key), path)  # noqa: PTH104
    if isinstance(store, Durable):
        store.sync(new_key)
    meta = store.head(new_key)
    return AddFile(
        path=encode_path(new_key),
        partition_values=values,
        size=footer.size,
        modification_time=0 if meta is None else meta.modified_ms,
        data_change=True,
        stats=None if columns is None else stats_json(footer.metadata, columns),
        tags=file_tags(target),
    )


def _partition_values(folder: str, layout: FileLayout) -> dict[str, str | None]:
    """The partition strings of the log, from those that Spark put into the folder's name."""
    if not layout.partitions:
        return {}
    if "?" in folder or "\ufffd" in folder:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"The partition folder {folder!r} is not the Hive encoding of its values.",
            why="Spark's Java runs in a locale whose file names cannot hold all of Unicode",
            fix="Start Spark with `LC_ALL=C.UTF-8`, or run "
            "`spark.conf.set('spark.twinlake.writer', 'arrow')`.",
            fields={"folder": folder},
        )
    spelt = parse_partition_path(folder)
    values: dict[str, str | None] = {}
    for position in layout.partitions:
        field = layout.columns[position]
        try:
            value = parse_partition_value(spelt[field.name], field.type)
        except CorruptTable as error:
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"A value of partition column {field.name} cannot be stored.",
                why=error.why,
                fix="Partition values have years 1 to 9999.",
                fields={"column": field.name},
            ) from error
        values[field.name] = render_partition_value(value, field.type)
    return values


def _local(store: Store) -> OnDisk:
    if not isinstance(store, OnDisk):
        raise UserError(
            Code.INVALID_ARGUMENT,
            "Spark's own writer only writes tables in a folder of this machine.",
            fix="Run `spark.conf.set('spark.twinlake.writer', 'auto')`.",
            fields={"store": store.url},
        )
    return store


def _refusals(target: FileTarget, layout: FileLayout) -> Iterator[str]:
    """What Spark's writer cannot do for these files, one reason after the other."""
    store = target.store()
    if not isinstance(store, OnDisk):
        yield "the table is not in a local folder"
        return
    if target.target_file_size is not None:
        yield "a file size is asked for"
    if layout.materialises:
        yield "files have to hold the partition columns"
    if not layout.kept:
        yield "there is no column beside the partition columns"
    if layout.field_ids:
        for path, field in walk_fields(Struct(layout.columns)):
            if nested_ids(field):
                yield f"{'.'.join(path)} has field ids for its elements, keys or values"
    partitions = [layout.columns[i] for i in layout.partitions]
    lossy = [
        f"{field.name} ({field.type})"
        for field in partitions
        if field.type not in _EXACT_IN_FOLDERS and not isinstance(field.type, Decimal)
    ]
    if lossy:
        yield f"the name of a folder may not give back {', '.join(lossy)}"
    for field in (*(layout.columns[i] for i in layout.kept), *partitions):
        for path, kind in walk_types(field.type, (field.name,)):
            if kind in (VARIANT, VOID) or isinstance(kind, Interval | Geometry | Geography):
                yield f"{'.'.join(path)} is of type {kind}"
    # Java replaces what its locale cannot spell in file names by question marks.
    spelled = store.local_path("x") + "".join(field.name for field in partitions)
    has_strings = any(field.type == STRING for field in partitions)
    if (has_strings or not spelled.isascii()) and (encoding := non_utf8_encoding()) is not None:
        yield f"Java spells file names in {encoding}"
