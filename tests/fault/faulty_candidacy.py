"""A real daemon whose broker fails to ask for the lead when the test says so.

`python -m tests.fault.faulty_candidacy HOME URL METHOD` serves in the foreground. While
the file `HOME/fault` exists, the method of the candidacy raises.
"""

import sys
from pathlib import Path
from typing import Any

from grass.broker.core.leadership import Leadership
from grass.broker.shell.candidacy import Candidacy
from grass.config import Home
from grass.daemon.hosting import Hosting
from grass.daemon.run_daemon import run_daemon

METHODS = {"step": Leadership, "_take": Candidacy}


def main(folder: str, url: str, name: str) -> int:
    """Serve like `grass daemon --no-worker --store URL`."""
    owner: Any = METHODS[name]
    real = getattr(owner, name)

    def failing(*values: Any) -> Any:
        if Path(folder, "fault").exists():
            raise RuntimeError("planted")
        return real(*values)

    setattr(owner, name, failing)
    hosting = Hosting(has_worker=False, store=url)
    return run_daemon(Home(folder), hosting, ready=None, foreground=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
