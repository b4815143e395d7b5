"""What the kernel lets grass do: cgroups, pids, looking at processes."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from grass.doctor.finding import Finding, note, ok, wrong
from grass.keeper.mounts import read_mountinfo

FIRST_PID_NAMESPACE = "pid:[4026531836]"
"""The namespace of the machine itself has this number on every Linux."""
_WANTED = ("memory", "cpu", "pids")
_SCOPE = "start it with `systemd-run --user --scope -p Delegate=yes grass start`"


def machine_findings() -> Iterator[Finding]:
    """Look at the kernel, from here."""
    yield _pidfd()
    mounts = read_mountinfo()
    yield _cgroups(mounts)
    yield _pids()
    yield _processes(mounts)


def _pidfd() -> Finding:
    release = os.uname().release
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        fix = "use Linux 5.3 or newer, and a container that allows pidfd_open"
        return wrong("kernel", f"{release}: processes cannot be held: {error}", fix)
    return ok("kernel", f"Linux {release}")


def _cgroups(mounts: str) -> Finding:
    found = re.search(r"^\S+ \S+ \S+ / (\S+) .* - cgroup2 ", mounts, re.MULTILINE)
    if found is None:
        without = (
            "no cgroup v2 here: processes of jobs are found by session and descent"
        )
        return note("cgroups", without, "boot with systemd.unified_cgroup_hierarchy=1")
    own = os.path.join(found[1], _own_cgroup().lstrip("/"))
    if not os.access(own, os.W_OK):
        text = f"cgroup v2, and {own} may not be written: jobs have none of their own"
        return note("cgroups", text, _SCOPE)
    present = _text(f"{own}/cgroup.controllers").split()
    missing = [one for one in _WANTED if one not in present]
    if missing:
        text = f"cgroup v2, without the controllers {', '.join(missing)}"
        return note("cgroups", text, _SCOPE)
    return ok("cgroups", f"cgroup v2 with {', '.join(_WANTED)}")


def _own_cgroup() -> str:
    for line in _text("/proc/self/cgroup").splitlines():
        if line.startswith("0::"):
            return line.removeprefix("0::")
    return "/"


def _pids() -> Finding:
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError as error:
        return note("pids", f"the pid namespace is unknown: {error.strerror}")
    if namespace == FIRST_PID_NAMESPACE:
        return ok("pids", "those of the machine itself")
    return note(
        "pids",
        "a pid namespace of its own, as in a container: processes on GPUs cannot be"
        " told apart",
        "run the container with `--pid=host`",
    )


def _processes(mounts: str) -> Finding:
    proc = re.search(r"^\S+ \S+ \S+ \S+ /proc .*", mounts, re.MULTILINE)
    hidden = proc and re.search(r"hidepid=(?!0\b|off\b)\w+", proc[0])
    if hidden and os.geteuid() != 0:
        text = "/proc hides processes of other users: strangers have no name"
        return note(
            "processes", text, "mount /proc with gid=GROUP for this user's group"
        )
    return ok("processes", "all of them are seen")


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return ""
