"""Lines of a file, counted, marked and searched where it is."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.link.requests import LineScan, ScannedLines
from grass.model.output_text import without_escapes
from grass.worker.shell import line_scans
from grass.worker.shell.line_scans import scan_lines

BEYOND = 2**40
COLOURED = [b"\x1b[0m", b"\x1b[31ma\x1b[m", b"\x1b]0;a c\x07x", b"\x1b"]
SAMPLES = [b"", b"a", b"ab", b"b\rc", b"x" * 40, *COLOURED]
LINES = st.lists(st.sampled_from(SAMPLES), max_size=60)


@contextmanager
def opened(data: bytes) -> Iterator[int]:
    """Give a file with this content, open."""
    descriptor = os.memfd_create("lines")
    try:
        os.write(descriptor, data)
        yield descriptor
    finally:
        os.close(descriptor)


def scanned(data: bytes, wanted: LineScan, offset: int = 0) -> list[ScannedLines]:
    """Scan to the end, step by step."""
    steps = list[ScannedLines]()
    with opened(data) as descriptor:
        while True:
            steps.append(scan_lines(descriptor, offset, wanted))
            if steps[-1].end == offset:
                return steps[:-1]
            offset = steps[-1].end


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and steps are so small that a test has many of them."""
    monkeypatch.setattr(line_scans, "BLOCK", 8)
    monkeypatch.setattr(line_scans, "LONGEST_LINE", 32)
    monkeypatch.setattr(line_scans, "STEP_BYTES", 50)


@given(lines=LINES, rest=st.sampled_from([b"", b"a"]))
def test_lines_are_counted_and_marks_are_beginnings(
    lines: list[bytes], rest: bytes
) -> None:
    data = b"".join(line + b"\n" for line in lines) + rest
    before = 0
    for step in scanned(data, LineScan(BEYOND)):
        assert step.size == len(data)
        for newlines, offset in step.marks:
            assert data[:offset].count(b"\n") == before + newlines
            assert data[offset - 1 : offset] == b"\n"
        before += step.newlines
    assert before == len(lines)


@given(lines=LINES, rest=st.sampled_from([b"", b"a"]), most=st.integers(0, 3))
def test_each_line_that_matches_is_found_once(
    lines: list[bytes], rest: bytes, most: int
) -> None:
    data = b"".join(line + b"\n" for line in lines) + rest
    expected = [
        number
        for number, line in enumerate([*lines, *([rest] if rest else [])])
        if (seen := without_escapes(line)) == b"" or b"a" in seen or b"c" in seen
    ]
    before, count, found = 0, 0, list[int]()
    for step in scanned(data, LineScan(BEYOND, "a|c|^$", most)):
        assert len(step.matches) <= most
        for one in step.matches:
            assert one.offset == 0 or data[one.offset - 1 : one.offset] == b"\n"
            found.append(before + one.line)
        before, count = before + step.newlines, count + step.count
    assert count == len(expected)
    assert found == (expected if most else [])


def test_a_scan_ends_with_its_part() -> None:
    data = b"one\ntwo\nthree\n"
    with opened(data) as descriptor:
        found = scan_lines(descriptor, 4, LineScan(10, "t", 9))
    assert (found.end, found.newlines) == (10, 1)
    assert [(one.line, one.offset, one.text) for one in found.matches] == [
        (0, 4, b"two"),
        (1, 8, b"th"),
    ]


def test_a_line_that_matches_is_told_without_frames_and_cut() -> None:
    with opened(b"x: 1%\rx: 9%\n") as descriptor:
        found = scan_lines(descriptor, 0, LineScan(BEYOND, "1%", 9))
    assert [one.text for one in found.matches] == [b"x: 9%"]


def test_a_search_sees_no_colours() -> None:
    data = b"\x1b[2m12:00\x1b[0m ok\n\x1b[31mErr\x1b[1mor\x1b[0m: it broke\n"
    for pattern in ("Error", "^Error: it", "broke$"):
        with opened(data) as descriptor:
            found = scan_lines(descriptor, 0, LineScan(BEYOND, pattern, 9))
        assert [(one.line, one.offset) for one in found.matches] == [(1, 17)]
    with opened(data) as descriptor:
        assert scan_lines(descriptor, 0, LineScan(BEYOND, "31m", 9)).count == 0


def test_a_line_without_an_end_is_scanned_in_parts() -> None:
    steps = scanned(b"x" * 200 + b"y" * 200 + b"\n", LineScan(BEYOND, "y", 0))
    assert sum(step.newlines for step in steps) == 1
    assert steps[-1].end == 401


def test_a_scan_stops_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_scans, "STEP_S", 0.0)
    with opened(b"a\n" * 10) as descriptor:
        assert scan_lines(descriptor, 0, LineScan(BEYOND)).end == line_scans.BLOCK
