"""Races for one key between real processes, released by a barrier at every key."""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from multiprocessing.connection import Connection
    from multiprocessing.synchronize import Barrier

_BARRIER_SECONDS = 60.0

Create = Callable[[str, bytes], bool]
"""Tries to create a key; True if this call won."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceResult:
    """Who won each key, by client number."""

    winners: Mapping[str, tuple[int, ...]]

    @property
    def unfair(self) -> dict[str, tuple[int, ...]]:
        """The keys that have not exactly one winner."""
        return {key: won for key, won in self.winners.items() if len(won) != 1}


def body_of(client: int, size: int) -> bytes:
    """What a client writes: it tells who wrote it."""
    return f"client {client:03d} ".encode().ljust(size, b".")


def through_store(url: str, options: Mapping[str, Any], durable: bool) -> Create:
    """Create through our own store."""
    from twinlake.storage import Committed, open_store

    store = open_store(url, options=options, durable=durable)
    return lambda key, data: isinstance(store.create(key, data), Committed)


def through_library(url: str, options: Mapping[str, Any], durable: bool) -> Create:
    """Create with the bare library: judges the server without our code in between."""
    del durable
    import obstore
    from obstore.store import AzureStore, S3Store

    scheme, _, path = url.partition("://")
    config: Any = {name: value for name, value in options.items() if name != "allow_http"}
    service: Any = {"s3": S3Store, "az": AzureStore}[scheme]
    client = service(
        path.partition("/")[0],
        config=config,
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )

    def create(key: str, data: bytes) -> bool:
        try:
            obstore.put(client, key, data, mode="create", use_multipart=False)
        except Exception:
            return False
        return True

    return create


def race(
    connect: Callable[[str, Mapping[str, Any], bool], Create],
    url: str,
    *,
    options: Mapping[str, Any] | None = None,
    durable: bool = False,
    clients: int = 8,
    keys: int = 50,
    size: int = 2000,
    prefix: str = "race",
) -> RaceResult:
    """Let processes race for keys; ``connect`` must be a function of a module (it is pickled)."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(clients)
    names = [f"{prefix}/{number:020d}.json" for number in range(keys)]
    winners: dict[str, tuple[int, ...]] = dict.fromkeys(names, ())
    ends: list[Connection] = []
    processes = []
    for client in range(clients):
        receiving, sending = context.Pipe(duplex=False)
        process = context.Process(
            target=_run,
            args=(
                connect,
                url,
                dict(options or {}),
                durable,
                client,
                names,
                size,
                barrier,
                sending,
            ),
            daemon=True,
        )
        process.start()
        sending.close()
        ends.append(receiving)
        processes.append(process)
    try:
        for client, receiving in enumerate(ends):
            answer = receiving.recv() if receiving.poll(120) else "no answer in time"
            if isinstance(answer, str):
                raise RuntimeError(f"client {client} failed: {answer}")
            for key in answer:
                winners[key] = (*winners[key], client)
    finally:
        for process in processes:
            process.join(10)
            if process.is_alive():
                process.kill()
                process.join()
        for receiving in ends:
            receiving.close()
    return RaceResult(winners=winners)


def _run(
    connect: Callable[[str, Mapping[str, Any], bool], Create],
    url: str,
    options: Mapping[str, Any],
    durable: bool,
    client: int,
    names: list[str],
    size: int,
    barrier: Barrier,
    sending: Connection,
) -> None:
    won: list[str] = []
    try:
        create = connect(url, options, durable)
        data = body_of(client, size)
        for name in names:
            barrier.wait(_BARRIER_SECONDS)
            if create(name, data):
                won.append(name)
        sending.send(won)
    except BaseException as error:
        # The others would wait for this client at the next key.
        barrier.abort()
        with contextlib.suppress(OSError):
            sending.send(f"{type(error).__name__}: {error}")
        raise
    finally:
        sending.close()
