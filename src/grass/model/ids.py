"""Identities: of an attempt, and of a call that may be sent again.

An attempt is identified by cluster, job and number together: the cluster id is made
with the database, so a new database never takes an old keeper's job 7 for its own.

An idempotency key begins with the second in which it was made, in hexadecimal, and a
dash. Memory has the replies to calls of the last minutes; only for an older key, or one
without a stamp, the store is read. The stamp is of the caller's clock: a wrong one
costs a read of the store, never a second job.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from grass.errors import ProtocolError

_NUMBER = r"(0|[1-9][0-9]{0,17})"
_ATTEMPT = re.compile(rf"([0-9a-f]{{16}})\.{_NUMBER}\.{_NUMBER}\Z")

CLUSTER_ID_BYTES = 8
FRESH_S = 240
AHEAD_S = 5
"""How far a caller's clock may be ahead before its stamps are ignored."""


class AttemptId(NamedTuple):
    """One try to run one job of one cluster."""

    cluster: str
    job: int
    number: int

    def __str__(self) -> str:
        """Return it as in a job's environment and in keeper records."""
        return f"{self.cluster}.{self.job}.{self.number}"


@lru_cache(maxsize=256)
def attempt_id(text: str) -> AttemptId:
    """Parse what `str` of an `AttemptId` writes; anything else is refused.

    Several steps ask for the same message's attempt, so the last ones are cached.
    """
    found = _ATTEMPT.match(text)
    if found is None:
        raise ProtocolError(f"`{text[:60]}` is not an attempt")
    return AttemptId(found.group(1), int(found.group(2)), int(found.group(3)))


def is_fresh(key: str, now_s: float) -> bool:
    """Return whether a key is so recent that memory has its reply, if there is one."""
    stamp, dash, _ = key.partition("-")
    try:
        made_s = int(stamp, 16) if dash else 0
    except ValueError:
        return False
    return now_s - FRESH_S <= made_s <= now_s + AHEAD_S
