"""Files of the kernel that are read again and again, and stay open meanwhile.

To open and close one takes several times as long as to read it. Only so many are kept:
descriptors are few where a machine runs thousands of processes. One that is not read
any more is closed after a while. An open file of a process that has ended is never that
of another one with its pid.
"""

import os

MOST_KEPT = 256
LOOKS_KEPT = 100
"""A file that was not read for this many looks is closed."""
_FLAGS = os.O_RDONLY | os.O_CLOEXEC
_PAGE = 4096
_SHORT_READ = 2048
"""A read returns at most a page; one of more bytes than this may have left some."""


class KeptFiles:
    """Open files, by path; only one thread may use it."""

    def __init__(self) -> None:
        self._kept: dict[str, int] = {}
        """Those that were read lately."""
        self._older: dict[str, int] = {}
        self._looks = 0

    def read(self, path: str) -> bytes:
        """Return what a file holds now; raises OSError."""
        descriptor = self._kept.get(path)
        if descriptor is None:
            descriptor = self._older.pop(path, None)
            if descriptor is None:
                return self._opened(path)
            self._kept[path] = descriptor
        try:
            return _content(descriptor)
        except OSError:
            # Another process or cgroup may have the name by now.
            os.close(self._kept.pop(path))
        return self._opened(path)

    def look_done(self) -> None:
        """Note the end of a look, and close what was not read for many of them."""
        self._looks += 1
        if self._looks % LOOKS_KEPT == 0:
            unused, self._older, self._kept = self._older, self._kept, {}
            _close(unused)

    def close(self) -> None:
        """Close all."""
        _close(self._kept)
        _close(self._older)

    def _opened(self, path: str) -> bytes:
        descriptor = os.open(path, _FLAGS)
        try:
            content = _content(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        if len(self._kept) + len(self._older) < MOST_KEPT:
            self._kept[path] = descriptor
        else:
            os.close(descriptor)
        return content


def _content(descriptor: int) -> bytes:
    content = chunk = os.pread(descriptor, _PAGE, 0)
    while len(chunk) > _SHORT_READ:
        chunk = os.pread(descriptor, _PAGE, len(content))
        content += chunk
    return content


def _close(files: dict[str, int]) -> None:
    for descriptor in files.values():
        os.close(descriptor)
    files.clear()
