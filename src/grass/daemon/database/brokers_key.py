"""The brokers' key of this home, as the store in PostgreSQL uses it.

It is that of `broker.key`, with --cert as well: a certificate may be renewed with
another key, and what was sealed must still be opened then.
"""

import os
import time

from grass.config import KEY_FILE, Home
from grass.tls.key_text import key_bytes


class HomeKey:
    """The key in a state directory."""

    def __init__(self, home: Home) -> None:
        self._folder = home.folder
        self.path = os.path.join(home.folder, KEY_FILE)

    def read(self) -> bytes | None:
        """Return the secret; None: this broker has no key yet."""
        try:
            return key_bytes(self._folder)
        except FileNotFoundError:
            return None

    def create(self) -> bytes:
        """Make a key for a cluster that has none, and return its secret."""
        # Imported on use: it loads a library for cryptography.
        from grass.tls.key_files import own_pair

        own_pair(self._folder, time.time())
        return key_bytes(self._folder)
