"""The reference page names every event that the code logs, with level and fields."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEVELS = ("info", "warning", "error")
BUILT_IN = {
    "defect": ("error", {"logger", "error", "traceback"}),
    "library.message": ("as given", {"logger", "message", "error", "traceback"}),
}
"""Events that `grass.event_log` makes itself."""
OWN = ("event_log.py", "log_lines.py")


def calls() -> Iterator[ast.Call]:
    for path in sorted((ROOT / "src/grass").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and path.name not in (
                "event_log.py",
                "log_lines.py",
            ):
                yield node


def logged(call: ast.Call) -> tuple[str, str] | None:
    """Return event and level of a call that logs."""
    said = [one.value for one in call.args if isinstance(one, ast.Constant)]
    match call.func:
        case ast.Attribute(value=ast.Name(id="log"), attr="write") if len(said) == 2:
            return str(said[1]), str(said[0])
        case ast.Attribute(value=ast.Name(id="log"), attr="defect"):
            return "defect", "error"
        case ast.Attribute(value=ast.Name(id="log"), attr=level) if level in LEVELS:
            return str(said[0]), level
        case ast.Name(id="log_event") | ast.Attribute(attr="log") if said:
            return str(said[0]), "warning"
    return None


def in_the_code() -> dict[str, tuple[str, set[str]]]:
    found = {name: (level, set(fields)) for name, (level, fields) in BUILT_IN.items()}
    for call in calls():
        event = logged(call)
        if event is not None:
            fields = {one.arg for one in call.keywords if one.arg is not None}
            level, known = found.setdefault(event[0], (event[1], set()))
            assert level == event[1], event
            known.update(fields)
    return found


def test_every_event_is_documented_and_no_other() -> None:
    lines = (ROOT / "docs/reference/logs.md").read_text().splitlines()
    rows = [re.split(r" ?\| ?", line)[1:-1] for line in lines if line.startswith("| `")]
    shown = {
        row[0].strip("`"): (row[1], set(re.findall(r"`(\w+)`", row[2])))
        for row in rows
        if len(row) == 4
    }
    assert shown == in_the_code()
    assert list(shown) == sorted(shown)
