"""The broker's inbox: calls of users and messages of workers, in order.

A call is refused where too many others wait. A worker's message is not: it must be
applied. So messages are counted per worker, for the reader of its link to pause, and
take no room from callers. Of a worker's hellos only the last is applied, since that
reports everything; earlier ones are dropped.

Some calls are about jobs that memory may not know: these are read before such a call is
taken, and again if a commit comes between.
"""

from collections import Counter, deque
from itertools import islice
from typing import Any, TypeGuard

from grass.broker.core.calls import AnyCall, FromWorker, Reading
from grass.broker.core.shell_interface import ReplyTo
from grass.errors import Busy
from grass.link.messages import Hello

MOST_WAITING_CALLS = 10_000
_REPLACED = Hello("", "", "", {}, [], [])


class Inbox:
    """Calls and where their replies go, the oldest first."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[AnyCall, ReplyTo]] = deque()
        self._asked = 0
        """How many of them have a reply."""
        self._said: Counter[str] = Counter()
        """How many of them each worker sent."""
        self._hellos: dict[str, FromWorker] = {}
        """The last hello of each worker, if it waits."""
        self._unread: deque[Reading[Any]] = deque()
        """Those whose jobs are still to be read."""

    def __bool__(self) -> bool:
        """Tell whether anything waits."""
        return bool(self._waiting)

    def waiting_from(self, worker: str) -> int:
        """Return how many messages of a worker wait."""
        return self._said[worker]

    def put(self, call: AnyCall, reply: ReplyTo) -> None:
        """Add a call; refuse one with a reply if too many of those wait."""
        if reply is not None:
            if self._asked >= MOST_WAITING_CALLS:
                raise Busy("the broker has too much to do", "try again in a moment")
            self._asked += 1
        if isinstance(call, FromWorker):
            self._said[call.worker] += 1
            if isinstance(call.message, Hello):
                if call.worker in self._hellos:
                    # It will be dropped, and may be large.
                    replaced = self._hellos[call.worker]
                    replaced.message, replaced.wanted = _REPLACED, []
                self._hellos[call.worker] = call
        self._waiting.append((call, reply))
        if _is_unread(call):
            self._unread.append(call)
        self._leave_out()

    def put_back(self, call: AnyCall, reply: ReplyTo) -> None:
        """Make a call with a reply the next one again."""
        self._asked += 1
        self._waiting.appendleft((call, reply))
        if isinstance(call, Reading) and (call.wanted or call.named):
            call.found = None
            self._unread.appendleft(call)

    def unread(self, most: int) -> list[Reading[Any]]:
        """Return the first calls whose jobs are to be read; see `was_read`."""
        return list(islice(self._unread, most))

    def was_read(self) -> None:
        """Note that the jobs of the first of these calls were found."""
        self._unread.popleft()

    def read_again(self) -> None:
        """Have jobs read again for calls that are left for after a commit.

        What was found for them may not be true any more then.
        """
        stale = []
        for call, _ in self._waiting:
            if _is_unread(call):
                break
            if isinstance(call, Reading) and (call.wanted or call.named):
                call.found = None
                stale.append(call)
        self._unread.extendleft(reversed(stale))

    @property
    def can_take(self) -> bool:
        """Tell whether a call waits whose jobs are known."""
        return bool(self._waiting) and not _is_unread(self._waiting[0][0])

    def take(self) -> tuple[AnyCall, ReplyTo]:
        """Take out the call that has waited longest."""
        call, reply = self._taken()
        self._forget_hello(call)
        self._leave_out()
        return call, reply

    def give_up_unread(self) -> list[tuple[AnyCall, ReplyTo]]:
        """Remove the calls whose jobs could not be read, and return them."""
        lost = {id(call) for call in self._unread}
        self._unread.clear()
        gone = [one for one in self._waiting if id(one[0]) in lost]
        self._waiting = deque(one for one in self._waiting if id(one[0]) not in lost)
        for call, reply in gone:
            self._count_out(call, reply)
            self._forget_hello(call)
        return gone

    def clear(self) -> list[ReplyTo]:
        """Remove all calls; return the replies of those that have one."""
        replies = [reply for _, reply in self._waiting if reply is not None]
        self._waiting.clear()
        self._said.clear()
        self._hellos.clear()
        self._asked = 0
        return replies

    def _taken(self) -> tuple[AnyCall, ReplyTo]:
        call, reply = self._waiting.popleft()
        self._count_out(call, reply)
        return call, reply

    def _count_out(self, call: AnyCall, reply: ReplyTo) -> None:
        if reply is not None:
            self._asked -= 1
        if isinstance(call, FromWorker):
            self._said[call.worker] -= 1
            if not self._said[call.worker]:
                del self._said[call.worker]

    def _forget_hello(self, call: AnyCall) -> None:
        if isinstance(call, FromWorker) and self._hellos.get(call.worker) is call:
            del self._hellos[call.worker]

    def _leave_out(self) -> None:
        """Drop hellos at the front that a later one has replaced."""
        # While none waits no earlier one was replaced, and most often none does.
        while self._hellos and self._waiting and self._is_replaced(*self._waiting[0]):
            self._taken()

    def _is_replaced(self, call: AnyCall, reply: ReplyTo) -> bool:
        if reply is not None or not isinstance(call, FromWorker):
            return False
        is_hello = isinstance(call.message, Hello)
        return is_hello and self._hellos.get(call.worker) is not call


def _is_unread(call: AnyCall) -> TypeGuard[Reading[Any]]:
    return isinstance(call, Reading) and call.unread
