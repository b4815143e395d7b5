"""The interface to a vendor's library: all that the child process needs of one.

Another vendor is one more module with a `GpuLibrary`, and its row in `LIBRARIES` in
`gpu_child`. Every call may block for ever; the child makes each in a thread. A device
is used by one thread at a time.
"""

from collections.abc import Sequence
from typing import Protocol

from grass.devices.gpu_reports import DevicePlaces, DeviceReport


class LibraryError(Exception):
    """The library, or a device of it, cannot be used; the text says why."""

    def __init__(self, text: str, *, lost: bool = False) -> None:
        """`lost`: the device is gone, and is back only when all is opened anew."""
        super().__init__(text)
        self.lost = lost


class GpuDevice(Protocol):
    """One open device."""

    @property
    def uuid(self) -> str:
        """Who it is."""

    def read(self) -> DeviceReport:
        """Report the device as it is now; raises LibraryError."""


class GpuLibrary(Protocol):
    """A vendor's library."""

    def open(self) -> None:
        """Open the library; raises LibraryError."""

    @property
    def driver(self) -> str:
        """The version of the driver, once the library is open; empty: not told."""

    def count(self) -> int:
        """Count the devices; raises LibraryError."""

    def changed(self) -> bool:
        """Return whether devices have come or gone since it was opened."""

    def device(self, index: int) -> GpuDevice:
        """Open a device; raises LibraryError."""

    def places(self, devices: Sequence[GpuDevice]) -> DevicePlaces:
        """Tell where open devices are; what is not known is left out."""
