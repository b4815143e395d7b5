"""What most routes do: make a call to the broker, and say what came of it."""

from collections.abc import Sequence

from starlette.requests import Request

from grass.api.context import context_of
from grass.api.replies import DoneReply
from grass.broker.calls import Call
from grass.broker.replies import Done


async def do(request: Request, call: Call, said: Sequence[str] = ()) -> DoneReply:
    """Make a call; `said` goes before what the broker has to say."""
    done: Done = await context_of(request).broker.call(call)
    return DoneReply(done.jobs, [*said, *done.warnings], done.changed)
