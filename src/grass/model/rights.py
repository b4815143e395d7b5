"""Roles: what the holder of a token may do.

Every route names the right it needs, and a role is a set of rights. Whoever calls over
the local socket is the owner of the daemon and has all of them.
"""

from enum import StrEnum


class Right(StrEnum):
    """One thing that a caller may be allowed."""

    READ = "read"
    """Look at jobs, queues, workers, output and the journal."""
    SUBMIT = "submit"
    """Enqueue jobs, and act on one's own."""
    OPERATE = "operate"
    """Act on everybody's jobs, on queues and units."""
    ADMIN = "admin"
    """Make and revoke tokens, forget workers, stop the daemon."""
    WORK = "work"
    """Run attempts, and declare the views and units of one's own machine."""


ROLES: dict[str, frozenset[Right]] = {
    "read": frozenset({Right.READ}),
    "submit": frozenset({Right.READ, Right.SUBMIT}),
    "operate": frozenset({Right.READ, Right.SUBMIT, Right.OPERATE}),
    "admin": frozenset(Right),
    "worker": frozenset({Right.WORK}),
    "machine": frozenset({Right.WORK, Right.READ, Right.SUBMIT}),
}
"""What each role may do; `machine` is what a joined machine gets unless told."""

DEFAULT_ROLE = "machine"
EVERYTHING = frozenset(Right)


def rights_of(role: str) -> frozenset[Right]:
    """Give what a role may do; a later one, unknown here, nothing."""
    return ROLES.get(role, frozenset())


def may_work(role: str) -> bool:
    """Tell whether a role is one of workers."""
    return Right.WORK in rights_of(role)
