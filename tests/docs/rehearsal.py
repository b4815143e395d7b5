"""Running a page's examples the way a reader would: one shell, one fresh home.

What differs from run to run is masked before it is compared: times, pids, sizes and
spacing; and what tells of the machine: its name and folders, the table of workers,
cores, remarks on GPUs. A line `...` stands for any number of lines. A command may fail
only if the page goes on to show its exit code. A program on a page sleeps so long that
a reader can look at it; here it waits for its mark instead, or not at all. The other
machines of a page are other homes of this one (`machines`).
"""

import fnmatch
import os
import pwd
import re
import shlex
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from tests.support.homes import GrassHome
from tests.support.notices import NOTICE

from .machines import Machines
from .pages import Step

LIMIT_S = 100
_END = "-- end of example"

_OPENING = f"""
exec 2>&1 </dev/null
: >"$HOLD"
exec 9>"$HOLD"
say_end() {{ local code=$?; printf '\\n{_END} %d\\n' $code; return $code; }}
"""

_MARKS = {"hold": "flock 9", "let go": "flock -u 9"}

_SLEEP = re.compile(r"time\.sleep\(\d+\)")
_UNTIL_LET_GO = "__import__('fcntl').flock(open(__import__('os').environ['HOLD']), 1)"

# Where things lie on the machine of the reader that the pages tell of.
_STATE = "/home/you/.local/state/grass/desk"
_WORK = "/home/you/work"

_MASKS = (
    (re.compile(r"/[\w-]{43}/[\w-]{22}(?![\w-])"), "/PIN/CODE"),
    (re.compile(r"(?<![\w-])[\w-]{43}(?![\w-])"), "PIN"),
    (re.compile(r"\b([0-9A-F]{2}:){31}[0-9A-F]{2}\b"), "FINGERPRINT"),
    (re.compile(r"\b\d+\.\d+\.\d+\.\d+\b"), "ADDRESS"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+Z)?"), "TIME"),
    (re.compile(r"\b\d\d:\d\d(:\d\d)?( tomorrow)?(?=, in )"), "MOMENT"),
    (re.compile(r"(?<= )\d\d:\d\d:\d\d(?= )"), "CLOCK"),
    (re.compile(r"\b(\d+(\.\d+)?[smhd])+\b"), "0s"),
    # What was measured of a short job depends on when it was looked at.
    (re.compile(r"(?m)^(grass: job [^;\n]*); memory .*$"), r"\1"),
    (re.compile(r"(?m)^(grass: .*(?:ed|lost)\b.*?) in 0s(?=$|:)"), r"\1"),
    (re.compile(r"(?m)^grass: (\d+ succeeded|no job was unfinished)$"), "grass: ended"),
    (re.compile(r"\bpid \d+"), "pid 0"),
    (re.compile(r'"seq":\d+'), '"seq":0'),
    (re.compile(r"\buid:\d+"), "uid:0"),
    (re.compile(r"\bworker=[0-9a-f]{16}\b"), "worker=0"),
    (re.compile(r"\b\d+(\.\d+)? [KMGT]?i?B\b"), "0 B"),
    (re.compile(r"(?m)^WORKER +KIND .*\n(.+\n)*"), "WORKERS\n"),
    (re.compile(r"(?m)(^\S+ +(connected|draining|unreachable) .*?)cpu \S+/.*"), r"\1"),
    (re.compile(r"(?m)^grass: declared, not found: .*\n"), ""),
    (NOTICE, ""),
    (re.compile(r"(?m)^grass: this job sees no GPU; .*\n"), ""),
    (re.compile(r"\bcpu:\d+\b"), "cpu:0"),
    (re.compile(r"[ \t]+"), " "),
    (re.compile(r" $", re.MULTILINE), ""),
    (re.compile(r"\n{2,}"), "\n"),
)


def rehearse(steps: list[Step], folder: Path) -> list[str]:
    """Run the steps in the folder; return what is wrong with them."""
    machines = Machines(folder, steps)
    environment = {**_environment(folder), **machines.environment()}
    commands = [step for step in steps if step.command]
    told_at = folder / "told"
    with ExitStack() as ends, told_at.open("a") as file:
        ends.callback(_own_home(folder).end)
        ends.callback(machines.end)
        subprocess.run(
            ["bash", "-c", _script(steps, machines)],
            cwd=folder / "work",
            env=environment,
            stdout=file,
            timeout=LIMIT_S,
        )
    told = _as_elsewhere(machines.as_elsewhere(told_at.read_text()), folder)
    results = re.split(rf"\n{_END} (\d+)\n", told)
    outputs, codes = results[0::2], [int(code) for code in results[1::2]]
    assert len(codes) == len(commands), f"the shell ended early: {outputs[-1]}"
    followers = [step.shows_exit_code for step in commands[1:]] + [False]
    problems = []
    for step, output, code, may_fail in zip(
        commands, outputs, codes, followers, strict=False
    ):
        problems += _problems(step, output, code, may_fail=may_fail)
    return problems


def _as_elsewhere(output: str, folder: Path) -> str:
    """Put the reader's folders and machine in the place of ours."""
    output = output.replace(str(folder / "home"), _STATE)
    output = output.replace(str(folder / "work"), _WORK)
    user = re.escape(pwd.getpwuid(os.getuid()).pw_name)
    output = re.sub(rf"(\bby |\bowner +){user}\b", r"\1you", output)
    return re.sub(rf"\b{re.escape(socket.gethostname())}\b", "desk", output)


def _environment(folder: Path) -> dict[str, str]:
    (folder / "work").mkdir()
    own_programs = os.path.dirname(sys.executable)
    return {
        "PATH": f"{own_programs}:{os.defpath}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "GRASS_HOME": str(folder / "home"),
        "HOLD": str(folder / "hold"),
    }


def _script(steps: list[Step], machines: Machines) -> str:
    pieces = [_OPENING, machines.opening()]
    for step in steps:
        if step.file is not None:
            name, content = step.file
            content = _SLEEP.sub(_UNTIL_LET_GO, content)
            pieces.append(f"printf %s {shlex.quote(content)} >{shlex.quote(name)}")
        elif step.mark:
            pieces.append(_MARKS[step.mark])
        else:
            pieces += [machines.command(step), "say_end", machines.settling(step)]
    return "\n".join(pieces)


def _own_home(folder: Path) -> GrassHome:
    """The reader's own home, to end all that a page has left running there."""
    place = folder / "end"
    place.mkdir()
    return GrassHome(place, folder / "home")


def _problems(step: Step, output: str, code: int, *, may_fail: bool) -> list[str]:
    where = f"line {step.line}: $ {step.command}"
    problems = []
    if code and not may_fail:
        problems.append(f"{where}\nexit code {code}\n{output}")
    shown, printed = masked("\n".join(step.shown)), masked(output)
    if not _matches(shown, printed):
        problems.append(f"{where}\nthe page shows\n{shown}\nit printed\n{printed}")
    return problems


def masked(text: str) -> str:
    """Take out of an output what no two runs share."""
    text += "\n"
    for pattern, replacement in _MASKS:
        text = pattern.sub(replacement, text)
    return text.strip()


def _matches(shown: str, printed: str) -> bool:
    lines = [_escaped(line) for line in shown.splitlines()]
    pattern = "\n".join("*" if line == "..." else line for line in lines)
    return fnmatch.fnmatchcase(printed, pattern)


def _escaped(line: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", line)
