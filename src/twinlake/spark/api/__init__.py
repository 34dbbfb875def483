"""``DeltaTable`` and its builders, with the names, arguments and results of ``delta.tables``.

Checks of arguments, names of tables in the session, CREATE and REPLACE, and results as frames. What
an operation does is in ``dml``, ``maintenance`` and ``twinlake.table``.
"""
