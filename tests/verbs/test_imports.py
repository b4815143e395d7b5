"""What a program imports for grass is little."""

import subprocess
import sys
from pathlib import Path

import grass

SOURCE = str(Path(grass.__file__).parents[1])

LOADED = "import sys; before = set(sys.modules); {}; print(*set(sys.modules) - before)"


def loaded(statement: str) -> set[str]:
    """Return the modules that a statement imports in a fresh interpreter."""
    ran = subprocess.run(
        [sys.executable, "-S", "-c", LOADED.format(statement)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": SOURCE},
    )
    return set(ran.stdout.split())


def test_import_grass_imports_itself_alone() -> None:
    assert loaded("import grass") == {"grass"}


def test_the_blocking_verbs_import_no_event_loop() -> None:
    given = loaded("import grass; grass.enqueue; grass.jobs")
    heavy = {"asyncio", "anyio", "msgspec", "ssl", "IPython", "trio"}
    assert given & heavy == set()
    assert len(given) < len(loaded("import asyncio"))


def test_errors_can_be_named_before_anything_is_called() -> None:
    given = loaded("import grass; grass.errors.TimedOut")
    ours = {one for one in given if one.startswith("grass")}
    assert ours == {"grass", "grass.errors"}


def test_every_name_that_is_exported_is_there() -> None:
    assert [name for name in dir(grass) if not hasattr(grass, name)] == []
