"""The commands, in the order in which help lists them."""

from twinlake.cli.commands.alter import alter
from twinlake.cli.commands.check import check
from twinlake.cli.commands.demo import demo
from twinlake.cli.commands.diff import diff
from twinlake.cli.commands.features import features
from twinlake.cli.commands.files import files
from twinlake.cli.commands.history import history
from twinlake.cli.commands.import_ import import_command
from twinlake.cli.commands.log import log
from twinlake.cli.commands.optimize import optimize
from twinlake.cli.commands.reorg import reorg
from twinlake.cli.commands.restore import restore
from twinlake.cli.commands.show import show
from twinlake.cli.commands.sync import sync
from twinlake.cli.commands.upgrade import upgrade
from twinlake.cli.commands.vacuum import vacuum
from twinlake.cli.commands.verify import verify
from twinlake.cli.commands.verify_twin import verify_twin

__all__ = ["COMMANDS"]

COMMANDS = (
    show,
    history,
    files,
    features,
    check,
    upgrade,
    diff,
    log,
    alter,
    restore,
    optimize,
    reorg,
    vacuum,
    sync,
    verify_twin,
    import_command,
    verify,
    demo,
)
