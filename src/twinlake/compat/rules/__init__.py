"""The checks of the rules, by what they look at.

Protocol, properties, schema, the change of a commit, its files, their footers. Which rule asks
which check is said in ``registry``.
"""
