"""What the screen shows, read in two threads and handed on as documents.

One thread follows the daemon's stream of overviews and GPUs, which sends only what has
changed. The other reads what is looked at besides: the jobs of a filter, the usage of
the job under the cursor, the last hour of each GPU; together less than two requests a
second. A daemon that is away is asked again and again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from grass.cli.parsing.options import ANY, read
from grass.cli.printing.show.show_options import ShowOptions
from grass.client.json_codec import Document
from grass.errors import GrassError
from grass.tui.reader import AWAY, Connect, Reader, ReadingThread, why_lost

TOPICS = ("overview", "devices")
"""What is followed."""
CHANGE_S = 0.7
"""After changes, the jobs of a filter are read no more often than this."""
AGAIN_S = 1.0
"""How long after a failure the daemon is asked again."""
EVERY_S = {"listing": 5.0, "job": 2.0, "strip": 60.0}
"""What is read besides, and how often without a change."""


class News(NamedTuple):
    """Something that was read, or the `refused` of the daemon instead of it."""

    topic: str
    document: Document


class Updates:
    """The threads that read."""

    def __init__(
        self,
        connect: Connect,
        on_news: Callable[[News], object],
        on_lost: Callable[[str], object],
    ) -> None:
        """`on_news` gets every document, and `on_lost` why there is none."""
        self._on_news = on_news
        self._on_lost = on_lost
        self._changed = threading.Condition()
        self._due_at = dict.fromkeys(EVERY_S, 0.0)
        self._listed_at = 0.0
        """When the jobs of a filter were read last."""
        self._select: tuple[str, ...] = ()
        self._job: int | None = None
        self._strips: dict[tuple[str, str], float] = {}
        """When the history of each GPU was read last, by worker and unit."""
        self._is_paused = False
        self._is_stopped = False
        self._reads: dict[str, Callable[[Reader], Document | None]] = {
            "listing": self._listing,
            "job": self._job_looked_at,
            "strip": self._strip,
        }
        self._threads = [
            ReadingThread(connect, self._follow),
            ReadingThread(connect, self._read),
        ]

    def stop(self) -> None:
        """End the threads."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def select(self, words: Sequence[str]) -> None:
        """Read the jobs that selectors mean; without any, the overview is enough."""
        self._select = tuple(words)
        self._hasten("listing", 0.0)

    def look_at(self, job: int | None) -> None:
        """Read what this job uses, from now on."""
        if job != self._job:
            self._job = job
            self._hasten("job", 0.0)

    def pause(self, *, on: bool) -> None:
        """Read nothing besides, or go on."""
        self._is_paused = on
        self._hasten("listing", 0.0)

    def _hasten(self, topic: str, at: float) -> None:
        """Read at a time, or before."""
        with self._changed:
            self._due_at[topic] = min(self._due_at[topic], at)
            self._changed.notify_all()

    def _follow(self, reader: Reader) -> None:
        while not self._is_stopped:
            try:
                for topic, document in reader.follow(TOPICS):
                    self._take(topic, document)
            except (*AWAY, GrassError) as error:
                reader.close()
                if not self._is_stopped:
                    self._on_lost(why_lost(error))
                self._rest(AGAIN_S)

    def _take(self, topic: str, document: Document) -> None:
        if topic not in TOPICS:
            return  # It says that the stream has begun, or has left something out.
        if topic == "devices":
            self._note_gpus(document)
        else:
            self._hasten("listing", self._listed_at + CHANGE_S)
        self._on_news(News(topic, document))

    def _note_gpus(self, devices: Document) -> None:
        gpus = [
            (one["name"], gpu["unit"])
            for one in devices["workers"]
            for gpu in one["gpus"]
        ]
        if not self._strips and gpus:
            self._hasten("strip", 0.0)
        self._strips = {gpu: self._strips.get(gpu, 0.0) for gpu in gpus}

    def _read(self, reader: Reader) -> None:
        while not self._is_stopped:
            try:
                self._read_due(reader)
            except AWAY:
                # The other thread says so.
                reader.close()
                self._rest(AGAIN_S)
                self._hasten("listing", 0.0)

    def _rest(self, wait_s: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped, wait_s)

    def _read_due(self, reader: Reader) -> None:
        """Read what is due, then wait for the next."""
        for topic, every_s in EVERY_S.items():
            now = time.monotonic()
            if self._is_paused or self._is_stopped or now < self._due_at[topic]:
                continue
            self._due_at[topic] = now + every_s
            document = self._asked(topic, reader)
            if document is not None:
                self._on_news(News(topic, document))
        with self._changed:
            left_s = min(self._due_at.values()) - time.monotonic()
            if self._is_paused:
                left_s = AGAIN_S
            if left_s > 0 and not self._is_stopped:
                self._changed.wait(left_s)

    def _asked(self, topic: str, reader: Reader) -> Document | None:
        """Return what was asked for; None: nothing was, or there is nothing."""
        try:
            return self._reads[topic](reader)
        except AWAY:
            raise
        except GrassError as error:
            return {"refused": why_lost(error)} if topic == "listing" else None

    def _listing(self, reader: Reader) -> Document | None:
        if not self._select:
            return None
        self._listed_at = time.monotonic()
        listed = ShowOptions(*read((ANY,), self._select)).read(reader)
        return {**listed, "jobs": list(listed["jobs"])}

    def _job_looked_at(self, reader: Reader) -> Document | None:
        return None if self._job is None else reader.job(self._job, usage=True)

    def _strip(self, reader: Reader) -> Document | None:
        """Read the history of one GPU, and that of the next a moment later."""
        if not self._strips:
            return None
        gpu = min(self._strips, key=lambda one: self._strips[one])
        is_first = not self._strips[gpu]
        now = time.monotonic()
        self._strips[gpu] = now
        each_s = 0.0 if is_first else EVERY_S["strip"] / len(self._strips)
        self._due_at["strip"] = now + max(1.0, each_s)
        return reader.gpu_usage(*gpu)
