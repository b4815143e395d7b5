"""Whether a request could be met at all, be everything free; and if not, why.

What is held, drained or away does not count here: that passes.
"""

from grass.model.amounts import decimal_text
from grass.model.resources import Request, request_text
from grass.scheduler.placement import fits_when_empty
from grass.scheduler.worker import Worker


def never_fits(
    serving: list[Worker],
    queue: str,
    request: Request,
    labels: frozenset[str],
    *,
    pinned: bool = False,
) -> str | None:
    """Say with numbers why none of these workers could meet a request when empty."""
    if not serving:
        return None
    labelled = [worker for worker in serving if labels <= worker.labels]
    if not labelled:
        wanted = ", ".join(f"`{label}`" for label in sorted(labels))
        nobody = "the worker that it is pinned to does not have"
        return f"{nobody if pinned else f'no worker of queue `{queue}` has'} {wanted}"
    if any(fits_when_empty(worker, queue, request) for worker in labelled):
        return None
    for kind, asked in request:
        most = max(_total(worker, queue, kind) for worker in labelled)
        if not most:
            return f"queue `{queue}` has no {kind}; {_kinds(labelled, queue)}"
        if asked > most:
            has = decimal_text(most)
            text = f"{kind}: asked {decimal_text(asked)}, the most any worker of queue"
            return f"{text} `{queue}` has is {has}"
    return f"no worker of queue `{queue}` has {request_text(request)} together"


def too_small(worker: Worker, queue: str, request: Request) -> str:
    """Say with numbers why a worker could not meet a request, even when empty."""
    for kind, asked in request:
        total = _total(worker, queue, kind)
        if asked > total:
            has = f"has {decimal_text(total)}" if total else "has none"
            return f"needs {kind} {decimal_text(asked)}, {has}"
    return f"does not have {request_text(request)} together"


def _kinds(workers: list[Worker], queue: str) -> str:
    kinds = sorted(
        {
            kind
            for each in workers
            for kind, stock in each.stocks_for(queue).items()
            if stock.total
        }
    )
    return f"it has {', '.join(kinds)}" if kinds else "it has nothing"


def _total(worker: Worker, queue: str, kind: str) -> int:
    stock = worker.stocks_for(queue).get(kind)
    return 0 if stock is None else stock.total
