"""Identities that must never be confused.

An attempt is named by cluster, job and number together: the cluster id is made with the
database, so a new database never takes an old keeper's job 7 for its own.
"""

import re
from typing import NamedTuple

from grass.errors import ProtocolError

_NUMBER = r"(0|[1-9][0-9]{0,17})"
_ATTEMPT = re.compile(rf"([0-9a-f]{{16}})\.{_NUMBER}\.{_NUMBER}\Z")

CLUSTER_ID_BYTES = 8


class AttemptId(NamedTuple):
    """One try to run one job of one cluster."""

    cluster: str
    job: int
    number: int

    def __str__(self) -> str:
        """Write it as it stands in a job's environment and in keeper records."""
        return f"{self.cluster}.{self.job}.{self.number}"


def attempt_id(text: str) -> AttemptId:
    """Read an attempt's name back; only what `str` writes is one."""
    found = _ATTEMPT.match(text)
    if found is None:
        raise ProtocolError(f"`{text[:60]}` is not an attempt")
    return AttemptId(found.group(1), int(found.group(2)), int(found.group(3)))
