"""Small files of the state directory: written whole, for their owner alone.

Commands write some of them too, under whatever umask their caller has.
"""

import os

_OWNER = 0o600


def replace_private(path: str, text: str) -> None:
    """Put a file in place of the one that there is, if any."""
    draft = path + ".new"
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER)
    try:
        # A draft that was left behind keeps the mode it had.
        os.fchmod(file, _OWNER)
        os.write(file, text.encode())
    finally:
        os.close(file)
    os.rename(draft, path)
