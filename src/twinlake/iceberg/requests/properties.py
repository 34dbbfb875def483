"""Table properties that an Iceberg client sets, as the configuration of the Delta table.

A client's property is kept under the prefix that Delta has for it. What the Iceberg metadata states
by itself is not for clients to set; sending it as it is changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.protocol import ICEBERG_PREFIX, is_reserved_for_iceberg, keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["PropertyChange", "change_properties"]

_CLIENT_KEYS: Final = frozenset({keys.ICEBERG_POSITION_DELETES})
"""Properties of twinlake's own that a client may set; they are not shown among Iceberg's."""

_FOLLOWS_SCHEMA: Final = "schema.name-mapping.default"
"""Clients send it with every change of the schema; it follows from the schema here, and no file
of the table needs it, since all have ids."""

PropertyChange = tuple[dict[str, str], list[str]]
"""A configuration, and why parts of the change are refused."""


def change_properties(
    configuration: Mapping[str, str],
    shown: Mapping[str, str],
    updates: Mapping[str, str],
    removals: Iterable[str],
) -> PropertyChange:
    """The configuration after a client's change; ``shown`` is what the Iceberg metadata says.

    >>> change_properties({}, {"gc.enabled": "false"}, {"owner": "ann", "gc.enabled": "true"}, ())
    ({'delta.universalFormat.config.iceberg.owner': 'ann'}, \
['property gc.enabled is said by the Iceberg metadata itself'])
    """
    changed, problems = dict(configuration), list[str]()
    for name, value in updates.items():
        if name in _CLIENT_KEYS:
            changed[name] = value
        elif name == _FOLLOWS_SCHEMA or shown.get(name) == value:
            continue
        elif not is_reserved_for_iceberg(name):
            changed[f"{ICEBERG_PREFIX}{name}"] = value
        else:
            problems.append(f"property {name} is said by the Iceberg metadata itself")
    for name in removals:
        if name in _CLIENT_KEYS:
            changed.pop(name, None)
        elif not is_reserved_for_iceberg(name):
            changed.pop(f"{ICEBERG_PREFIX}{name}", None)
        elif name in shown:
            problems.append(f"property {name} is said by the Iceberg metadata itself")
    return changed, problems
