"""What is done to a table without moving rows, one module an operation.

An operation takes a snapshot and makes a commit. What a person sees of a table belongs beside
``Table``, names to ``catalog``.
"""
