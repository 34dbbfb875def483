"""Operations that change rows: write, overwrite, DELETE, UPDATE and, in ``merge``, MERGE.

Each finds the rows it is about, writes files and commits. Operations that rewrite files and leave
rows as they are belong in ``maintenance``; the methods of ``DeltaTable`` are in ``api``.
"""
