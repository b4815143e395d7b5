"""How a job is ended: by which signal, and how long before it is killed."""

from __future__ import annotations

from grass.cli.parsing.job_options import duration
from grass.cli.parsing.options import Option, Values
from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.client.json_codec import Document

HOW_TO_END = (
    Option("--now", about="with SIGKILL, without grace"),
    Option("--signal", "NAME", "begin with this signal (default: TERM)"),
    Option("--grace", "TIME", "how long after it comes SIGKILL: 30s, 2m"),
)
_TERMINATE, _KILL = 15, 9


def _number(text: str) -> int:
    from grass.model.jobs.signals import signal_number

    return signal_number(text)


def signal_and_grace(values: Values) -> Document:
    """Return how jobs are ended, as arguments of `Client.cancel`."""
    signal, grace_s = values.text("signal"), duration(values, "grace")
    if not values.has("now"):
        number = _TERMINATE if signal is None else _number(signal)
        return {"grace_s": grace_s, "signal": number}
    if signal is not None or grace_s is not None:
        other = "--grace" if signal is None else "--signal"
        raise UsageError(f"--now sends SIGKILL at once: {other} has no effect then")
    return {"grace_s": 0.0, "signal": _KILL}
