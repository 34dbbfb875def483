"""The Java kernel of Delta as a judge: its own validators, called in the JVM that PySpark started.

Delta Spark brings the kernel's jars along, so a session with Delta has everything. The validators
get the very text of the log (schema string, configuration, protocol); nothing of twinlake stands
between. They stop at the first thing they dislike, so a verdict has one complaint at most.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from py4j import java_gateway, protocol
from py4j.protocol import Py4JJavaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from twinlake.compat import State, Subject
    from twinlake.protocol import Metadata, Protocol

__all__ = ["KERNEL_VERSION", "JavaKernel", "KernelVerdict"]

KERNEL_VERSION: Final = "4.4.0"

_VALIDATORS: Final = {
    "icebergCompatV2": "validateAndUpdateIcebergCompatV2Metadata",
    "icebergCompatV3": "validateAndUpdateIcebergCompatV3Metadata",
    "icebergWriterCompatV1": "validateAndUpdateIcebergWriterCompatV1Metadata",
    "icebergWriterCompatV3": "validateAndUpdateIcebergWriterCompatV3Metadata",
}


@dataclass(frozen=True, slots=True)
class KernelVerdict:
    """What the kernel says of one table, or of one change of it."""

    error: str = ""
    """The class of the exception, without its package; "" where the kernel has no complaint."""
    message: str = ""

    @property
    def ok(self) -> bool:
        """Whether the kernel would let it through."""
        return not self.error


@contextlib.contextmanager
def _unconverted_exceptions() -> Iterator[None]:
    """Java exceptions as py4j has them: PySpark asks the JVM ten times what each of them is."""
    converting = java_gateway.get_return_value
    java_gateway.get_return_value = protocol.get_return_value
    try:
        yield
    finally:
        java_gateway.get_return_value = converting


class JavaKernel:
    """The validators of ``io.delta.kernel.internal``, by their own names."""

    def __init__(self, session: SparkSession) -> None:
        jvm: Any = session._jvm
        self._jvm = jvm
        self._internal: Any = self._jvm.io.delta.kernel.internal
        self._json: Any = self._jvm.com.fasterxml.jackson.databind.ObjectMapper()
        self._types: dict[str, Any] = {
            name: self._jvm.java.lang.Class.forName(f"java.util.{name}")
            for name in ("HashMap", "HashSet", "ArrayList")
        }
        self._string: Any = self._jvm.io.delta.kernel.types.StringType.STRING
        self._none: Any = self._jvm.java.util.Optional.empty()
        self._format: Any = self._internal.actions.Format()
        self._schemas: dict[str, Any] = {}
        self._protocols: dict[Protocol, Any] = {}
        self._validators: dict[str, Any] = {
            feature: getattr(
                getattr(
                    self._internal.icebergcompat,
                    f"{feature[0].upper()}{feature[1:]}MetadataValidatorAndUpdater",
                ),
                method,
            )
            for feature, method in _VALIDATORS.items()
        }

    def version(self) -> str:
        """The release of the kernel in the JVM."""
        return str(self._jvm.io.delta.kernel.Meta.KERNEL_VERSION)

    def verdict(self, feature: str, subject: Subject) -> KernelVerdict:
        """What an update of the table would be told, or CREATE or REPLACE as the subject says."""
        with _unconverted_exceptions():
            try:
                self._judge(feature, subject)
            except Py4JJavaError as error:
                name, _, message = str(error.java_exception.toString()).partition(": ")
                return KernelVerdict(error=name.rpartition(".")[2], message=message)
        return KernelVerdict()

    def _judge(self, feature: str, subject: Subject) -> None:
        before = None if subject.before is None else self._state(subject.before)
        metadata, protocol = self._state(subject.after)
        if before is not None and not subject.replaces:
            self._refuse_toggles(before[0], metadata)
        previous = self._none if before is None else self._jvm.java.util.Optional.of(before[1])
        is_new = subject.creates or subject.replaces
        updated = self._validators[feature](is_new, metadata, protocol, previous)
        metadata = updated.get() if updated.isPresent() else metadata
        # A transaction gives ids and names to new columns between the two checks.
        mapping = self._internal.util.ColumnMapping
        mapped = mapping.updateColumnMappingMetadataIfNeeded(metadata, is_new)
        metadata = mapped.get() if mapped.isPresent() else metadata
        if before is not None and before[0].getSchemaString() != metadata.getSchemaString():
            self._internal.util.SchemaUtils.validateUpdatedSchemaAndGetUpdatedSchema(
                before[0], metadata, protocol, self._jvm.java.util.HashSet(), subject.replaces
            )

    def _refuse_toggles(self, before: Any, after: Any) -> None:
        """The two switches a transaction may not move; the others have no such check."""
        package = self._internal.icebergcompat
        old, new = before.getConfiguration(), after.getConfiguration()
        package.IcebergWriterCompatV1MetadataValidatorAndUpdater.validateIcebergWriterCompatV1Change(
            old, new
        )
        package.IcebergCompatV3MetadataValidatorAndUpdater.validateIcebergCompatV3Change(old, new)

    def _state(self, state: State) -> tuple[Any, Any]:
        return self._metadata(state.metadata), self._protocol(state.protocol)

    def _metadata(self, metadata: Metadata) -> Any:
        vectors = self._internal.util.VectorUtils
        columns = self._read(list(metadata.partition_columns), "ArrayList")
        return self._internal.actions.Metadata(
            metadata.id,
            self._none,
            self._none,
            self._format,
            metadata.schema_string,
            self._schema(metadata.schema_string),
            vectors.buildArrayValue(columns, self._string),
            self._none,
            vectors.stringStringMapValue(self._read(dict(metadata.configuration), "HashMap")),
        )

    def _schema(self, text: str) -> Any:
        if text not in self._schemas:
            reader = self._internal.types.DataTypeJsonSerDe
            self._schemas[text] = reader.deserializeStructType(text)
        return self._schemas[text]

    def _protocol(self, protocol: Protocol) -> Any:
        if protocol not in self._protocols:
            self._protocols[protocol] = self._internal.actions.Protocol(
                protocol.min_reader_version,
                protocol.min_writer_version,
                self._read(sorted(protocol.reader_features or ()), "HashSet"),
                self._read(sorted(protocol.writer_features or ()), "HashSet"),
            )
        return self._protocols[protocol]

    def _read(self, value: object, kind: str) -> Any:
        """A Java collection of strings in one call, however many there are."""
        return self._json.readValue(json.dumps(value), self._types[kind])
