"""The child process that asks a vendor's library, and may be killed at any time.

The daemon writes a line with the seconds it will wait; the child answers with a
snapshot, as a line of JSON. A library may hang, for one device or for all, so the main
thread never calls it, and the child leaves when the daemon is gone. One other thread
makes all calls, one after another: with a thread for each device, most of the time is
spent on passing the interpreter from one to the next. When a call takes long, a new
thread goes on with the rest, so a device that hangs delays none of the others. It is
reported as one that does not answer, and is back when it does.
"""

import os
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from queue import Empty, SimpleQueue
from threading import Event, Thread

if __name__ == "__main__" and sys.flags.isolated:
    # As in `grass/__main__.py`: nothing else says where the package lies.
    sys.path.insert(0, __file__.rpartition("/grass/")[0])

import msgspec

from grass.devices.gpu_library import GpuDevice, GpuLibrary, LibraryError
from grass.devices.gpu_reports import DevicePlaces, DeviceReport, DeviceSnapshot

LIBRARIES = {"nvml": ("grass.devices.nvml", "NvmlLibrary")}

SILENT = "it does not answer in time"
_MARGIN = 0.8
"""The share of the daemon's patience after which an answer is late."""
_LONG_S = 0.02
"""After this time without an answer another thread goes on with the rest."""


class CallingThread(Thread):
    """Makes the calls that are listed, until another thread takes its place."""

    def __init__(
        self, calls: deque[Callable[[], None]], answered: SimpleQueue[None]
    ) -> None:
        """`answered` gets an item when a thread that was replaced leaves."""
        super().__init__(name="library", daemon=True)
        self.idle = False
        self._calls = calls
        self._answered = answered
        self._begun: SimpleQueue[None] = SimpleQueue()
        self._replaced = False

    def begin(self) -> None:
        """Have it make the calls that are listed now."""
        self.idle = False
        self._begun.put(None)

    def replace(self) -> None:
        """Have it leave, if it hangs as soon as its call returns."""
        self._replaced = True
        self.begin()

    def run(self) -> None:
        """Make calls."""
        while not self._replaced:
            self._begun.get()
            while self._calls and not self._replaced:
                self._next_call()
            self.idle = True
        self._answered.put(None)

    def _next_call(self) -> None:
        # Another thread may have taken the last one.
        with suppress(IndexError):
            call = self._calls.popleft()
            call()


class DeviceCalls:
    """One device, which a thread reads when it is asked."""

    def __init__(self, library: GpuLibrary, index: int) -> None:
        self.device: GpuDevice | None = None
        self.lost = False
        self.busy = False
        self._since_s = 0.0
        self._index = index
        self._library = library
        self._report: DeviceReport | None = None
        self._took_s = 0.0

    @property
    def waits(self) -> bool:
        """Whether it was asked and has not answered."""
        return self.busy and self._report is None

    def ask(self) -> None:
        """Note that it is asked now."""
        self.busy, self._since_s, self._report = True, time.monotonic(), None

    def answer(self, limit_s: float) -> DeviceReport:
        """Return the report, unless it is so old that nothing should rely on it."""
        report = self._report
        if report is None:
            return self._failed(SILENT)
        self.busy = False
        return self._failed(SILENT) if self._took_s > limit_s else report

    def read(self) -> None:
        """Read the device; this may hang."""
        report = self._read()
        self._took_s = time.monotonic() - self._since_s
        # Last, as it tells the other thread that there is an answer.
        self._report = report

    def _read(self) -> DeviceReport:
        try:
            if self.device is None:
                self.device = self._library.device(self._index)
            return self.device.read()
        except LibraryError as error:
            self.lost = self.lost or error.lost or self.device is None
            return self._failed(str(error))
        except Exception as error:  # noqa: BLE001 -- the other devices go on
            return self._failed(f"{type(error).__name__}: {error}")

    def _failed(self, why: str) -> DeviceReport:
        uuid = "" if self.device is None else self.device.uuid
        return DeviceReport(self._index, uuid, fault=why, silent=why == SILENT)


class LibraryCalls:
    """A library that a thread opens, and asks when told what has changed."""

    def __init__(self, name: str) -> None:
        self.devices: list[DeviceCalls] = []
        self.opened = Event()
        self.error: str | None = None
        self.driver = ""
        self.outdated = False
        """Whether devices have come or gone since the library was opened."""
        self.places: DevicePlaces | None = None
        self._name = name
        self._library: GpuLibrary | None = None
        self._looking = False

    def open(self) -> None:
        """Open the library; this may hang."""
        try:
            module, name = LIBRARIES[self._name]
            library: GpuLibrary = getattr(import_module(module), name)()
            library.open()
            self.driver = library.driver
            count = library.count()
            self.devices = [DeviceCalls(library, index) for index in range(count)]
            self._library = library
        except Exception as error:  # noqa: BLE001 -- told to the daemon, in words
            self._fail(error)
        self.opened.set()

    def may_look(self) -> bool:
        """Tell whether to look again; a look that hangs is not followed by another."""
        return not (self._looking or self.outdated)

    def look(self) -> None:
        """See what has changed; this may hang."""
        assert self._library is not None
        self._looking = True
        try:
            devices = [one.device for one in self.devices if one.device is not None]
            if self.places is None and len(devices) == len(self.devices):
                self.places = self._library.places(devices)
            self.outdated = self._library.changed()
        except Exception as error:  # noqa: BLE001 -- told to the daemon, in words
            self._fail(error)
        self._looking = False

    def _fail(self, error: Exception) -> None:
        known = isinstance(error, LibraryError)
        self.error = str(error) if known else f"{type(error).__name__}: {error}"


class LibraryReading:
    """All devices of a library, as they can be told within a time."""

    def __init__(self, name: str) -> None:
        """Begin to open the library of this name."""
        self._library = LibraryCalls(name)
        self._calls = deque([self._library.open])
        self._answered: SimpleQueue[None] = SimpleQueue()
        """Gets an item when devices may have answered."""
        self._thread = self._started()
        self._told_places = False

    def snapshot(self, limit_s: float) -> DeviceSnapshot:
        """Return all that can be told within this time."""
        library, limit_s = self._library, limit_s * _MARGIN
        until_s = time.monotonic() + limit_s
        if not library.opened.wait(limit_s):
            return DeviceSnapshot(error="its library does not answer in time")
        if library.error is not None:
            return DeviceSnapshot(error=library.error)
        self._wait(self._ask(), until_s)
        reports = tuple(one.answer(limit_s) for one in library.devices)
        outdated = library.outdated or any(one.lost for one in library.devices)
        return DeviceSnapshot(reports, None, outdated, self._places(), library.driver)

    def _ask(self) -> list[DeviceCalls]:
        """Have all devices read that are not busy, and return these."""
        asked = [one for one in self._library.devices if not one.busy]
        for device in asked:
            device.ask()
            self._calls.append(device.read)
        self._calls.append(partial(self._answered.put, None))
        if self._library.may_look():
            self._calls.append(self._library.look)
        if self._thread.idle:
            self._thread.begin()
        else:
            self._go_on()
        return asked

    def _wait(self, asked: list[DeviceCalls], until_s: float) -> None:
        while any(one.waits for one in asked):
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return
            try:
                self._answered.get(
                    timeout=min(left_s, _LONG_S) if self._calls else left_s
                )
            except Empty:
                if self._calls:
                    self._go_on()

    def _go_on(self) -> None:
        """Have another thread make the calls that are left."""
        self._thread.replace()
        self._thread = self._started()

    def _started(self) -> CallingThread:
        thread = CallingThread(self._calls, self._answered)
        thread.start()
        thread.begin()
        return thread

    def _places(self) -> DevicePlaces | None:
        """Return where the devices are, once."""
        if self._told_places or self._library.places is None:
            return None
        self._told_places = True
        return self._library.places


def main() -> None:
    """Answer until the daemon is gone."""
    reading = LibraryReading(sys.argv[1])
    for line in sys.stdin.buffer:
        answer = msgspec.json.encode(reading.snapshot(float(line)))
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    try:
        main()
    except OSError:
        pass
    finally:
        # Without waiting for threads that hang.
        os._exit(0)
