"""Streams: tables as the source and as the sink of Spark's Structured Streaming.

What a stream reads between two offsets is decided in modules that know neither Spark nor a store:
``offset``, ``source_options``, ``admission``, ``commit_content``, ``schema_change`` and
``file_sequence``. ``table_log`` reads the log for them, ``source`` puts them together. On top are
the doors: ``follow`` and ``into`` on native scans and writes, ``stream_reader`` (``reader`` for
rows, ``change_reader`` for a change data feed) and ``stream_writer`` for Spark's Python data
sources, which run without a session.
"""
