"""Amazon S3, Google Cloud Storage and Azure, through obstore.

Two clients stand behind one store. Everything that may be repeated without harm goes through
one with the library's normal retries. A create goes through one that never retries: a silent
second attempt would meet our own first one and call it a conflict, so its failures come back
as ``Unknown`` and are settled by reading.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from twinlake._lazy_exports import lazy_module
from twinlake.errors import Code, StorageError, UserError
from twinlake.storage.interface import Committed, Conflict, ObjectMeta, StoreConfig, Unknown
from twinlake.storage.paths import check_key, parse_location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import obstore
    from obstore import exceptions
    from obstore import store as stores
    from obstore.store import ObjectStore as Client

    from twinlake.storage.interface import CreateOutcome
    from twinlake.storage.paths import Location
else:
    obstore = lazy_module("obstore")
    exceptions = lazy_module("obstore.exceptions")
    stores = lazy_module("obstore.store")

__all__ = ["ObjectStore"]

_DELETE_BATCH = 1000
_LIST_BATCH = 1000

#: Settings of the HTTP client; people give them beside the store's own, as other tools allow.
_CLIENT_OPTIONS = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "default_headers",
        "http1_only",
        "http2_only",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_url",
        "timeout",
        "user_agent",
    }
)

#: What the service says where the bucket, not the object, is missing.
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist", re.IGNORECASE)
_NO_ACCESS = re.compile(r"\b40[13] (?:Forbidden|Unauthorized)", re.IGNORECASE)
_QUERY = re.compile(r"\?\S*")


def _s3(location: Location, settings: Mapping[str, Any]) -> Client:
    return stores.S3Store(location.authority, **settings)


def _gcs(location: Location, settings: Mapping[str, Any]) -> Client:
    return stores.GCSStore(location.authority, **settings)


def _azure(location: Location, settings: Mapping[str, Any]) -> Client:
    container, _, host = location.authority.partition("@")
    if host:
        # abfss://container@account.dfs.core.windows.net: the account is the host's first label.
        config = {"account_name": host.partition(".")[0], **settings["config"]}
        settings = {**settings, "config": config}
    return stores.AzureStore(container, **settings)


_PROVIDERS: dict[str, Callable[[Location, Mapping[str, Any]], Client]] = {
    "s3": _s3,
    "gs": _gcs,
    "az": _azure,
    "abfss": _azure,
}


class ObjectStore:
    """A bucket or container, or a folder of one.

    ``options`` are the settings of obstore (``endpoint``, ``region``, ``access_key_id``, ...), with
    HTTP client settings such as ``allow_http`` among them; what is not given comes from the
    environment. They never show in ``url`` or ``repr``. ``create_retries`` above 0 lets the
    library repeat a create by itself; the answer ``Conflict`` then may mean our own object.
    """

    def __init__(
        self,
        url: str,
        *,
        options: Mapping[str, Any] | None = None,
        create_retries: int = 0,
    ) -> None:
        location = parse_location(url)
        if location.scheme not in _PROVIDERS:
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"{location.url} is not in an object store.",
                fix="Give a URL that starts with "
                f"{', '.join(f'{name}://' for name in _PROVIDERS)}.",
                fields={"url": location.url},
            )
        self._location = location
        self._options = dict(options or {})
        self._create_retries = create_retries
        self._prefix = f"{location.path}/" if location.path else ""
        self._siblings: dict[str, ObjectStore] = {}
        settings = _settings(self._options)
        single = {**settings, "retry_config": _retries(settings, create_retries)}
        try:
            connect = _PROVIDERS[location.scheme]
            self._client = connect(location, settings)
            self._creating = connect(location, single)
        except Exception as error:
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"{location.url} cannot be opened with these options.",
                why=_first_line(error),
                fix="Check the names and values of the options.",
                fields={"url": location.url, "options": sorted(self._options)},
            ) from error

    def __repr__(self) -> str:
        return f"ObjectStore({self.url!r})"

    def __reduce__(self) -> tuple[Callable[..., ObjectStore], tuple[Any, ...]]:
        return _rebuild, (self.url, self._options, self._create_retries)

    @property
    def url(self) -> str:
        """The root as a URL, without credentials."""
        return self._location.url

    @property
    def config(self) -> StoreConfig:
        """How to open this store in another process, secrets among it."""
        return StoreConfig(url=self.url, options=dict(self._options))

    def reopen(self, url: str) -> ObjectStore:
        """Another bucket or folder with the same settings; connections are kept for reuse."""
        sibling = self._siblings.get(url)
        if sibling is None:
            sibling = ObjectStore(url, options=self._options, create_retries=self._create_retries)
            self._siblings[url] = sibling
        return sibling

    def read(self, key: str) -> bytes:
        """The whole object."""
        path = self._prefix + check_key(key)
        try:
            return bytes(obstore.get(self._client, path).bytes())
        except Exception as error:
            raise self._failure(error, "read", key) from error

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """At most ``length`` bytes from ``start``."""
        path = self._prefix + check_key(key)
        try:
            if length > 0:
                return bytes(obstore.get_range(self._client, path, start=start, length=length))
        except Exception as error:
            failure = self._failure(error, "read", key)
            if failure.code is Code.STORAGE_NOT_FOUND or self._size(key) > start:
                raise failure from error
        else:
            self._size(key)
        # The services refuse a range that is empty or starts past the end; here it is no bytes.
        return b""

    def _size(self, key: str) -> int:
        meta = self.head(key)
        if meta is None:
            raise self._missing(key)
        return meta.size

    def head(self, key: str) -> ObjectMeta | None:
        """Size and time of one object, or None."""
        path = self._prefix + check_key(key)
        try:
            return self._meta(obstore.head(self._client, path))
        except Exception as error:
            failure = self._failure(error, "look at", key)
            if failure.code is Code.STORAGE_NOT_FOUND:
                return None
            raise failure from error

    def list_from(self, folder: str, start_after: str = "") -> Iterator[ObjectMeta]:
        """The objects below ``folder/`` after ``start_after``, ascending."""
        folder = folder.strip("/")
        below = self._prefix + (check_key(folder) if folder else "")
        return self._list(below.strip("/"), folder, start_after)

    def _list(self, below: str, folder: str, start_after: str) -> Iterator[ObjectMeta]:
        last = ""
        try:
            stream = obstore.list(
                self._client,
                below or None,
                offset=self._prefix + start_after if start_after else None,
                chunk_size=_LIST_BATCH,
            )
            for batch in stream:
                for found in batch:
                    meta = self._meta(found)
                    if meta.key <= last:
                        raise self._unsorted(folder)
                    last = meta.key
                    # A server may ignore where to start (Azurite does).
                    if meta.key > start_after:
                        yield meta
        except StorageError:
            raise
        except Exception as error:
            raise self._failure(error, "list", folder) from error

    def create(self, key: str, data: bytes) -> CreateOutcome:
        """Create the object if and only if none is there."""
        path = self._prefix + check_key(key)
        try:
            # One request, whatever the size: a multipart upload has more states to lose.
            obstore.put(self._creating, path, data, mode="create", use_multipart=False)
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
            return Conflict()
        except Exception as error:
            failure = self._failure(error, "create", key)
            refused = failure.fields["cause"] in _REFUSALS
            return Unknown(failure.why, failure if refused else None)
        return Committed()

    def put(self, key: str, *pieces: bytes | memoryview) -> None:
        """Create or replace the object."""
        path = self._prefix + check_key(key)
        try:
            obstore.put(self._client, path, b"".join(pieces))
        except Exception as error:
            raise self._failure(error, "write", key) from error

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects in batches; one that is not there counts as deleted."""
        checked = [check_key(key) for key in keys]
        for start in range(0, len(checked), _DELETE_BATCH):
            batch = checked[start : start + _DELETE_BATCH]
            try:
                obstore.delete(self._client, [self._prefix + key for key in batch])
            except Exception as error:
                failure = self._failure(error, "delete", batch[0])
                if failure.code is not Code.STORAGE_NOT_FOUND:
                    raise failure from error
                self._delete_singly(batch)

    def _delete_singly(self, keys: Iterable[str]) -> None:
        # One missing object fails a batch of Azure, and a service without batches stops at it.
        for key in keys:
            try:
                obstore.delete(self._client, self._prefix + key)
            except Exception as error:
                failure = self._failure(error, "delete", key)
                if failure.code is not Code.STORAGE_NOT_FOUND:
                    raise failure from error

    # Within

    def _meta(self, found: Any) -> ObjectMeta:
        modified = int(found["last_modified"].timestamp() * 1000)
        key = found["path"][len(self._prefix) :]
        # Azure quotes the tag in the reply to a head, and not in a listing.
        e_tag = found["e_tag"]
        return ObjectMeta(key, found["size"], modified, e_tag.strip('"') if e_tag else None)

    def _missing(self, key: str) -> StorageError:
        return StorageError(
            Code.STORAGE_NOT_FOUND,
            f"There is no {key!r} in {self.url}.",
            why="the object does not exist",
            fix="Check the path; a cleanup may have deleted the object.",
            fields={"key": key, "store": self.url, "cause": "missing"},
        )

    def _unsorted(self, folder: str) -> StorageError:
        return StorageError(
            Code.STORAGE,
            f"The listing of {folder!r} in {self.url} is not in ascending order.",
            why="a log can only be followed in order; S3 directory buckets list unsorted",
            fix="Keep the table in a general purpose bucket.",
            fields={"key": folder, "store": self.url, "cause": "unsorted"},
        )

    def _failure(self, error: Exception, verb: str, key: str) -> StorageError:
        text = str(error)
        cause = _cause(error, text)
        if cause == "missing":
            return self._missing(key)
        fix = _FIXES[cause]
        return StorageError(
            Code.STORAGE,
            f"Could not {verb} {key!r} in {self.url}.",
            why=_first_line(error),
            fix=fix,
            fields={"key": key, "store": self.url, "cause": cause},
        )


_FIXES: dict[str, str] = {
    "bucket": "Create the bucket or container, or correct its name.",
    "access": "Check the credentials and what they may do in this bucket or container.",
    "unsupported": "Use a store with conditional writes, and leave them switched on.",
    "name": "Rename the object: the service cannot hold this name.",
    "failure": "Check endpoint, region and network, then try again.",
}

#: Causes for which the service, or the client before it, clearly did nothing.
_REFUSALS = frozenset({"bucket", "access", "unsupported", "name"})


def _cause(error: Exception, text: str) -> str:
    if _NO_BUCKET.search(text):
        return "bucket"
    if isinstance(error, FileNotFoundError | exceptions.NotFoundError):
        return "missing"
    if isinstance(error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError):
        return "access"
    if isinstance(error, exceptions.NotSupportedError | NotImplementedError):
        return "unsupported"
    if isinstance(error, exceptions.InvalidPathError | ValueError):
        return "name"
    return "access" if _NO_ACCESS.search(text) else "failure"


def _first_line(error: Exception) -> str:
    """The library's message without its debug dump, and without query strings, which may sign."""
    line = str(error).strip().partition("\n")[0]
    return _QUERY.sub("?…", line)[:400]


def _settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as the library takes them: its own config, the HTTP client's, the retries'."""
    config: dict[str, Any] = {}
    client: dict[str, Any] = dict(options.get("client_options") or {})
    settings: dict[str, Any] = {"config": config}
    for name, value in options.items():
        bare = re.sub(r"^(?:aws|google|azure)_", "", name.lower())
        if name in ("retry_config", "credential_provider"):
            settings[name] = value
        elif bare in _CLIENT_OPTIONS:
            client[bare] = value
        elif name != "client_options":
            config[name] = value
    # Given at all they stand for those of the environment, AWS_ALLOW_HTTP among them.
    if client:
        settings["client_options"] = client
    return settings


def _retries(settings: Mapping[str, Any], create_retries: int) -> dict[str, Any]:
    return {**(settings.get("retry_config") or {}), "max_retries": create_retries}


def _rebuild(url: str, options: Mapping[str, Any], create_retries: int) -> ObjectStore:
    return ObjectStore(url, options=options, create_retries=create_retries)
