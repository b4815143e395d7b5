"""Whatever the page can do is a route of the API and a command."""

import re
from pathlib import Path

import pytest

from grass.api.app import ENDPOINTS
from grass.cli.main import COMMANDS
from grass.model.access import Right
from grass.web import STATIC

TABLE = (Path(STATIC) / "app" / "actions.mjs").read_text()
ROW = re.compile(
    r'\{ id: "(?P<id>[\w-]+)".*?endpoint: "(?P<endpoint>[^"]+)", '
    r'command: "(?P<command>[\w-]+)", right: "(?P<right>\w+)"'
)
ROWS = [found.groupdict() for found in ROW.finditer(TABLE)]
BY_NAME = {f"{one.method} {one.path}": one for one in ENDPOINTS}


def test_the_table_is_read_whole() -> None:
    assert len(ROWS) == TABLE.count('endpoint: "')
    assert len(ROWS) > 10


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_an_action_is_a_route_and_a_command(row: dict[str, str]) -> None:
    endpoint = BY_NAME[row["endpoint"]]
    assert row["command"] in COMMANDS
    assert endpoint.right is Right(row["right"])
