"""A line of the log: one for each record, whatever the fields hold."""

import json
import logging

import pytest

from grass.event_log import LineFormatter
from grass.log_lines import LogEvent, json_line, log_event, logged_error, text_line

AT_S = 1_794_848_400.1234


def record(said: object, error: Exception | None = None) -> logging.LogRecord:
    raised = None if error is None else (type(error), error, None)
    return logging.LogRecord("lib", logging.WARNING, "", 0, said, (), raised)


def test_a_line_has_time_level_event_and_fields() -> None:
    event = log_event("daemon.ready", pid=7, home="/home/a b", hint=None, ok=True)
    assert text_line(AT_S, "info", event) == (
        '2026-11-16T17:00:00.123Z info daemon.ready pid=7 home="/home/a b" ok=true'
    )
    assert json.loads(json_line(AT_S, "info", event)) == {
        "ts": "2026-11-16T17:00:00.123Z",
        "level": "info",
        "event": "daemon.ready",
        "pid": 7,
        "home": "/home/a b",
        "ok": True,
    }


def test_a_field_cannot_replace_what_every_line_has() -> None:
    event = LogEvent("a.b", {"event": "other", "ts": 0})
    line = json.loads(json_line(AT_S, "info", event))
    assert (line["event"], line["ts"]) == ("a.b", "2026-11-16T17:00:00.123Z")


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("plain", "plain"),
        ("\u00e9t\u00e9", "\u00e9t\u00e9"),
        ("", '""'),
        ("a b", '"a b"'),
        ("a=b", '"a=b"'),
        ('"', r'"\""'),
        ("\\", r'"\\"'),
        ("x\n2026-01-01T00:00:00.000Z info y", r'"x\n2026-01-01T00:00:00.000Z info y"'),
        ("\x1b[2J\r\x07", r'"\u001b[2J\r\u0007"'),
        ("\u202eabc\u2028\x85", r'"\u202eabc\u2028\u0085"'),
        ("caf\udce9 \u00e9", '"caf\\udce9 \u00e9"'),
        ("\U000e0001", r'"\udb40\udc01"'),
    ],
)
def test_a_value_can_neither_end_its_line_nor_act(said: str, written: str) -> None:
    assert str(log_event("a.b", error=said)) == f"a.b error={written}"
    line = text_line(AT_S, "error", log_event("a.b", x="1 2", error=said, y="3 4"))
    assert logged_error(line) == said
    line = json_line(AT_S, "error", log_event("a.b", error=said))
    assert line.isascii()
    assert logged_error(line) == said


@pytest.mark.parametrize("line", ["", "OSError: no", '{"a', 'x error="y', "{}"])
def test_a_line_without_an_error_is_told_as_it_is(line: str) -> None:
    assert logged_error(line) == line


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_library_writes_the_same_form(form: str) -> None:
    line = LineFormatter(form).format(record("100% of\nit"))
    if form == "json":
        told = json.loads(line)
        assert (told["event"], told["logger"]) == ("library.message", "lib")
        assert (told["level"], told["message"]) == ("warning", "100% of\nit")
    else:
        assert line.endswith(
            r' warning library.message logger=lib message="100% of\nit"'
        )


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_traceback_is_a_field(form: str) -> None:
    error = ValueError("x\n2026-01-01T00:00:00.000Z info \x1b[31mready")
    line = LineFormatter(form).format(record(log_event("defect"), error))
    assert "\n" not in line
    assert line.isprintable()
    assert logged_error(line) == f"ValueError: {error}"
