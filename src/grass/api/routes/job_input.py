"""The route that gives input to a job: what is typed or piped into `grass run`.

A call waits until the job runs and has taken something. Its offset makes it safe to
repeat: what was taken already is not given to the job again.
"""

from starlette.requests import Request

from grass.api.access.own_jobs import own_jobs
from grass.api.context import context_of
from grass.api.routes.broker_calls import named_job
from grass.api.routes.request_bodies import InputBody
from grass.api.server.cancellation import while_connected
from grass.broker.shell.service import Broker
from grass.errors import Refused, Unreachable
from grass.link.messages import WriteInput
from grass.model.jobs.job import Attempt
from grass.model.jobs.lifecycle import AttemptState
from grass.model.jobs.spec import NO_INPUT
from grass.queries.constraints import absence, is_unreachable
from grass.queries.documents import InputReply


async def write(request: Request, body: InputBody) -> InputReply:
    """Give a job a piece of input; answered when something of it was taken."""
    details = await named_job(request)
    job = details.job.id
    await own_jobs(request, [job])
    if details.spec.stdin == NO_INPUT:
        raise Refused(
            f"job {job} takes no input: its stdin is /dev/null",
            "`grass run` starts a job that takes what is piped into it",
        )
    writing = _written(context_of(request).broker, job, body)
    return await while_connected(request, writing)


async def _written(broker: Broker, job: int, body: InputBody) -> InputReply:
    attempt = await _running(broker, job)
    if attempt is None:
        return InputReply(body.offset, closed=True)
    piece = WriteInput(
        0,
        broker.state.attempt_id(attempt),
        body.sender,
        body.offset,
        body.data,
        body.end,
        body.window,
    )
    taken = await broker.input.write(attempt.worker, piece)
    return InputReply(taken.offset, taken.closed)


async def _running(broker: Broker, job: int) -> Attempt | None:
    """Wait until a job runs, and return its attempt; None when it has ended."""
    while job in broker.state.jobs:
        live = broker.state.attempts.get(job)
        if live is None:
            await broker.moved(job)
        elif is_unreachable(broker.state, live):
            worker = broker.state.workers.get(live.worker)
            away = "its worker was forgotten" if worker is None else absence(worker)
            raise Unreachable(away, f"job {job} runs there")
        elif live.state is AttemptState.RUNNING and live.after is None:
            return live
        else:
            await broker.next_commit()
    return None
