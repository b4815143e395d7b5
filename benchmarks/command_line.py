"""What `grass enqueue` and `import grass` cost, against what Python costs anyway.

Pairs, one command right after the other and the first of them by turns, with the
console script and the interpreter of the environment that runs this. The package is
compiled first, as `pip install` does. The daemon is paused, so that no job competes
with the command.
"""

import compileall
import os
import statistics
import sys
import time
from functools import partial
from pathlib import Path

import grass
from benchmarks.figures import Benchmark, Claim, Figures
from benchmarks.fresh_home import environment_of, fresh_home
from benchmarks.sizes import Sizes

_GRASS, _PYTHON = "grass enqueue -- true", "python -c pass"
_IMPORT, _ASYNCIO = "import grass", "import asyncio"


def command_line(sizes: Sizes) -> Benchmark:
    """Return the pairs as one contender."""
    pairs = sizes.command_pairs
    return Benchmark(
        "cli",
        [lambda: _both(pairs)],
        [
            Claim(
                "`grass enqueue -- true` against `python -c pass`",
                lambda f: f[_GRASS] / f[_PYTHON],
                bar=1.7,
                goal=1.5,
                unit="x",
                at_most=True,
            )
        ],
        "ms",
        [f"{pairs} pairs a round, medians"],
    )


def imports(sizes: Sizes) -> Benchmark:
    """Return the pairs of two imports as one contender."""
    pairs = sizes.command_pairs
    claim = Claim(
        "`python -c 'import grass'` against `import asyncio`",
        lambda f: f[_IMPORT] / f[_ASYNCIO],
        bar=1.5,
        goal=1.0,
        unit="x",
        at_most=True,
    )
    commands = {one: [sys.executable, "-c", one] for one in (_IMPORT, _ASYNCIO)}
    notes = [f"{pairs} pairs a round, medians, with the start of the interpreter"]
    run = partial(_medians, commands, pairs, dict(os.environ))
    return Benchmark("imports", [run], [claim], "ms", notes)


def _both(pairs: int) -> Figures:
    script = str(Path(sys.executable).parent / "grass")
    commands = {
        _GRASS: [script, "enqueue", "--", "true"],
        _PYTHON: [sys.executable, "-c", "pass"],
    }
    with fresh_home(slots=1) as fresh:
        fresh.client.pause()
        return _medians(commands, pairs, environment_of(fresh))


def _medians(
    commands: dict[str, list[str]], pairs: int, environment: dict[str, str]
) -> Figures:
    taken: dict[str, list[float]] = {name: [] for name in commands}
    compileall.compile_dir(Path(grass.__file__).parent, quiet=1)
    for number in range(pairs):
        names = list(commands) if number % 2 else list(reversed(commands))
        for name in names:
            taken[name].append(_milliseconds(commands[name], environment))
    return {name: statistics.median(values) for name, values in taken.items()}


def _milliseconds(command: list[str], environment: dict[str, str]) -> float:
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    started = time.perf_counter()
    pid = os.posix_spawn(command[0], command, environment, file_actions=quiet)
    _pid, status = os.waitpid(pid, 0)
    taken = time.perf_counter() - started
    if status:
        raise RuntimeError(f"`{' '.join(command[1:])}` failed")
    return taken * 1000
