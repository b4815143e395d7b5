"""Names of processes for people: what they run, and whose they are."""

import os
import pwd

LONGEST = 40


def process_name(pid: int) -> str:
    """Return a process in words: `python (pid 4711, alice)`; empty where unknown."""
    known = program_and_owner(pid)
    return "" if known is None else f"{known[0]} (pid {pid}, {known[1]})"


def program_and_owner(pid: int) -> tuple[str, str] | None:
    """Return what a process runs and whose it is; None where that is unknown."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            program = _readable(file.read(LONGEST))
        return program, _user(os.stat(f"/proc/{pid}").st_uid)
    except OSError:
        # It has ended, or it is outside this container.
        return None


def _readable(name: bytes) -> str:
    """Return a program's name without anything that a terminal would act on."""
    text = name.decode(errors="replace").strip()
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    return shown or "a process"


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
