"""Grass as a version before was: a copy of the source that knows a little less.

The copy is run from its own folder. Its keeper neither sends nor understands what was
added to the protocol since: fields of its entries, and verbs.
"""

import shutil
import sys
from pathlib import Path

import grass
from tests.support.homes import GrassHome, Ran

VERSION = "0.0.9"
_NEWER_FIELDS = ("own_output", "suspended", "stderr_offset", "found")
_NEWER_VERBS = ("suspend", "continue", "lease")
_PROTOCOL = 1

_FORGET = f"""

# What a keeper of the version before did not know.
import grass.keeper.codec as _codec
import grass.keeper.protocol as _protocol

_all = _codec._document


def _less(message):
    told = _all(message)
    if isinstance(message, _protocol.SuspendedEntry):
        return told
    return {{k: v for k, v in told.items() if k not in {_NEWER_FIELDS!r}}}


_codec._document = _less
_protocol.VERSION = VERSION = {_PROTOCOL}
for _name in {_NEWER_VERBS!r}:
    del _codec._VERBS[_name]
"""


class Earlier:
    """The command line of the version before, on the home of a test."""

    def __init__(self, home: GrassHome, folder: Path) -> None:
        source = Path(grass.__file__).parent
        self.package = folder / "grass"
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, self.package, ignore=skipped)
        self._replace("__init__.py", f'"{grass.__version__}"', f'"{VERSION}"')
        process = self.package / "keeper" / "system" / "keeper_process.py"
        process.write_text(process.read_text() + _FORGET)
        program = str(self.package / "__main__.py")
        self._home = home
        home.add_program("earlier-grass", f'exec {sys.executable} -I {program} "$@"')

    def _replace(self, name: str, old: str, new: str) -> None:
        path = self.package / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def ok(self, words: str) -> str:
        """Run one of its commands, which must succeed."""
        ran: Ran = self._home.shell(f"earlier-grass {words}")
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def is_program_of(self, pid: int) -> bool:
        """Tell whether a process runs this version."""
        return str(self.package).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
