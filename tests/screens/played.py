"""The command `grass` on a played machine, an hour after the jobs of the scenario.

The machine has 16 cores and 64 GiB, and the clock of what is printed stands still, so
that every run shows the same.
"""

import os
import sys
from datetime import datetime

CORES = 16
MEMORY_BYTES = 64 << 30


def play() -> None:
    """Have this process find the played machine, and read the played clock."""
    pages = {"SC_PHYS_PAGES": MEMORY_BYTES // 4096, "SC_PAGE_SIZE": 4096}
    told = os.sysconf
    os.sched_getaffinity = lambda _pid: set(range(CORES))
    os.sysconf = lambda name: pages.get(str(name)) or told(name)
    if "PLAYED_NOW" in os.environ:
        from grass.cli.printing import quantities

        now = datetime.fromisoformat(os.environ["PLAYED_NOW"])
        quantities.utc_now = lambda: now


if __name__ == "__main__":
    play()
    from grass.cli.main import main

    sys.exit(main())
