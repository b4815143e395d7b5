"""Events of a daemon, collected by a thread with a connection of its own."""

from __future__ import annotations

import threading

from grass.client.connection import Broken
from grass.client.threads import CtrlCForMain
from grass.errors import GrassError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.client.client import Client
    from grass.client.json_codec import Document


class EventCollector:
    """Events, collected by a thread until they are taken."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._after = int(client.overview()["daemon"]["last_event"])
        self._changed = threading.Condition()
        self._events: list[Document] = []
        self._error: GrassError | None = None
        self._closed = False
        self._woken = False
        with CtrlCForMain():
            threading.Thread(target=self._follow, daemon=True).start()

    def take(self, wait_s: float | None) -> list[Document]:
        """Return the events since the last call, waiting for one if there is none."""
        with self._changed:
            self._changed.wait_for(self._may_go, wait_s)
            if self._error is not None:
                raise self._error
            events, self._events = self._events, []
            self._woken = False
            return events

    def rest(self, wait_s: float) -> None:
        """Wait, also while events come; `wake` ends it."""
        with self._changed:
            self._changed.wait_for(self._must_go, wait_s)
            self._woken = False

    def wake(self) -> None:
        """Let the caller that waits go on, without an event."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def close(self) -> None:
        """Wake the thread that waits, and collect no more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _may_go(self) -> bool:
        return bool(self._events) or self._must_go()

    def _must_go(self) -> bool:
        return self._woken or self._closed or self._error is not None

    def _follow(self) -> None:
        try:
            with self._client.beside(may_start=False) as client:
                for event in client.follow_events(after=self._after):
                    self._add(event)
                    if self._closed:
                        return
        except Broken:
            self._fail(GrassError(f"{self._client.peer} went away"))
        except GrassError as error:
            self._fail(error)

    def _add(self, event: Document) -> None:
        with self._changed:
            self._events.append(event)
            self._changed.notify_all()

    def _fail(self, error: GrassError) -> None:
        with self._changed:
            self._error = error
            self._changed.notify_all()
