"""What one round changes: what to commit, and what to do once that is durable."""

import msgspec

from grass.broker.core.pools.pool_memory import PoolEffect
from grass.link.messages import Forget, ToWorker
from grass.log_lines import LogEvent
from grass.model.jobs.job import Job
from grass.model.worker import GpuNotice
from grass.store.changes import Changes


class Batch(msgspec.Struct):
    """Commit the changes first, then do the rest."""

    changes: Changes = msgspec.field(default_factory=Changes)
    outbox: list[tuple[str, ToWorker]] = []
    """Messages, each with the worker that gets it."""
    moved: set[int] = set()
    """Jobs whose state or attempt changed: callers that wait for one look again."""
    ended: list[Job] = []
    """Jobs that ended."""
    gpu_notices: list[GpuNotice] = []
    """GPUs that failed or work again."""
    engine_effects: list[PoolEffect] = []
    """What engines are asked for."""
    log_events: list[LogEvent] = []
    urgent: bool = False
    """Whether a caller or a worker was promised something of this."""

    @property
    def quiet(self) -> bool:
        """Tell whether the commit may be deferred."""
        return not self.urgent and not self.outbox

    def send(self, worker: str, message: ToWorker) -> None:
        """Send a message once this batch is committed."""
        self.outbox.append((worker, message))

    def send_forget(self, worker: str, attempt: str) -> None:
        """Have a worker forget an exit, with others in one message.

        Only with those right before it: what was sent in between stays in its order.
        """
        last, message = self.outbox[-1] if self.outbox else ("", None)
        if last == worker and isinstance(message, Forget):
            message.attempts.append(attempt)
        else:
            self.send(worker, Forget([attempt]))

    def log(self, name: str, **fields: object) -> None:
        """Log an event once this batch is committed."""
        self.log_events.append(LogEvent(name, fields))
