"""The Unix socket that a daemon listens on.

Apart from the server, whose libraries a daemon may load later than it listens.
"""

import contextlib
import os
import socket


def listen(path: str) -> socket.socket:
    """Listen on a Unix socket of mode 0600; its path may have any length."""
    folder, name = os.path.split(path)
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        # The caller holds the daemon's lock, so an existing socket is a leftover.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        listener.bind(f"/proc/self/fd/{descriptor}/{name}")
        listener.listen(1024)
    except BaseException:
        listener.close()
        raise
    finally:
        os.umask(before)
        os.close(descriptor)
    return listener
