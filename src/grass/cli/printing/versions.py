"""Telling a person that the daemon is of another version than the command.

Both understand each other as far as they can. A daemon that was started before an
upgrade runs on with the code it has; a restart brings the two together.
"""

from __future__ import annotations

from grass import __version__
from grass.cli.printing.streams import warn

NOT_TOLD = ("start", "stop", "restart", "daemon", "completion")
"""Commands that are about the difference, or have nothing to do with a daemon."""


def tell(command: str, daemon: str, peer: str = "the daemon") -> None:
    """Warn, unless the command is one that need not know."""
    if daemon == __version__ or command in NOT_TOLD:
        return
    here = peer == "the daemon"
    step = "`grass restart` brings them together; jobs run on"
    step = step if here else "give both machines the same version"
    warn(f"{peer} is {daemon}, this command {__version__} ({step})")
