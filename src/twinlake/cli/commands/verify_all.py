"""``twinlake verify all``: every property that must hold or break, in one report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from twinlake.cli.command import command
from twinlake.cli.json_output import JsonOutput
from twinlake.cli.verify.options import VerifyCommand
from twinlake.cli.verify.report import PARTS, VerifyReport

if TYPE_CHECKING:
    from twinlake.cli.output import Output

__all__ = ["verify_all"]


@command(table=False, cls=VerifyCommand)
@click.option("--large", is_flag=True, help="Also the configurations that take long.")
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(
        ["schedules", "iceberg", "delta", "fixes", "servers", "bounds", "code", "replays"]
    ),
    help="Only this part. Repeatable.",
)
def verify_all(output: Output, large: bool, only: tuple[str, ...]) -> None:
    """Check every model and the code, and compare with what is known.

    The published model's anomaly and its fix, every safe configuration, every mutant with its
    smallest configuration and the length of its shortest trace, the fixes compared, and the real
    code under small workloads. Exit status: 0 if every result is the expected one, 1 if not.
    """
    report = VerifyReport(large=large, only=only or PARTS)
    if isinstance(output, JsonOutput):
        for _ in report.parts():
            pass
        output.show(report.summary())
    else:
        output.show_all(report.views())
    if not report.ok:
        click.get_current_context().exit(1)


verify_all.name = "all"
