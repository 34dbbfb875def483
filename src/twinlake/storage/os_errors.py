"""Errors of the operating system as errors of a store: why it happened and how to mend it."""

from __future__ import annotations

import contextlib
import errno
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["OS_ERRORS", "os_error", "os_errors"]

#: errno -> (why, how to mend it)
OS_ERRORS: Final[Mapping[int, tuple[str, str]]] = {
    errno.ENOSPC: ("the disk is full", "Free some space, then run the operation again."),
    errno.EDQUOT: ("the disk quota is used up", "Free some space or raise the quota."),
    errno.EFBIG: (
        "the file is larger than this process or the file system may make it",
        "Raise the limit of the process, or use another file system.",
    ),
    errno.EACCES: ("permission denied", "Give this user access to the folder."),
    errno.EPERM: (
        "the operation is not permitted",
        "Give this user access, and use a file system that has hard links.",
    ),
    errno.EROFS: ("the file system is read-only", "Mount it writable or use another place."),
    errno.EMFILE: ("too many open files", "Close files or raise the limit (`ulimit -n`)."),
    errno.ENFILE: ("too many open files on this machine", "Close files or raise the limit."),
    errno.ENAMETOOLONG: ("the name is too long for the file system", "Use shorter names."),
    errno.ENOTDIR: ("a folder of the path is a file", "Move that file away."),
    errno.EISDIR: ("a folder has this name", "Move that folder away."),
    errno.ELOOP: ("too many symbolic links", "Mend the links in the path."),
    errno.EOPNOTSUPP: (
        "the file system has no hard links",
        "Use one that has, or an object store.",
    ),
    errno.EXDEV: (
        "the file system has no hard links here",
        "Use one that has, or an object store.",
    ),
    errno.EMLINK: ("too many hard links", "Use another file system."),
    errno.EIO: ("the disk reported an input/output error", "Check the disk."),
    errno.ESTALE: ("the network file handle is stale", "Mount the file system again."),
}


def os_error(error: OSError, what: str, fields: Mapping[str, Any]) -> StorageError:
    """The error of a store for one of the operating system.

    >>> print(os_error(OSError(errno.ENOSPC, "No space"), "Could not write 'x'.", {}))
    TWIN-STORAGE  Could not write 'x'.
      why: the disk is full
      fix: Free some space, then run the operation again.
    """
    number = error.errno or 0
    why, fix = OS_ERRORS.get(number, (error.strerror or str(error), "Check the disk and the path."))
    named = {**fields, "errno": errno.errorcode.get(number, str(number))}
    return StorageError(Code.STORAGE, what, why=why, fix=fix, fields=named)


@contextlib.contextmanager
def os_errors(what: str, store: str) -> Iterator[None]:
    """Around calls that use files of a store by their paths, past the store itself."""
    try:
        yield
    except OSError as error:
        raise os_error(error, what, {"store": store}) from error
