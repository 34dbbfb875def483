"""Deliberate mistakes of servers and clients, each of which must be caught."""

from __future__ import annotations

#: A lost race is met by putting the next version without checking the requirements again.
RETRIES_PUT = "retries-put"
#: Requirements are checked against the version that the server loaded for the request before.
CACHED_VIEW = "cached-view"
#: A server numbers the snapshots that it shows by a counter of its own.
LOCAL_IDS = "local-ids"
#: Every delete file becomes a vector, of which a Delta reader uses the last.
TWO_VECTORS = "two-vectors"
#: Servers ignore idempotency keys.
NO_KEY = "no-key"
#: A key is looked up when the request comes, but not again after a lost race.
FORGETS_KEY = "forgets-key"
#: A client that has no answer starts over as if nothing had happened.
RESENDS = "resends"
#: A client that does not find its snapshot says that the commit has failed.
UNKNOWN_IS_FAILURE = "unknown-is-failure"
#: A server that does not know whether its put took effect answers that the commit has failed.
SERVER_GIVES_UP = "server-gives-up"
#: A commit that can never pass is refused as a conflict, which asks the client to try again.
REFUSES_AS_CONFLICT = "refuses-as-conflict"
