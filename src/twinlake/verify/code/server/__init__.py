"""Servers that turn the commits of Iceberg clients into Delta commits, as the explorer runs them.

Here belong the client, what it does, the properties of what it was answered, and the mistakes of
servers that these have to find. The server itself is the shipped one.
"""

from twinlake.verify.code.server.exchange_properties import check_exchanges
from twinlake.verify.code.server.server_workloads import SERVER_SETUPS, server_workloads

__all__ = ["SERVER_SETUPS", "check_exchanges", "server_workloads"]
