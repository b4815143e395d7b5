"""Folders that a contender fills and that are gone afterwards.

All contenders write below one folder beside this file: the same disk for everybody, and
a real one, which the system's own folder for temporary files often is not.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
_SCRATCH = HERE / ".scratch"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Give an empty folder and remove it with all that is in it."""
    _SCRATCH.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=_SCRATCH))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
