"""Every rule of the compat features as data: id, scope, reason, fix, check, profiles.

A new rule is one entry here; its check belongs to ``rules``.
"""
