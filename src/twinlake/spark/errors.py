"""Errors of ``twinlake.spark``: ours, and at once the types that users of Delta Spark catch.

Inside, twinlake raises its own errors. Where they leave ``twinlake.spark`` each becomes an instance
of a class that inherits the twinlake class *and* the PySpark type that Delta Spark's error arrives
as: ``AnalysisException`` and the like, with Delta's error class and SQLSTATE on it. Its text begins
as Delta's does, with the class in brackets and the words of Delta's message; then come the three
lines of twinlake. What Delta lets through as a bare ``Py4JJavaError`` (violated constraints, table
features) is a ``SparkRuntimeException`` here and can still be caught as ``Py4JJavaError``.

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
from twinlake.spark.error_classes import ExceptionKind, error_class
from twinlake.spark.error_messages import message_of
from twinlake.spark.job_storage_errors import job_storage_error
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
    "SparkError",
    "decode_error",
    "encode_error",
    "encode_error_around_row",
    "encoded_errors",
    "message_texts",
    "raises_spark_errors",
    "spark_error",
    "spark_errors",
]

_P = ParamSpec("_P")
_R = TypeVar("_R")

_MARK = "TWINLAKE:"
_USER_RAISED = "USER_RAISED_EXCEPTION"
_DEEPEST_CAUSE = 12


class SparkError(TwinlakeError, PySparkException):
    """A twinlake error that is a ``PySparkException`` as well."""

    #: The twinlake class that it is an instance of, too.
    _twinlake_class: ClassVar[type[TwinlakeError]] = TwinlakeError

    def __init_subclass__(cls) -> None:
        cls._twinlake_class = next(
            base
            for base in cls.__mro__
            if issubclass(base, TwinlakeError) and not issubclass(base, SparkError)
        )

    def getCondition(self) -> str | None:
        """Delta's error class."""
        return self.delta_class

    def getSqlState(self) -> str | None:
        """The SQLSTATE of Delta's error class, where it has one."""
        known = error_class(self.delta_class)
        return known.sql_state if known else None

    def getErrorClass(self) -> str | None:
        """Delta's error class, by the name that PySpark had for it before ``getCondition``."""
        return self.delta_class

    def getMessage(self) -> str:
        """The same as the text of the exception, as for PySpark's own."""
        return str(self)

    def __str__(self) -> str:
        own = TwinlakeError.__str__(self)
        if not self.delta_class:
            return own
        said = message_of(self.delta_class, self.fields)
        return f"[{self.delta_class}] {said}\n{own}" if said else f"[{self.delta_class}] {own}"

    def getMessageParameters(self) -> dict[str, str]:
        """The fields of the error as text."""
        return {key: str(value) for key, value in self.fields.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        # Most classes are made at run time and cannot be found by name in another process.
        bare = self._twinlake_class.__new__(self._twinlake_class, *self.args)
        own = {k: v for k, v in self.__dict__.items() if k not in _PYSPARK_STATE}
        bare.__dict__.update(own)
        return spark_error, (bare,)


#: What PySpark's constructor leaves in an exception; made afresh rather than carried along.
_PYSPARK_STATE = frozenset(PySparkException("").__dict__)


class DeltaConcurrentModificationException(SparkError, plain.ConflictError):
    """A concurrent commit won; the root of the conflicts."""


class ConcurrentWriteException(
    DeltaConcurrentModificationException, plain.ConcurrentWriteException
):
    """No free version was found within the allowed attempts."""


class MetadataChangedException(
    DeltaConcurrentModificationException, plain.MetadataChangedException
):
    """The winning commit changed the metadata."""


class ProtocolChangedException(
    DeltaConcurrentModificationException, plain.ProtocolChangedException
):
    """The winning commit changed the protocol."""


class ConcurrentAppendException(
    DeltaConcurrentModificationException, plain.ConcurrentAppendException
):
    """The winning commit added files that this transaction should have read."""


class ConcurrentDeleteReadException(
    DeltaConcurrentModificationException, plain.ConcurrentDeleteReadException
):
    """The winning commit removed files that this transaction read."""


class ConcurrentDeleteDeleteException(
    DeltaConcurrentModificationException, plain.ConcurrentDeleteDeleteException
):
    """The winning commit removed files that this transaction removes as well."""


class ConcurrentTransactionException(
    DeltaConcurrentModificationException, plain.ConcurrentTransactionException
):
    """The winning commit wrote the same domain or the same application id."""


_CONFLICTS: Mapping[type[TwinlakeError], type[SparkError]] = {
    plain.ConflictError: DeltaConcurrentModificationException,
    **{
        each._twinlake_class: each for each in DeltaConcurrentModificationException.__subclasses__()
    },
}

_TYPES: Mapping[ExceptionKind, tuple[type[Exception], ...]] = {
    ExceptionKind.ANALYSIS: (AnalysisException,),
    ExceptionKind.PARSE: (ParseException,),
    ExceptionKind.ARGUMENT: (IllegalArgumentException,),
    ExceptionKind.UNSUPPORTED: (UnsupportedOperationException,),
    ExceptionKind.ARITHMETIC: (ArithmeticException,),
    ExceptionKind.NUMBER: (NumberFormatException,),
    ExceptionKind.CONFLICT: (PySparkException,),
    ExceptionKind.RUNTIME: (SparkRuntimeException, Py4JJavaError),
}

#: The kind of an error that has no class of Delta's, or one that is not listed.
_KIND_OF_CODE: Mapping[Code, ExceptionKind] = {
    **dict.fromkeys(Code, ExceptionKind.RUNTIME),
    Code.INVALID_ARGUMENT: ExceptionKind.ARGUMENT,
    Code.PROPERTY_INVALID: ExceptionKind.ARGUMENT,
    Code.PREDICATE_INVALID: ExceptionKind.PARSE,
    Code.TABLE_NOT_FOUND: ExceptionKind.ANALYSIS,
    Code.TABLE_EXISTS: ExceptionKind.ANALYSIS,
    Code.VERSION_NOT_FOUND: ExceptionKind.ANALYSIS,
    Code.SCHEMA_INVALID: ExceptionKind.ANALYSIS,
    Code.SCHEMA_EVOLUTION: ExceptionKind.ANALYSIS,
    Code.COLUMN_NOT_FOUND: ExceptionKind.ANALYSIS,
    Code.APPEND_ONLY: ExceptionKind.UNSUPPORTED,
    Code.COMPAT: ExceptionKind.UNSUPPORTED,
    Code.SPARK_REQUIRED: ExceptionKind.UNSUPPORTED,
    Code.NOT_YET: ExceptionKind.UNSUPPORTED,
}


_combined_classes: dict[tuple[type[TwinlakeError], ExceptionKind], type[SparkError]] = {}


def _combined_class(twin: type[TwinlakeError], kind: ExceptionKind) -> type[SparkError]:
    """The class for a twinlake class and a kind, made once; named as the type users catch."""
    found = _combined_classes.get((twin, kind))
    if found is not None:
        return found
    types = _TYPES[kind]
    members: dict[str, Any] = {
        "__doc__": f"{twin.__name__} of twinlake, also caught as {types[0].__name__}.",
        "__module__": __name__,
    }
    if Py4JJavaError in types:
        members["java_exception"] = None
    made = type(types[0].__name__, (SparkError, twin, *types), members)
    return _combined_classes.setdefault((twin, kind), made)


def spark_error(error: TwinlakeError) -> TwinlakeError:
    """The same error as an instance of the PySpark type that Delta Spark would raise.

    >>> from twinlake.errors import Code, UserError
    >>> error = spark_error(UserError(Code.TABLE_NOT_FOUND, "No table.",
    ...                               delta_class="DELTA_TABLE_NOT_FOUND"))
    >>> isinstance(error, UserError), isinstance(error, AnalysisException), error.getSqlState()
    (True, True, '42P01')
    """
    if isinstance(error, SparkError):
        return error
    conflict = next((_CONFLICTS[c] for c in type(error).__mro__ if c in _CONFLICTS), None)
    known = error_class(error.delta_class)
    kind = known.kind if known else _KIND_OF_CODE[error.code]
    combined = conflict or _combined_class(type(error), kind)
    made = combined.__new__(combined, *error.args)
    PySparkException.__init__(
        made, message=error.what, errorClass=error.delta_class, messageParameters={}
    )
    made.__dict__.update(error.__dict__)
    made.args = error.args
    return made


def encode_error(error: TwinlakeError) -> str:
    """An error as the text of an exception raised within a job."""
    return _MARK + json.dumps(
        {"type": _plain_class(error).__name__, **error.to_dict()}, default=str
    )


def encode_error_around_row(error: TwinlakeError) -> tuple[str, str]:
    """What stands before and after the JSON of an offending row, to be joined within the job.

    For instance ``raise_error(concat(lit(before), to_json(struct("*")), lit(after)))``.
    """
    return encode_error(error)[:-1] + ', "row": ', "}"


@contextlib.contextmanager
def encoded_errors() -> Iterator[None]:
    """Within a Python worker: let twinlake errors reach the driver as what they are."""
    try:
        yield
    except TwinlakeError as error:
        raise RuntimeError(encode_error(error)) from error


def decode_error(exception: BaseException) -> TwinlakeError | None:
    """The twinlake error that an exception of a job carries, if it does."""
    # A JVM that went down cannot be asked; its own exception is passed on.
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
    return error._twinlake_class if isinstance(error, SparkError) else type(error)


def _class_named(name: object) -> type[TwinlakeError]:
    found = getattr(plain, name, None) if isinstance(name, str) else None
    known = isinstance(found, type) and issubclass(found, TwinlakeError)
    return found if known and found is not None else plain.UserError


def _translated(error: Exception) -> tuple[TwinlakeError, BaseException | None] | None:
    """How an error leaves twinlake, and its cause; None for one that passes unchanged."""
    if isinstance(error, SparkError):
        return None
    if isinstance(error, TwinlakeError):
        return spark_error(error), error.__cause__
    found: TwinlakeError | None
    # Connections fail with OSErrors too: those of py4j pass unchanged.
    if isinstance(error, OSError) and error.errno in OS_ERRORS:
        found = os_error(error, "Could not use a file or folder.", {"file": error.filename})
    else:
        found = decode_error(error) or job_storage_error(error)
    return None if found is None else (spark_error(found), error)


@contextlib.contextmanager
def spark_errors() -> Iterator[None]:
    """What leaves the block as an error of twinlake leaves it as PySpark's too."""
    try:
        yield
    except Exception as error:
        translated = _translated(error)
        if translated is None:
            raise
        raise translated[0].with_traceback(error.__traceback__) from translated[1]


def raises_spark_errors(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A public function of ``twinlake.spark`` whose errors are PySpark's too."""

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with spark_errors():
            return function(*args, **kwargs)

    return call
