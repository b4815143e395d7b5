"""Other daemons on this machine, of other users.

Each daemon binds an abstract socket whose name says who it is and on which it never
reads: every user sees such names in /proc/net/unix, and they vanish with the process.
Nothing is decided by them; they only make a warning possible.
"""

import os
import re
import socket

_NAME = re.compile(r"@grass-daemon/(\d+)/(\d+)$")

_announced: list[socket.socket] = []


def other_daemons() -> list[tuple[str, str]]:
    """Return uid and pid of each daemon that belongs to somebody else."""
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
            found = [_NAME.search(line.rstrip()) for line in file]
    except OSError:
        return []
    names = {(one.group(1), one.group(2)) for one in found if one}
    return sorted(name for name in names if name[0] != str(os.geteuid()))


def announce() -> None:
    """Let daemons that start later know of this one."""
    mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    name = f"\0grass-daemon/{os.geteuid()}/{os.getpid()}"
    try:
        mark.bind(name)
    except OSError:
        mark.close()
    else:
        _announced.append(mark)
