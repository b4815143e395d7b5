"""Notices of a command that something takes long.

Whether one comes depends on how busy the machine is. Tests of notices themselves read
a command's stderr line by line.
"""

import re

NOTICE = re.compile(
    r"(?m)^grass: .*; "
    r"(?:waiting up to \d+ s|waiting for it|going on if it is back within \d+ s)\n"
)


def without_notices(errors: str) -> str:
    """Return what a command wrote to stderr, but for its notices."""
    return NOTICE.sub("", errors)
