"""The daemon's log: what peers send is written out, a line for each record."""

import logging

import pytest

from grass.daemon.main import LogFormatter

FORM = "%(asctime)s %(levelname)s %(message)s"


def record(text: str, error: Exception | None = None) -> logging.LogRecord:
    shown = None if error is None else (type(error), error, None)
    return logging.LogRecord("grass", logging.WARNING, "", 0, "%s", (text,), shown)


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("a worker\n2026-01-01 INFO ready", r"a worker\n2026-01-01 INFO ready"),
        ("\x1b[2J\r\x07", r"\x1b[2J\r\x07"),
        ("\u202eabc\u2028\x85", r"\u202eabc\u2028\x85"),
        ("caf\udce9 \u00e9", "caf\\udce9 \u00e9"),
        ("plain", "plain"),
    ],
)
def test_what_is_not_printable_is_written_out(said: str, written: str) -> None:
    line = LogFormatter(FORM).format(record(said))
    assert line.endswith(f" WARNING {written}")


def test_no_line_of_a_traceback_looks_like_a_record() -> None:
    error = ValueError("x\n2026-01-01 00:00:00 INFO \x1b[31mready")
    first, *more = LogFormatter(FORM).format(record("a defect", error)).split("\n")
    assert first.endswith("a defect")
    assert more == ["  ValueError: x", r"  2026-01-01 00:00:00 INFO \x1b[31mready"]
