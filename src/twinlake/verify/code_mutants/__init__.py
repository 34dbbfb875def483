"""Mistakes put into the shipped code, each of which the explorer has to find.

Here belong the mistakes as data. Those of abstract models belong beside the models.
"""

from twinlake.verify.code_mutants.server_mutants import SERVER_MUTANTS, ServerMutant

__all__ = ["SERVER_MUTANTS", "ServerMutant"]
