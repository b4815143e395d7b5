"""The kinds of events in the journal."""

from typing import Literal, get_args

Kind = Literal[
    "cancelled",
    "continued",
    "drained",
    "edited",
    "enqueued",
    "finished",
    "held",
    "machine-joined",
    "paused",
    "pruned",
    "queue-created",
    "queue-deleted",
    "queue-edited",
    "released",
    "requeued",
    "rerun",
    "resumed",
    "retried",
    "returned",
    "signalled",
    "started",
    "suspended",
    "token-created",
    "token-revoked",
    "undrained",
    "unit-removed",
    "units-added",
    "worker-able",
    "worker-connected",
    "worker-disconnected",
    "worker-forgotten",
    "worker-unable",
]
KINDS: tuple[str, ...] = get_args(Kind)
