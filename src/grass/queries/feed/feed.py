"""The feed: one reader of the store for all who follow.

After a commit it waits for more, then reads once what changed, makes a document for
each class of viewers, and gives its bytes to all followers of that class. It sends at
most four frames a second, and fewer where reading takes long, so that it never needs
more than a small part of a core. Without followers it does nothing.
"""

import asyncio
import contextlib
import time
from functools import partial
from typing import Any

from grass.broker.shell.service import Broker
from grass.errors import GrassError
from grass.event_log import EventLog
from grass.queries.cluster_documents import ForgottenNames
from grass.queries.documents import DevicesReply, JsonObject, json_bytes
from grass.queries.feed.changed_jobs import ChangedRows, Wanted, read_changes
from grass.queries.feed.device_readings import DeviceReadings
from grass.queries.feed.followers import Follower, frame, resync
from grass.queries.feed.job_topics import documents, is_job_topic
from grass.queries.journal_documents import event_reply
from grass.queries.listing import Picture
from grass.queries.presentation import DaemonFacts, Presenter, Viewer
from grass.store.interface import JobDetails

log = EventLog(__name__)

OVERVIEW, JOBS, EVENTS, DEVICES = "overview", "jobs", "events", "devices"
TOPICS = frozenset({OVERVIEW, JOBS, EVENTS, DEVICES})
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 5.0
JOIN_PAUSE_S = 1.0
"""The longest time that a new follower waits for the feed to rest."""
PAUSE_PER_WORK = 15
"""How long the feed rests after its work, as a multiple of that."""
LOOK_S = 5.0
"""How often an overview is made without a commit: not all of it is in the store."""
DEVICES_S = 1.0
OPERATOR, OUTSIDER = Viewer("", True), Viewer("", False)


class Feed:
    """All followers of one daemon."""

    def __init__(
        self,
        broker: Broker,
        names: ForgottenNames,
        facts: DaemonFacts,
        closing: asyncio.Event,
    ) -> None:
        self._broker = broker
        self._presenter = Presenter(broker, names)
        self._facts = facts
        self._closing = closing
        self._followers: set[Follower] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._of_jobs: dict[str, asyncio.Task[None]] = {}
        self._last_told: dict[str, bytes] = {}
        """By topic of a job: the last frame, which tells a new follower where it is."""
        self.readings = DeviceReadings(broker)
        """What workers tell of their devices, for streams and for single calls."""
        self._starting = asyncio.Lock()
        self._joined = asyncio.Event()
        self.seq = 0
        """The line of the journal up to which frames were sent."""

    async def follow(self, viewer: Viewer, topics: frozenset[str]) -> Follower:
        """Add a follower; `leave` has to follow."""
        async with self._starting:
            if not self._tasks:
                self.seq = await self._broker.read(lambda db: db.last_event())
                self._start()
        follower = Follower(viewer, topics)
        self._followers.add(follower)
        for topic in filter(is_job_topic, topics):
            self._follow_job(topic, follower)
        self._joined.set()
        return follower

    def leave(self, follower: Follower) -> None:
        """Remove a follower; without any the feed stops."""
        self._followers.discard(follower)
        self._leave_jobs()
        if not self._followers:
            self._stop()

    def hello(self) -> bytes:
        """Return the first frame of a stream: where it begins."""
        data = {"seq": self.seq, "version": self._facts.version}
        return frame("hello", json_bytes(data), self.seq)

    async def missed(self, follower: Follower, since: int, until: int) -> list[bytes]:
        """Return what a follower has missed that is back."""
        if since == until:
            return []
        wanted = Wanted(since, jobs=True, events=True)
        found = await self._broker.read(partial(read_changes, wanted=wanted))
        if since > found.newest or found.jobs_left:
            return [resync(until)]
        frames = await self._journal_frames(follower.viewer, found, until)
        return [one for topic, one in frames.items() if topic in follower.topics]

    def _start(self) -> None:
        work = (self._changes, self._devices, self._until_closing)
        self._tasks = [asyncio.create_task(self._guarded(one())) for one in work]

    def _leave_jobs(self) -> None:
        """End the topics of jobs that none follows."""
        for topic in self._of_jobs.keys() - self._followed():
            self._of_jobs.pop(topic).cancel()
            self._last_told.pop(topic, None)

    def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._tasks = []

    async def _guarded(self, work: Any) -> None:  # noqa: ANN401 -- a coroutine
        """End all streams where one task fails: their clients connect again."""
        try:
            await work
        except Exception as error:  # noqa: BLE001 -- logged
            log.defect(error)
        for follower in self._followers:
            follower.close()
        # Others may come before the last of these has left: they begin anew.
        self._followers.clear()
        self._leave_jobs()
        self._stop()

    async def _until_closing(self) -> None:
        await self._closing.wait()

    # What is read from the store.

    async def _changes(self) -> None:
        while True:
            # Before reading, so that no commit in between is missed.
            committed = asyncio.ensure_future(self._broker.next_commit())
            try:
                self._joined.clear()
                began = time.monotonic()
                with contextlib.suppress(GrassError):
                    await self._send_changes()
                pause = PAUSE_PER_WORK * (time.monotonic() - began)
                await self._rest(min(max(pause, SHORTEST_PAUSE_S), LONGEST_PAUSE_S))
                await self._until_due(committed)
            finally:
                committed.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await committed

    async def _rest(self, pause_s: float) -> None:
        await asyncio.sleep(min(pause_s, JOIN_PAUSE_S))
        if pause_s > JOIN_PAUSE_S:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._joined.wait(), pause_s - JOIN_PAUSE_S)

    async def _until_due(self, committed: asyncio.Future[None]) -> None:
        joined = asyncio.ensure_future(self._joined.wait())
        either: set[asyncio.Future[Any]] = {committed, joined}
        try:
            await asyncio.wait(
                either, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            joined.cancel()

    async def _send_changes(self) -> None:
        """Read once, and give each follower its frames."""
        followed = self._followed()
        wanted = Wanted(
            self.seq, OVERVIEW in followed, JOBS in followed, EVENTS in followed
        )
        found = await self._broker.read(partial(read_changes, wanted=wanted))
        # At once: who comes from now on begins behind what was found.
        self.seq, followers = found.newest, list(self._followers)
        owners = _owners(found)
        try:
            frames = {
                viewer: await self._frames(viewer, found)
                for viewer in {seen_as(one.viewer, owners) for one in followers}
            }
        except GrassError:
            # It is read again.
            self.seq = wanted.after
            raise
        for follower in followers:
            of_class = frames[seen_as(follower.viewer, owners)]
            if follower.topics & {JOBS, EVENTS} - followed:
                # It came while others were read for.
                follower.add(resync(found.newest), found.newest)
            for topic in (JOBS, EVENTS):
                if topic in of_class and topic in follower.topics:
                    follower.add(of_class[topic], found.newest)
            if OVERVIEW in of_class and OVERVIEW in follower.topics:
                follower.show(OVERVIEW, of_class[OVERVIEW], found.newest)

    async def _frames(self, viewer: Viewer, found: ChangedRows) -> dict[str, bytes]:
        """Return the frames of a class of viewers, and the overview's document."""
        frames = await self._journal_frames(viewer, found, found.newest)
        if found.picture is not None:
            shown = await self._overview(viewer, found.picture)
            frames[OVERVIEW] = json_bytes(shown)
        return frames

    async def _overview(self, viewer: Viewer, picture: Picture) -> JsonObject:
        queues = list(self._broker.state.queues.values())
        return await self._presenter.overview(viewer, self._facts, picture, queues)

    async def _journal_frames(
        self, viewer: Viewer, found: ChangedRows, seq: int
    ) -> dict[str, bytes]:
        """Return the frames of what happened, where something has."""
        frames: dict[str, bytes] = {}
        if found.jobs or found.removed or found.jobs_left:
            document = {
                "jobs": await self._presenter.jobs(viewer, found.jobs),
                "removed": found.removed,
                "more": found.jobs_left,
            }
            frames[JOBS] = frame(JOBS, json_bytes(document), seq)
        events = [event_reply(one) for one in found.events if one.seq <= seq]
        if events:
            document = {"events": events, "more": found.events_left}
            frames[EVENTS] = frame(EVENTS, json_bytes(document), seq)
        return frames

    def _followed(self) -> set[str]:
        return {topic for one in self._followers for topic in one.topics}

    # What workers tell.

    def _follow_job(self, topic: str, follower: Follower) -> None:
        if topic not in self._of_jobs:
            task = asyncio.create_task(self._guarded(self._job(topic)))
            self._of_jobs[topic] = task
        elif topic in self._last_told:
            follower.add(self._last_told[topic], self.seq)

    async def _job(self, topic: str) -> None:
        async for document in documents(self._broker, topic):
            told = frame(topic, json_bytes(document))
            self._last_told[topic] = told
            for follower in self._followers:
                if topic in follower.topics:
                    follower.add(told, self.seq)

    async def _devices(self) -> None:
        while True:
            due = time.monotonic() + DEVICES_S
            if any(DEVICES in one.topics for one in self._followers):
                workers = list(self._broker.state.workers.values())
                read = await self.readings.documents(workers)
                data = json_bytes(DevicesReply(read))
                for follower in self._followers:
                    if DEVICES in follower.topics:
                        follower.show(DEVICES, data)
            await asyncio.sleep(max(0.0, due - time.monotonic()))


def _owners(found: ChangedRows) -> set[str]:
    """Return the owners of all jobs that are shown."""
    shown: list[JobDetails] = list(found.jobs)
    if found.picture is not None:
        shown += found.picture.listing.jobs
    return {one.job.owner for one in shown}


def seen_as(viewer: Viewer, owners: set[str]) -> Viewer:
    """Return the class of viewers that see these owners' jobs alike."""
    if viewer.operates:
        return OPERATOR
    return viewer if viewer.actor in owners else OUTSIDER
