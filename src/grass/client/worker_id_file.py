"""Reads the file with the id of this home's worker."""

from __future__ import annotations

from grass.client.private_files import read_file
from grass.model.worker import check_worker_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.config import Home

_NO_ID = (
    "put it back from a copy; without one remove it, and this machine is another worker"
    " from then on"
)


def read_worker_id(home: Home) -> str | None:
    """Return the id; None or an empty text: there is none."""
    return read_file(home.worker_id, _parsed_id, _NO_ID)


def _parsed_id(data: bytes) -> str:
    text = data.decode("ascii").strip()
    return check_worker_id(text) if text else ""
