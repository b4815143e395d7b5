"""Every exception Grass raises on purpose.

One root, `GrassError`; each leaf has a stable `code` for the wire, the exit code a
shell sees and the HTTP status a program sees. A message names the thing and is one
line (JSON5 errors add the line and a caret); `hint` is the next step. The client turns
a problem document back into the same class, so both ends speak of one error.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


class GrassError(Exception):
    """Something the user can act on; printed as one line, never as a traceback."""

    code = "error"
    exit_code = 1
    status = 500
    field = ""
    """The field of a request that it is about; empty: none, or several."""
    job: int | None = None
    """Which job of a request, or row of parameters, it is about; from 1."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def reworded(self, message: str) -> "Self":
        """Return the same error with another message."""
        other = type(self)(message, self.hint)
        other.field, other.job = self.field, self.job
        return other

    def __str__(self) -> str:
        """Give message and hint as one text."""
        return f"{self.message} ({self.hint})" if self.hint else self.message


class UsageError(GrassError):
    """The call itself is malformed: a wrong flag, a broken value, bad JSON5."""

    code = "usage"
    exit_code = 2
    status = 400


class TooLarge(UsageError):
    """More was sent than is read; what is left of it is not waited for."""

    code = "too-large"
    status = 413


class NoDaemon(GrassError):
    """No daemon answers and none may be started."""

    code = "no-daemon"
    exit_code = 3
    status = 503


class NoAnswer(NoDaemon):
    """A daemon or broker is there and does not answer."""

    code = "no-answer"


class NoBroker(NoDaemon):
    """The broker of another machine cannot be reached."""

    code = "no-broker"


class Unreachable(GrassError):
    """The worker that holds what was asked for cannot be reached."""

    code = "unreachable"
    exit_code = 3
    status = 503


class EngineRefusal(GrassError):
    """An engine said no; its words are the message."""

    code = "engine-refused"
    exit_code = 5
    status = 409


class CannotAsk(GrassError):
    """An engine could not be asked, or did not answer in time."""

    code = "engine-unreachable"
    exit_code = 3
    status = 503


class Untrusted(GrassError):
    """The peer does not prove to be the broker that was asked for."""

    code = "untrusted"
    exit_code = 3
    status = 502


class NotFound(GrassError):
    """A job, queue, worker or program that was named does not exist."""

    code = "not-found"
    exit_code = 4
    status = 404


class Refused(GrassError):
    """The call is well formed but not allowed in the present state."""

    code = "refused"
    exit_code = 5
    status = 409


class BrokerInUse(Refused):
    """Another process is this broker: one of the two homes is a copy."""

    seen_s = 0.0
    """How long ago that process was announced."""


class MissingBlob(Refused):
    """A call names bytes that are not there, or not any more; upload them again."""

    code = "missing-blob"


class NoResult(Refused):
    """A job has no result: not yet, or never, or it was removed."""

    code = "no-result"


class Forbidden(Refused):
    """The caller may not do this."""

    code = "forbidden"
    status = 403


class Unauthorized(Refused):
    """The caller showed no token, or one that does not count."""

    code = "unauthorized"
    status = 401


class NeverFits(GrassError):
    """A request that no known worker of the queue could ever meet."""

    code = "never-fits"
    exit_code = 6
    status = 422


class TimedOut(GrassError):
    """The caller's own deadline passed."""

    code = "timed-out"
    exit_code = 7
    status = 408


class StorageError(GrassError):
    """The store could not commit; nothing of the call took effect."""

    code = "storage"
    status = 507


class LeadLost(StorageError):
    """Another broker leads; nothing was written."""

    code = "lead-lost"
    exit_code = 3
    status = 503
    leader = ""
    """The address of the broker that leads; empty: not known."""


class NoDatabase(StorageError):
    """The database cannot be reached, or cannot be used."""

    may_return = False
    """Whether nothing is wrong but that it does not answer now."""
    code = "no-database"
    exit_code = 3
    status = 503


class CommitInDoubt(NoDatabase):
    """The database went away during the commit, which may have been done."""

    code = "commit-in-doubt"


class DiskFull(StorageError):
    """The store has no room for more; what makes room is still taken."""

    code = "disk-full"


class Busy(GrassError):
    """More calls wait than the broker takes; the caller may try again."""

    code = "busy"
    status = 503


class Stopping(GrassError):
    """The daemon is about to stop; another one will know the answer."""

    code = "stopping"
    status = 503


class InvalidTransition(GrassError):
    """A state change that the lifecycle tables do not know: a defect of ours."""

    code = "invalid-transition"


class ProtocolError(GrassError):
    """The other side of a link, socket or pipe sent what it must not send."""

    code = "protocol"
    status = 400


class About:
    """A block whose errors are about one field of a request."""

    def __init__(self, field: str) -> None:
        self._field = field

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, _kind: object, error: object, _traceback: object) -> None:
        """Note the field, unless the error names one already."""
        if isinstance(error, GrassError) and not error.field:
            error.field = self._field


def error_classes() -> dict[str, type[GrassError]]:
    """Return every error by its wire code."""
    leaves: list[type[GrassError]] = [GrassError, *_descendants(GrassError)]
    return {leaf.code: leaf for leaf in leaves}


def _descendants(parent: type[GrassError]) -> list[type[GrassError]]:
    found = list(parent.__subclasses__())
    return found + [leaf for child in found for leaf in _descendants(child)]
