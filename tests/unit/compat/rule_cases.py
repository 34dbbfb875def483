"""All cases of all rules, and the tables on which rules of two compat features meet."""

from __future__ import annotations

from tests.unit.compat.rule_cases_base import base_cases
from tests.unit.compat.rule_cases_files import file_cases
from tests.unit.compat.rule_cases_readings import reading_cases
from tests.unit.compat.rule_cases_writer import writer_cases
from tests.unit.compat.rule_tables import MODE, PREFIXES, RuleCase, protocol_for, struct, table
from twinlake.compat import Subject
from twinlake.protocol import Protocol
from twinlake.schema import BYTE, LONG, VARIANT, VOID, Array, Geometry, Interval

__all__ = ["CASES", "TOLD_ONCE"]

CASES: tuple[RuleCase, ...] = (*base_cases(), *writer_cases(), *file_cases(), *reading_cases())


def _told_once(prefix: str) -> dict[str, tuple[Subject, list[str]]]:
    listed = protocol_for(PREFIXES[prefix]).writer_features or frozenset()
    base = PREFIXES[{"IWC1": "ICV2", "IWC3": "ICV3"}[prefix]]
    tables = {
        "mode none": (table(prefix, config={MODE: "none"}), ["IWC-05"]),
        "mode name": (table(prefix, config={MODE: "name"}), ["IWC-05"]),
        "readers not told": (table(prefix, protocol=Protocol(1, 7, None, listed)), ["IWC-01"]),
        "writers not told": (
            table(prefix, protocol=Protocol(2, 7, None, listed - {"columnMapping"})),
            ["ICV-02"],
        ),
        "base not listed": (table(prefix, without=[base.feature]), ["IWC-03"]),
        "void": (table(prefix, struct(a=VOID)), ["IWC-08"]),
        "interval": (table(prefix, struct(a=Interval("day", "day"))), ["IWC-08"]),
        "byte": (table(prefix, struct(a=BYTE)), ["IWC-07"]),
        "collations": (table(prefix, add=["collations"]), ["IWC-17"]),
        "unknown feature": (table(prefix, add=["fromTheFuture"]), ["IWC-10"]),
        "void partition": (
            table(prefix, struct(a=VOID), partitions=["a"]),
            ["IWC-08", "ICV-08"],
        ),
        "no mapping": (
            table(prefix, struct(l=Array(LONG)), raw=True),
            ["IWC-06", "ICV-13", "ICV-13"],
        ),
    }
    if prefix == "IWC1":
        tables |= {
            "legacy": (
                table(prefix, protocol=Protocol(2, 5)),
                ["IWC-02", "IWC-03", "IWC-03"],
            ),
            "variant": (table(prefix, struct(a=VARIANT)), ["IWC-08"]),
            "shape": (table(prefix, struct(a=Geometry())), ["IWC-08"]),
        }
    else:
        tables["legacy"] = (
            table(prefix, protocol=Protocol(2, 5)),
            ["IWC-02", "IWC-03", "IWC-03", "ICV-18"],
        )
    return {
        f"{prefix} {name}": (
            subject,
            [rule.replace("IWC", prefix).replace("ICV-", f"{base.prefix}-") for rule in rules],
        )
        for name, (subject, rules) in tables.items()
    }


TOLD_ONCE: dict[str, tuple[Subject, list[str]]] = {**_told_once("IWC1"), **_told_once("IWC3")}
"""A table, and all rules that are reported of it."""
