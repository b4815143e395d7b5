"""The child process that asks a vendor's library, and may be killed at any time.

The daemon writes a line with the seconds it will wait; the child answers with a
snapshot, as a line of JSON. A library may hang, for one device or for all, so each
device has a thread of its own and so has opening the library. A device whose thread has
not come back is reported as one that does not answer, and is back when it does. The
child leaves when the daemon is gone: its main thread never calls the library.
"""

import os
import sys
import time
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


class DeviceThread(Thread):
    """Reads one device whenever it is asked, in a thread that may hang."""

    def __init__(self, library: GpuLibrary, index: int, answers: "Answers") -> None:
        super().__init__(name=f"gpu {index}", daemon=True)
        self.device: GpuDevice | None = None
        self.lost = False
        self.busy = False
        self._since_s = 0.0
        self._index = index
        self._library = library
        self._answers = answers
        self._asked: SimpleQueue[None] = SimpleQueue()

    def ask(self) -> None:
        """Have it read the device."""
        self.busy, self._since_s = True, time.monotonic()
        self._asked.put(None)

    def answered(self, report: DeviceReport, limit_s: float) -> DeviceReport:
        """Return the report, unless it is so old that nothing should rely on it."""
        self.busy = False
        late = time.monotonic() - self._since_s > limit_s
        return self.failed(SILENT) if late else report

    def failed(self, why: str) -> DeviceReport:
        """Report a device that cannot be read."""
        uuid = "" if self.device is None else self.device.uuid
        return DeviceReport(self._index, uuid, fault=why)

    def run(self) -> None:
        """Read for ever."""
        while True:
            self._asked.get()
            self._answers.put((self, self._read()))

    def _read(self) -> DeviceReport:
        try:
            if self.device is None:
                self.device = self._library.device(self._index)
            return self.device.read()
        except LibraryError as error:
            self.lost = self.lost or error.lost or self.device is None
            return self.failed(str(error))
        except Exception as error:  # noqa: BLE001 -- the other devices go on
            return self.failed(f"{type(error).__name__}: {error}")


Answers = SimpleQueue[tuple[DeviceThread, DeviceReport]]


class LibraryThread(Thread):
    """Opens a library, and looks when asked what has changed."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.answers: Answers = SimpleQueue()
        self.readers: list[DeviceThread] = []
        self.opened = Event()
        self.error: str | None = None
        self.driver = ""
        self.outdated = False
        """Whether devices have come or gone since the library was opened."""
        self.places: DevicePlaces | None = None
        self._asked: SimpleQueue[None] = SimpleQueue()

    def look(self) -> None:
        """Have it look; a look that hangs is not followed by another."""
        if self._asked.empty():
            self._asked.put(None)

    def run(self) -> None:
        """Open the library, and look for ever."""
        try:
            module, name = LIBRARIES[self.name]
            library: GpuLibrary = getattr(import_module(module), name)()
            self._open(library)
            self.opened.set()
            while not self.outdated:
                self._asked.get()
                self._look(library)
        except Exception as error:  # noqa: BLE001 -- told to the daemon, in words
            known = isinstance(error, LibraryError)
            self.error = str(error) if known else f"{type(error).__name__}: {error}"
        self.opened.set()

    def _open(self, library: GpuLibrary) -> None:
        library.open()
        self.driver = library.driver
        self.readers = [
            DeviceThread(library, index, self.answers)
            for index in range(library.count())
        ]
        for reader in self.readers:
            reader.start()

    def _look(self, library: GpuLibrary) -> None:
        devices = [one.device for one in self.readers if one.device is not None]
        if self.places is None and len(devices) == len(self.readers):
            self.places = library.places(devices)
        self.outdated = library.changed()


class LibraryReading:
    """All devices of a library, as they can be told within a time."""

    def __init__(self, name: str) -> None:
        """Begin to open the library of this name."""
        self._library = LibraryThread(name)
        self._library.start()
        self._told_places = False

    def snapshot(self, limit_s: float) -> DeviceSnapshot:
        """Return all that can be told within this time."""
        library, limit_s = self._library, limit_s * _MARGIN
        until_s = time.monotonic() + limit_s
        if not library.opened.wait(limit_s):
            return DeviceSnapshot(error="its library does not answer in time")
        if library.error is not None:
            return DeviceSnapshot(error=library.error)
        reports = self._reports(until_s, limit_s)
        library.look()
        outdated = library.outdated or any(one.lost for one in library.readers)
        return DeviceSnapshot(reports, None, outdated, self._places(), library.driver)

    def _reports(self, until_s: float, limit_s: float) -> tuple[DeviceReport, ...]:
        """Ask every device that is not busy, and wait for these."""
        reports: dict[DeviceThread, DeviceReport] = {}
        readers, answers = self._library.readers, self._library.answers
        asked = {reader for reader in readers if not reader.busy}
        for reader in asked:
            reader.ask()
        while asked or not answers.empty():
            try:
                reader, report = answers.get(timeout=max(0, until_s - time.monotonic()))
            except Empty:
                break
            asked.discard(reader)
            reports[reader] = reader.answered(report, limit_s)
        return tuple(reports.get(one) or one.failed(SILENT) for one in readers)

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
