"""Which home this is: a home may be copied, and its worker's id with it.

The name is random, made with the keeper's folder and kept in it. Beside it stands the
file's own number on its disk, so that a copy is known as one and gets another name.
"""

import contextlib
import os
from pathlib import Path
from secrets import token_hex

FILE = "instance"


def instance_of(folder: str) -> str:
    """Return the name of a keeper's folder, made at the first call."""
    path = Path(folder) / FILE
    with contextlib.suppress(FileNotFoundError, ValueError):
        known, number = path.read_text().split()
        if int(number) == path.stat().st_ino:
            return known
    made = token_hex(8)
    draft = path.with_suffix(".new")
    with draft.open("w") as file:
        file.write(f"{made} {os.fstat(file.fileno()).st_ino}\n")
    draft.rename(path)
    return made
