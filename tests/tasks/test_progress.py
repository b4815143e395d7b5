"""The line on a terminal, and silence elsewhere."""

import os
import subprocess
import sys

from grass.tasks.progress import machines_text, progress_text

PROGRAM = """
import os, sys
import grass as grain


async def wait_for_the_line():
    import anyio.to_thread
    await anyio.to_thread.run_sync(sys.stdin.readline)


async def main():
    async with grain.open_waitgroup() as wg:
        wg.submit(grain.Cores(1), wait_for_the_line)
        wg.submit(grain.Cores(1), wait_for_the_line)
    print("printed", file=sys.stderr)


grain.run_combine(main, [], grain.Cores(1), backend="asyncio")
"""


def test_the_line_has_counts_and_a_rate() -> None:
    text = progress_text(12, 2, 30, 3.14159)
    assert text == "12 done, 2 running, 30 waiting, 3.14 tasks/s"


def test_the_line_tells_what_runs_elsewhere() -> None:
    assert machines_text({}, {}) == ""
    assert machines_text({"a:1": 3, "b:1": None}, {}) == " (3 on a:1, b:1 waits)"
    why = {"a:1": "no more", "b:1": "1 cpu of 2 is free"}
    text = " (3 on a:1, b:1 waits: 1 cpu of 2 is free)"
    assert machines_text({"a:1": 3, "b:1": None}, why) == text


def test_a_terminal_is_told_what_runs_and_the_line_is_gone_at_the_end() -> None:
    master, terminal = os.openpty()
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stderr=terminal,
    )
    os.close(terminal)
    said = b""
    while b"0 done, 1 running, 1 waiting, 0 tasks/s" not in said:
        said += os.read(master, 1000)
    program.communicate(b"\n\n")
    said += os.read(master, 1000)
    os.close(master)
    assert program.returncode == 0
    # It is gone before the program prints something.
    assert said.endswith(b"tasks/s\r\x1b[Kprinted\r\n")


def test_nothing_is_written_elsewhere() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=b"\n\n", capture_output=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"printed\n")
