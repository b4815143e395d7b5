"""The folders that pilots of a broker have ever written into.

Output of jobs is read there long after their pilots, and even after a pool of which
nothing else is left. So a folder is noted, in the state directory, before a pilot knows
of it. A worker that names any other folder is not believed.
"""

import json
import os
from pathlib import Path

from grass.client.private_files import read_file, replace_private
from grass.config import Home
from grass.model.pools import Pool

USUAL = "~/.local/share/grass/pilots"


def folder_of(pool: Pool | None) -> Path:
    """Return where the pilots of a pool find their files; None: usually."""
    named = "" if pool is None else pool.folder
    return Path(named or os.path.expanduser(USUAL))


def output_folder(folder: Path) -> Path:
    """Return where in a folder pilots write the output of jobs."""
    return folder / "output"


class PilotFolders:
    """The usual folder, and those of pools that are or were."""

    def __init__(self, home: Home) -> None:
        self._path = Path(home.pilot_folders)
        self._noted = self._read()

    def note(self, pool: Pool) -> None:
        """Remember the folder of a pool; raises GrassError if that is impossible.

        Behind a prefix it is one of another host, with the same path as one of this.
        """
        folder = str(folder_of(pool))
        if pool.folder and not pool.submit_prefix and folder not in self._noted:
            replace_private(str(self._path), json.dumps([*self._noted, folder]))
            self._noted.append(folder)

    def outputs(self) -> list[Path]:
        """Return all folders with the output of jobs."""
        known = [folder_of(None), *map(Path, self._noted)]
        return [output_folder(one) for one in known]

    def _read(self) -> list[str]:
        remedy = "remove it, and add the pools with a folder of their own again"
        return read_file(str(self._path), _folders, remedy) or []


def _folders(data: bytes) -> list[str]:
    folders = json.loads(data)
    if not isinstance(folders, list) or not all(isinstance(o, str) for o in folders):
        raise ValueError("these are no folders")
    return folders
