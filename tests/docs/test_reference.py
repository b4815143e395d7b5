"""The reference pages name what the program has: no more, no less."""

import inspect
import re

import msgspec

from grass import config
from grass.api.app import ENDPOINTS
from grass.api.routes import request_bodies
from grass.daemon import preflight
from grass.errors import error_classes
from grass.model.journal import KINDS
from grass.tls import key_files
from grass.worker.core import prepare

from .pages import ROOT

REFERENCE = ROOT / "docs/reference"


def rows(page: str) -> list[list[str]]:
    """Return the cells of every table row, headings and rulers left out."""
    lines = (REFERENCE / page).read_text().splitlines()
    tables = [line.strip("|").split("|") for line in lines if line.startswith("| ")]
    return [[cell.strip().strip("`") for cell in row] for row in tables]


def test_every_route_is_documented_and_no_other() -> None:
    methods = {"GET", "POST", "PUT", "PATCH", "DELETE"}
    shown = [tuple(row[:2]) for row in rows("api.md") if row[0] in methods]
    assert shown == [(one.method, one.path) for one in ENDPOINTS]


def test_every_body_is_documented_with_its_fields() -> None:
    shown = {
        row[0]: re.findall(r"[a-z_]+", row[1])
        for row in rows("api.md")
        if row[0].endswith("Body")
    }
    used = {one.body for one in ENDPOINTS if one.body} | {request_bodies.JobBody}
    fields = {
        body.__name__: [field.name for field in msgspec.structs.fields(body)]
        for body in used
    }
    assert shown == fields


def test_every_kind_of_event_is_documented() -> None:
    told = (REFERENCE / "api.md").read_text().partition("The kinds are ")[2]
    assert tuple(re.findall(r"`([a-z-]+)`", told.partition(".")[0])) == KINDS


def test_every_error_is_documented_with_its_numbers() -> None:
    import grass.tasks.errors  # noqa: F401 -- those of tasks are known only then

    shown = {row[0]: tuple(row[1:3]) for row in rows("exit-codes.md") if len(row) == 4}
    del shown["code"]
    assert shown == {
        code: (str(error.exit_code), str(error.status))
        for code, error in error_classes().items()
    }


def test_every_file_of_the_state_directory_is_documented() -> None:
    home = config.Home("/home")
    files = {path.removeprefix("/home/") for path in vars(home).values()} - {"/home"}
    files |= {key_files.KEY_FILE, key_files.CERTIFICATE_FILE}
    shown = {name for row in rows("environment.md") for name in _names(row[0])}
    assert files <= shown


def _names(cell: str) -> list[str]:
    return [name.rstrip("/") for name in re.findall(r"[\w.-]+/?", cell)]


def test_every_variable_is_documented() -> None:
    page = (REFERENCE / "environment.md").read_text()
    source = inspect.getsource(prepare)
    own = set(re.findall(r'"((?:GRASS|CUDA|PYTHON)_?[A-Z_]+)"', source))
    read = {config.HOME_VARIABLE, config.AUTOSTART_VARIABLE, config.BROKER_VARIABLE}
    read.add(preflight.PASS_VARIABLE)
    assert {name for name in own | read if f"`{name}`" not in page} == set()
