"""The keeper's log has the form of the daemon's."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import grass

SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from grass.keeper.system import log
log.open_log(sys.argv[2])
try:
    raise ValueError("a b")
except ValueError:
    log.log_defect()
raise OSError("c")
"""


@pytest.mark.parametrize("form", ["text", "json"])
def test_exceptions_are_events_of_one_line(form: str) -> None:
    source = str(Path(grass.__file__).parents[1])
    words = [sys.executable, "-I", "-S", "-c", SCRIPT, source, form]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    first, second = ran.stderr.splitlines()
    if form == "json":
        told = [json.loads(line) for line in (first, second)]
        assert [one["event"] for one in told] == ["defect", "defect"]
        assert [one["error"] for one in told] == ["ValueError: a b", "OSError: c"]
    else:
        assert 'Z error defect logger=grass.keeper error="ValueError: a b"' in first
        assert ' traceback="<string>:10 in <module>"' in second


def test_the_keeper_imports_no_module_for_tracebacks() -> None:
    source = str(Path(grass.__file__).parents[1])
    script = (
        f"import sys; sys.path.insert(0, {source!r})\n"
        "import grass.keeper.system.keeper_process\n"
        "print(*({'logging', 'traceback', 'tokenize'} & set(sys.modules)))"
    )
    words = [sys.executable, "-I", "-S", "-c", script]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
