"""Errors at the border to PySpark: ours, and at once the types that users of Delta Spark catch.

Inside, twinlake raises its own errors. Where they leave ``twinlake.spark`` each becomes an instance
of a class that inherits the twinlake class *and* the PySpark type that Delta Spark's error arrives
as: ``AnalysisException`` and the like, with Delta's error class and SQLSTATE on it. What Delta
lets through as a bare ``Py4JJavaError`` (violated constraints, table features) is a
``SparkRuntimeException`` here and can still be caught as ``Py4JJavaError``.

The other way, an error that has to be raised within a job travels as text: ``raise_error`` of SQL
or an exception of a Python worker with the mark ``TWINLAKE:`` and a JSON object.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    IllegalArgumentException,
    NumberFormatException,
    ParseException,
    PySparkException,
    PythonException,
    SparkRuntimeException,
    UnsupportedOperationException,
)

from twinlake import errors as plain
from twinlake.errors import Code, TwinlakeError
from twinlake.spark.error_classes import Kind, error_class
from twinlake.spark.job_errors import job_storage_error
from twinlake.storage import OS_ERRORS, os_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = [
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "DeltaConcurrentModificationException",
    "MetadataChangedException",
    "ProtocolChangedException",
    "SparkFacing",
    "carried_text",
    "carried_text_around_row",
    "carrying_errors",
    "message_texts",
    "spark_border",
    "spark_error",
    "speaks_spark",
    "uncarried",
]

_P = ParamSpec("_P")
_R = TypeVar("_R")

_MARK = "TWINLAKE:"
_USER_RAISED = "USER_RAISED_EXCEPTION"
_DEEPEST_CAUSE = 12


class SparkFacing(TwinlakeError, PySparkException):
    """A twinlake error that answers PySpark's questions as well."""

    #: The twinlake class it stands for.
    _stands_for: ClassVar[type[TwinlakeError]] = TwinlakeError

    def getCondition(self) -> str | None:
        """Delta's error class."""
        return self.delta_class

    def getSqlState(self) -> str | None:
        """The SQLSTATE of Delta's error class, where it has one."""
        known = error_class(self.delta_class)
        return known.sql_state if known else None

    def getMessage(self) -> str:
        """The text with Delta's error class before it, as PySpark's own messages have it."""
        return f"[{self.delta_class}] {self}" if self.delta_class else str(self)

    def getMessageParameters(self) -> dict[str, str]:
        """The fields of the error as text."""
        return {key: str(value) for key, value in self.fields.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        # Most classes are made at run time and cannot be found by name in another process.
        bare = self._stands_for.__new__(self._stands_for, *self.args)
        own = {k: v for k, v in self.__dict__.items() if k not in _PYSPARK_STATE}
        bare.__dict__.update(own)
        return spark_error, (bare,)


#: What PySpark's constructor leaves in an exception; made afresh rather than carried along.
_PYSPARK_STATE = frozenset(PySparkException("").__dict__)


class DeltaConcurrentModificationException(SparkFacing, plain.ConflictError):
    """A concurrent commit won; the root of the conflicts."""

    _stands_for = plain.ConflictError


class ConcurrentWriteException(
    DeltaConcurrentModificationException, plain.ConcurrentWriteException
):
    """No free version was found within the allowed attempts."""

    _stands_for = plain.ConcurrentWriteException


class MetadataChangedException(
    DeltaConcurrentModificationException, plain.MetadataChangedException
):
    """The winning commit changed the metadata."""

    _stands_for = plain.MetadataChangedException


class ProtocolChangedException(
    DeltaConcurrentModificationException, plain.ProtocolChangedException
):
    """The winning commit changed the protocol."""

    _stands_for = plain.ProtocolChangedException


class ConcurrentAppendException(
    DeltaConcurrentModificationException, plain.ConcurrentAppendException
):
    """The winning commit added files that this transaction should have read."""

    _stands_for = plain.ConcurrentAppendException


class ConcurrentDeleteReadException(
    DeltaConcurrentModificationException, plain.ConcurrentDeleteReadException
):
    """The winning commit removed files that this transaction read."""

    _stands_for = plain.ConcurrentDeleteReadException


class ConcurrentDeleteDeleteException(
    DeltaConcurrentModificationException, plain.ConcurrentDeleteDeleteException
):
    """The winning commit removed files that this transaction removes as well."""

    _stands_for = plain.ConcurrentDeleteDeleteException


class ConcurrentTransactionException(
    DeltaConcurrentModificationException, plain.ConcurrentTransactionException
):
    """The winning commit wrote the same domain or the same application id."""

    _stands_for = plain.ConcurrentTransactionException


_CONFLICT_FACES: tuple[type[SparkFacing], ...] = (
    DeltaConcurrentModificationException,
    ConcurrentWriteException,
    MetadataChangedException,
    ProtocolChangedException,
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    ConcurrentDeleteDeleteException,
    ConcurrentTransactionException,
)
_CONFLICTS: Mapping[type[TwinlakeError], type[SparkFacing]] = {
    face._stands_for: face for face in _CONFLICT_FACES
}

_TYPES: Mapping[Kind, tuple[type[Exception], ...]] = {
    Kind.ANALYSIS: (AnalysisException,),
    Kind.PARSE: (ParseException,),
    Kind.ARGUMENT: (IllegalArgumentException,),
    Kind.UNSUPPORTED: (UnsupportedOperationException,),
    Kind.ARITHMETIC: (ArithmeticException,),
    Kind.NUMBER: (NumberFormatException,),
    Kind.CONFLICT: (PySparkException,),
    Kind.RUNTIME: (SparkRuntimeException, Py4JJavaError),
}

#: The kind of an error that has no class of Delta's, or one that is not listed.
_KIND_OF_CODE: Mapping[Code, Kind] = {
    **dict.fromkeys(Code, Kind.RUNTIME),
    Code.INVALID_ARGUMENT: Kind.ARGUMENT,
    Code.PROPERTY_INVALID: Kind.ARGUMENT,
    Code.PREDICATE_INVALID: Kind.PARSE,
    Code.TABLE_NOT_FOUND: Kind.ANALYSIS,
    Code.TABLE_EXISTS: Kind.ANALYSIS,
    Code.VERSION_NOT_FOUND: Kind.ANALYSIS,
    Code.SCHEMA_INVALID: Kind.ANALYSIS,
    Code.SCHEMA_EVOLUTION: Kind.ANALYSIS,
    Code.COLUMN_NOT_FOUND: Kind.ANALYSIS,
    Code.APPEND_ONLY: Kind.UNSUPPORTED,
    Code.COMPAT: Kind.UNSUPPORTED,
    Code.SPARK_REQUIRED: Kind.UNSUPPORTED,
    Code.NOT_YET: Kind.UNSUPPORTED,
}


_faces: dict[tuple[type[TwinlakeError], Kind], type[SparkFacing]] = {}


def _face(twin: type[TwinlakeError], kind: Kind) -> type[SparkFacing]:
    """The class for a twinlake class and a kind, made once; named as the type users catch."""
    found = _faces.get((twin, kind))
    if found is not None:
        return found
    types = _TYPES[kind]
    members: dict[str, Any] = {
        "__doc__": f"{twin.__name__} of twinlake, also caught as {types[0].__name__}.",
        "__module__": __name__,
        "_stands_for": twin,
    }
    if Py4JJavaError in types:
        members["java_exception"] = None
    made = type(types[0].__name__, (SparkFacing, twin, *types), members)
    return _faces.setdefault((twin, kind), made)


def spark_error(error: TwinlakeError) -> TwinlakeError:
    """The same error as an instance of the PySpark type that Delta Spark would raise.

    >>> from twinlake.errors import Code, UserError
    >>> told = spark_error(UserError(Code.TABLE_NOT_FOUND, "No table.",
    ...                              delta_class="DELTA_TABLE_NOT_FOUND"))
    >>> isinstance(told, UserError), isinstance(told, AnalysisException), told.getSqlState()
    (True, True, '42P01')
    """
    if isinstance(error, SparkFacing):
        return error
    conflict = next((_CONFLICTS[c] for c in type(error).__mro__ if c in _CONFLICTS), None)
    known = error_class(error.delta_class)
    kind = known.kind if known else _KIND_OF_CODE[error.code]
    face = conflict or _face(type(error), kind)
    told = face.__new__(face, *error.args)
    PySparkException.__init__(
        told, message=error.what, errorClass=error.delta_class, messageParameters={}
    )
    told.__dict__.update(error.__dict__)
    told.args = error.args
    return told


def carried_text(error: TwinlakeError) -> str:
    """An error as the text of an exception raised within a job."""
    return _MARK + json.dumps(
        {"type": _plain_class(error).__name__, **error.to_dict()}, default=str
    )


def carried_text_around_row(error: TwinlakeError) -> tuple[str, str]:
    """What stands before and after the JSON of an offending row, to be joined within the job.

    For instance ``raise_error(concat(lit(before), to_json(struct("*")), lit(after)))``.
    """
    return carried_text(error)[:-1] + ', "row": ', "}"


@contextlib.contextmanager
def carrying_errors() -> Iterator[None]:
    """Within a Python worker: let twinlake errors reach the driver as what they are."""
    try:
        yield
    except TwinlakeError as error:
        raise RuntimeError(carried_text(error)) from error


def uncarried(exception: BaseException) -> TwinlakeError | None:
    """The twinlake error that an exception of a job carries, if it does."""
    # A JVM that went down cannot be asked; the exception itself says more about that.
    with contextlib.suppress(Exception):
        for text in _texts(exception):
            # The mark may also stand in the quoted source of a Python worker.
            for mark in re.finditer(_MARK, text):
                found = _parsed(text[mark.end() :])
                if found is not None:
                    return found
    return None


def _texts(exception: BaseException) -> Iterator[str]:
    """Where a message of ours can be; values of rows in other messages are not searched."""
    if isinstance(exception, PythonException):
        yield str(exception)
    elif isinstance(exception, PySparkException):
        if exception.getCondition() == _USER_RAISED:
            yield from (exception.getMessageParameters() or {}).values()
    elif isinstance(exception, Py4JJavaError):
        cause = exception.java_exception
        for _ in range(_DEEPEST_CAUSE):
            if cause is None:
                break
            yield str(cause.getMessage() or "")
            cause = cause.getCause()


def message_texts(exception: BaseException) -> Iterator[str]:
    """Every message of an exception of a job, and of what caused it in the JVM."""
    if isinstance(exception, Py4JJavaError):
        yield from _texts(exception)
    else:
        yield str(exception)


def _parsed(text: str) -> TwinlakeError | None:
    try:
        carried, _ = json.JSONDecoder().raw_decode(text)
        code = Code(carried["code"])
        what = str(carried["what"])
    except (ValueError, KeyError, TypeError):
        return None
    fields = dict(carried.get("fields", {}))
    why = str(carried.get("why", ""))
    if "row" in carried:
        fields["row"] = carried["row"]
        sample = f"for example the row {_shown(carried['row'])}"
        why = f"{why}; {sample}" if why else sample
    return _class_named(carried.get("type"))(
        code,
        what,
        why=why,
        fix=str(carried.get("fix", "")),
        rule=carried.get("rule"),
        delta_class=carried.get("delta_class"),
        fields=fields,
    )


def _shown(row: Any) -> str:
    if not isinstance(row, dict):
        return json.dumps(row, ensure_ascii=False)
    cells = (f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in row.items())
    return "(" + ", ".join(cells) + ")"


def _plain_class(error: TwinlakeError) -> type[TwinlakeError]:
    return error._stands_for if isinstance(error, SparkFacing) else type(error)


def _class_named(name: object) -> type[TwinlakeError]:
    found = getattr(plain, name, None) if isinstance(name, str) else None
    known = isinstance(found, type) and issubclass(found, TwinlakeError)
    return found if known and found is not None else plain.UserError


def _told(error: Exception) -> tuple[TwinlakeError, BaseException | None] | None:
    """How an error leaves twinlake, and its cause; None for one that passes unchanged."""
    if isinstance(error, SparkFacing):
        return None
    if isinstance(error, TwinlakeError):
        return spark_error(error), error.__cause__
    found: TwinlakeError | None
    # Of connections, which are OSErrors too, py4j says enough.
    if isinstance(error, OSError) and error.errno in OS_ERRORS:
        found = os_error(error, "Could not use a file or folder.", {"file": error.filename})
    else:
        found = uncarried(error) or job_storage_error(error)
    return None if found is None else (spark_error(found), error)


@contextlib.contextmanager
def spark_border() -> Iterator[None]:
    """What leaves the block as an error of twinlake leaves it as PySpark's too."""
    try:
        yield
    except Exception as error:
        told = _told(error)
        if told is None:
            raise
        raise told[0].with_traceback(error.__traceback__) from told[1]


def speaks_spark(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A public function of ``twinlake.spark`` whose errors are PySpark's too."""

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            told = _told(error)
            if told is None:
                raise
            raise told[0].with_traceback(error.__traceback__) from told[1]

    return call
