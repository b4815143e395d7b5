"""Jobs that are hard to end: they ignore the signal, or hide from their keeper."""

from __future__ import annotations

import sys

STUBBORN = "trap '' TERM; echo ready; while :; do sleep 100; done"

_HIDE = """
import os, sys, time
if os.fork():
    {parent}
os.setsid()
if os.fork():
    os._exit(0)
os.setsid()
{clear}
print(os.getpid(), flush=True)
time.sleep(1000)
"""


def hidden(parent: str, *, without_marker: bool = False) -> tuple[str, ...]:
    """A process that leaves its parent, its session and maybe its environment."""
    again = "os.execve(sys.executable, [sys.executable, '-c', sys.argv[1]], {})"
    last = "import os, time; print(os.getpid(), flush=True); time.sleep(1000)"
    script = _HIDE.format(parent=parent, clear=again if without_marker else "")
    return (sys.executable, "-c", script, last)
