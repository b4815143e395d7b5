"""What a daemon that changes its broker leaves behind: jobs of the broker before.

They go on under the keeper, which knows them by their cluster, whether a daemon runs or
not. Their broker hears how they ended when this machine works for it again.
"""

from __future__ import annotations

import json
import os

from grass.cli.hosting_options import employer_of
from grass.cli.printing import counted, warn
from grass.client.credentials import Credentials
from grass.config import home
from grass.keeper.launch import connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

ANSWER_S = 3.0
OWN = "this machine's own queue"


def tell_of_others(words: Sequence[str]) -> None:
    """Say in one line which jobs here the next daemon does not report to anybody."""
    found = _others(words)
    if not found:
        return
    whose = " and ".join(dict.fromkeys(found))
    go, they_are = ("goes", "it is") if len(found) == 1 else ("go", "they are")
    warn(
        f"{counted(len(found), 'unfinished job')} of {whose} {go} on here;"
        f" {they_are} reported when this machine works there again"
    )


def _others(words: Sequence[str]) -> list[str]:
    """Name for each job that runs here whose it is, unless the next daemon's."""
    names = {
        known.cluster: f"the broker at {known.place}"
        for known in Credentials.load(home()).all
    }
    works_for = employer_of(words)
    clusters = _running()
    if works_for is not None:
        clusters = [one for one in clusters if one != works_for.known.cluster]
        if os.path.exists(home().database):
            # Not of a broker that was joined, so of the one that was here.
            return [names.get(one, OWN) for one in clusters]
    return [names[one] for one in clusters if one in names]


def _running() -> list[str]:
    """Ask the keeper for the clusters of all attempts that have not ended."""
    try:
        with connect(home().keeper) as channel:
            channel.settimeout(ANSWER_S)
            channel.sendall(b'{"v":"hello"}\n')
            with channel.makefile("rb") as lines:
                told = json.loads(lines.readline())
    except (OSError, ValueError):
        # There is none, so nothing runs; or it is busy, and this is only a word more.
        return []
    listed = told.get("attempts") or []
    return [one["id"].partition(".")[0] for one in listed if one["state"] != "exited"]
