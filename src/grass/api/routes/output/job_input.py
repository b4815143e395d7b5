"""The route that gives input to a job: what is typed or piped into `grass run`.

A call waits until the job runs and has taken something. Its offset makes it safe to
repeat: what was taken already is not given to the job again.
"""

from starlette.requests import Request

from grass.api.access.own_jobs import own_jobs
from grass.api.context import context_of
from grass.api.routes.broker_calls import named_job, running_attempt
from grass.api.routes.request_bodies import InputBody
from grass.api.server.cancellation import while_connected
from grass.broker.shell.service import Broker
from grass.errors import Refused
from grass.link.messages import WriteInput
from grass.model.jobs.spec import CHANNEL, NO_INPUT
from grass.queries.documents import InputReply


async def write(request: Request, body: InputBody) -> InputReply:
    """Give a job a piece of input; answered when something of it was taken."""
    details = await named_job(request)
    job = details.job.id
    await own_jobs(request, [job])
    if details.spec.stdin in (NO_INPUT, CHANNEL):
        raise Refused(
            f"job {job} takes no input: its stdin is /dev/null",
            "`grass run` starts a job that takes what is piped into it",
        )
    writing = _written(context_of(request).broker, job, body)
    return await while_connected(request, writing)


async def _written(broker: Broker, job: int, body: InputBody) -> InputReply:
    attempt = await running_attempt(broker, job)
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
    taken = await broker.requests.input.write(attempt.worker, piece)
    return InputReply(taken.offset, taken.closed)
